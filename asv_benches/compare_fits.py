"""Whole fits: small ones, many classes on one and two threads, sixteen at once, subsets of fresh seeds.

    python asv_benches/compare_fits.py [--part small|classes|pursuit|concurrent|subset|images] [--kind TEXT]
                                       [--data FOLDER] [--seeds N] [--first SEED] [--classes K ...] [--n-jobs N]

``pursuit`` is margin pursuit's Newton where the others are SmSVM; ``concurrent`` has the kinds of fit whose name TEXT
is a part of, all without it, each fit on N threads, 0 for what it takes by default; ``subset`` needs covtype,
``images`` mnist and tinyimagenet in FOLDER. A comparison of two versions is this command run on both, on a quiet
machine.
"""

import argparse
import hashlib
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from inspect import signature
from time import perf_counter, process_time
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from cmargin import (
    BSNClassifier,
    MarginPursuitClassifier,
    SLNDClassifier,
    SmSVMClassifier,
    SmSVMClassifierCV,
    baselines,
)
from cmargin._runtime.fit_slots import FIT_SLOTS, cores, places
from cmargin.datasets import load
from cmargin.solvers import cost
from measure.limits import best_of
from measure.report import heading, table

FITS, AT_ONCE = 16, 8
REPEATS, LONG = 5, 3.0      # of the fits at once; one only where sixteen fits take longer, in seconds
SHORTER = {"CGDescent": 50, "ODM": 20, "CatoniHinge": 20, "SmSVM, CV": None}   # passes on the large set; None: no fit


def small_sets():
    """Breast cancer, the digits, a wide and a tall set: rows and labels."""
    rng = np.random.default_rng(0)
    X, y = load_breast_cancer(return_X_y=True)
    cancer, digits = (scale(X), y), load_digits(return_X_y=True)
    digits = digits[0] / 16, digits[1]
    wide = rng.standard_normal((100, 400)), np.where(rng.random(100) < 0.5, 1, -1)
    tall = rng.standard_normal((60_000, 30))
    tall = tall, np.where(tall @ rng.standard_normal(30) + rng.standard_normal(60_000) > 0, 1, -1)
    return cancer, digits, wide, tall


def many_classes():
    """100 classes x 5,000 x 200, float32."""
    rng = np.random.default_rng(0)
    centres, y = 1.5 * rng.standard_normal((100, 200)), rng.integers(0, 100, 5000)
    return (centres[y] + 4 * rng.standard_normal((5000, 200))).astype(np.float32), y


def small(_):
    """Milliseconds, evaluations and the certified gap of whole fits."""
    cancer, digits, wide, tall = small_sets()
    kinds = [("breast cancer", cancer, {}), ("breast cancer", cancer, {"l1": 1e-2}),
             ("breast cancer", cancer, {"loss": "squared_hinge", "l1": 1e-3}),
             ("breast cancer", cancer, {"loss": "logistic"}), ("digits", digits, {}), ("100 x 400", wide, {}),
             ("100 x 400", wide, {"l1": 1e-2}), ("60,000 x 30", tall, {}), ("60,000 x 30", tall, {"l1": 1e-3})]
    rows = []
    for name, data, parameters in kinds:
        model = SmSVMClassifier(random_state=0, **parameters).fit(*data)
        best, median = best_of(lambda model=model, data=data: model.fit(*data))
        rows.append([name, str(parameters), 1e3 * best, 1e3 * median, model.n_iter_, model.duality_gap_.max()])
    yield table("Whole fits", ["data", "parameters", "best ms", "median ms", "evaluations", "gap"], rows)


def classes(_):
    """Seconds of one-vs-rest on one and on two threads."""
    X, y = many_classes()
    rows = []
    kinds = [("hinge, tol=1e-3", {"tol": 1e-3}), ("logistic, tol=1e-3", {"loss": "logistic", "tol": 1e-3}),
             ("hinge, tol=1e-4", {"max_passes": 1000})]
    for name, parameters in kinds:
        best = [best_of(lambda n=n, given=parameters: SmSVMClassifier(n_jobs=n, **given).fit(X, y), 3)[0]
                for n in (1, 2)]
        rows.append([name, *best, best[0] / best[1]])
    yield table("100 classes x 5,000 x 200", ["fit", "one thread, s", "two threads, s", "ratio"], rows)


def pursuit(_):
    """Margin pursuit's Newton: milliseconds and passes of whole fits, and many classes on one and two threads."""
    cancer, digits, wide, tall = small_sets()
    kinds = [("breast cancer", cancer, {}), ("digits", digits, {}), ("digits", digits, {"l2": 1e-3}),
             ("digits", digits, {"trace": False}), ("100 x 400", wide, {"l2": 1e-3}), ("60,000 x 30", tall, {}),
             ("60,000 x 30", tall, {"trace": False})]
    rows = []
    for name, data, parameters in kinds:
        for n in (1, 2):
            model = MarginPursuitClassifier(n_jobs=n, **parameters).fit(*data)
            best, median = best_of(lambda model=model, data=data: model.fit(*data))
            rows.append([name, str(parameters), n, 1e3 * best, 1e3 * median, model.n_iter_, model.n_passes_])
    yield table("Whole fits of margin pursuit", ["data", "parameters", "threads", "best ms", "median ms", "passes",
                                                 "reads"], rows)
    X, y = many_classes()
    best = [best_of(lambda n=n: MarginPursuitClassifier(l2=1e-3, n_jobs=n).fit(X, y), 3)[0] for n in (1, 2)]
    yield table("Margin pursuit, 100 classes x 5,000 x 200", ["one thread, s", "two threads, s", "ratio"],
                [[*best, best[0] / best[1]]])


def kinds_of_fit(n_jobs=1):
    """{name: function that makes an estimator}, every public one by its defaults and some others."""
    kinds = {
        "SmSVM": SmSVMClassifier, "SmSVM, l1": partial(SmSVMClassifier, l1=1e-3),
        "SmSVM, logistic": partial(SmSVMClassifier, loss="logistic"),
        "SmSVM, CV": partial(SmSVMClassifierCV, estimator=SmSVMClassifier(n_jobs=n_jobs)),
        "SLND, multinomial": SLNDClassifier, "BSN, multinomial": BSNClassifier,
        "SLND, logistic": partial(SLNDClassifier, loss="logistic"), "SLND, l2": partial(SLNDClassifier, l2=1e-3),
        "margin pursuit, newton": MarginPursuitClassifier,
        "margin pursuit, gd": partial(MarginPursuitClassifier, solver="gd"),
        "margin pursuit, sgd": partial(MarginPursuitClassifier, solver="sgd", l2=1e-2, max_passes=20),
    }
    kinds |= {name.removesuffix("Classifier"): getattr(baselines, name) for name in baselines.__all__}

    def given(cls):
        has = signature(cls).parameters
        return partial(cls, **{name: value for name, value in {"n_jobs": n_jobs, "random_state": 0}.items()
                               if name in has})

    return {name: given(cls) for name, cls in kinds.items()}


def concurrent_sets():
    """The digits, and 20,000 x 100 in five clouds."""
    rng = np.random.default_rng(5)
    centres, y = 0.7 * rng.standard_normal((5, 100)), rng.integers(0, 5, 20_000)
    return {"digits": load_digits(return_X_y=True),
            "20,000 x 100": (centres[y] + rng.standard_normal((20_000, 100)), y)}


def clocks():
    """(wall, processor) seconds."""
    return np.array([perf_counter(), process_time()])


def one_by_one(work):
    """((wall, processor) seconds of FITS calls, their results)."""
    start = clocks()
    found = [work() for _ in range(FITS)]
    return clocks() - start, found


def at_once(work, with_slots=True):
    """The same in AT_ONCE threads."""
    start, FIT_SLOTS.n_places = clocks(), places if with_slots else lambda: AT_ONCE
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = list(pool.map(lambda _: work(), range(FITS)))
    finally:
        FIT_SLOTS.n_places = places
    return clocks() - start, found


def hashed(content):
    """What two cores give work that needs neither a lock of the interpreter's nor new memory."""
    return hashlib.sha256(content).digest()


def concurrent(options):
    """Wall time of sixteen fits in eight threads over the cores' share of sixteen one by one, median of REPEATS.

    Beside it the same where fits do not take turns (`cmargin/_runtime/fit_slots.py`); of hashing, which holds no lock,
    measured next to each: what the machine gives; and processor time, which other programs disturb less.
    """
    columns = ["data", "one by one, ms", "at once, ms", "over the fair share", "without turns", "hashing",
               "processor time", "same bits"]
    for name, make in kinds_of_fit(options.n_jobs or None).items():
        if options.kind in name:
            large = partial(make, max_passes=SHORTER[name]) if SHORTER.get(name) else make
            rows = [[data, *concurrent_row(lambda X=X, y=y, one=one: one().fit(X, y))]
                    for (data, (X, y)), one in zip(concurrent_sets().items(), (make, large), strict=True)
                    if data == "digits" or SHORTER.get(name, 1) is not None]
            yield table(f"{name}: {FITS} fits in {AT_ONCE} threads, {cores()} cores", columns, rows)


def concurrent_row(fit):
    """What `concurrent` says of one fit, from the second column on."""
    fit()
    found, same, hashing = [], True, partial(hashed, bytes(50_000_000))
    for _ in range(REPEATS):
        one, alone = one_by_one(fit)
        many, together = at_once(fit)
        without, _ = at_once(fit, with_slots=False)
        same &= all(model.coef_.tobytes() == alone[0].coef_.tobytes() for model in together)
        machine = at_once(hashing)[0][0] / one_by_one(hashing)[0][0]
        share = cores() / one[0]
        found.append((1e3 * one[0] / FITS, 1e3 * many[0] / FITS, share * many[0], share * without[0],
                      cores() * machine, many[1] / one[1]))
        if one[0] > LONG:
            break
    return [*np.median(found, axis=0), same]


def subset(options):
    """Passes and seconds to a certified 1e-4 over fresh seeds, every second one in another order of the rows."""
    data = load("covtype", folder=options.data)
    X, rows = scale(data.X.astype(np.float32)), []
    orders = [np.random.default_rng(1000 + seed).permutation(len(X)) if seed % 2 else slice(None)
              for seed in range(options.first, options.first + options.seeds)]
    for number in options.classes:
        code = np.where(data.y == np.unique(data.y)[number - 1], 1, -1)
        for l2 in (1e-3, 1e-5, 1e-7):
            found = []
            for seed, order in enumerate(orders, options.first):
                model, received = SmSVMClassifier(l2=l2, random_state=500 + seed, max_passes=60), []
                here, labels = X[order], code[order]
                for smallest in (cost.WORKING_SET_FROM_ROWS, np.inf):
                    with patch.object(cost, "WORKING_SET_FROM_ROWS", smallest):
                        start = perf_counter()
                        received += [model.fit(here, labels).n_passes_, perf_counter() - start]
                found.append(received)
            median, worst = np.median(found, axis=0), np.max(found, axis=0)
            rows.append([number, l2, median[0], worst[0], median[1], median[2], worst[2], median[3]])
    yield table("Covtype, to a certified 1e-4; and without steps of the rows near the hinge",
                ["class", "l2", "median", "worst", "s", "without: median", "worst", "s"], rows)


def ten_to_hundreds(options):
    """Seconds of one-vs-rest on whole image sets, two threads, fresh seeds of the order: each once, no warming up."""
    rows = []
    for name, given in (("mnist", {"l2": 1e-4}), ("tinyimagenet", {"C": 1.0, "tol": 1e-3})):
        data = load(name, folder=options.data)
        X = data.X.astype(np.float32) / 255
        for seed in range(options.seeds):
            start = perf_counter()
            model = SmSVMClassifier(max_passes=1000, n_jobs=2, random_state=900 + seed, **given).fit(X, data.y)
            rows.append([name, seed, perf_counter() - start, model.n_passes_, model.duality_gap_.max()])
    yield table("One-vs-rest, two threads", ["set", "seed", "s", "reads, all classes", "worst gap"], rows)


PARTS = {"small": small, "classes": classes, "pursuit": pursuit, "concurrent": concurrent, "subset": subset,
         "images": ten_to_hundreds}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--kind", default="")
    parser.add_argument("--data")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 4, 7])
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    print(heading(2))
    for part in options.part or ("small", "classes", "pursuit", "concurrent"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for text in PARTS[part](options):
                print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
