"""Whole fits: small ones, many classes on one and two threads, sixteen at once, subsets of fresh seeds.

    python asv_benches/compare_fits.py [--part small|classes|pursuit|concurrent|subset] [--kind TEXT] [--data FOLDER]
                                       [--seeds N]

``pursuit`` is margin pursuit's Newton where the others are SmSVM; ``concurrent`` has the kinds of fit whose name TEXT
is a part of, all without it; ``subset`` needs covtype in FOLDER. A comparison of two versions is this command run on
both, on a quiet machine.
"""

import argparse
import hashlib
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from inspect import signature
from time import perf_counter

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
from cmargin.datasets import load
from cmargin.measure.limits import best_of
from cmargin.measure.report import heading, table

FITS, AT_ONCE = 16, 8
REPEATS, LONG = 5, 3.0      # of the fits at once; one only where sixteen fits take longer, in seconds


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
    """Milliseconds, looks and the certified gap of whole fits."""
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
    yield table("Whole fits", ["data", "parameters", "best ms", "median ms", "looks", "gap"], rows)


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


def kinds_of_fit():
    """{name: function that makes an estimator of one thread}, every public one by its defaults and some others."""
    kinds = {
        "SmSVM": SmSVMClassifier, "SmSVM, l1": partial(SmSVMClassifier, l1=1e-3),
        "SmSVM, logistic": partial(SmSVMClassifier, loss="logistic"), "SmSVM, CV": SmSVMClassifierCV,
        "SLND, multinomial": SLNDClassifier, "BSN, multinomial": BSNClassifier,
        "SLND, logistic": partial(SLNDClassifier, loss="logistic"), "SLND, l2": partial(SLNDClassifier, l2=1e-3),
        "margin pursuit, newton": MarginPursuitClassifier,
        "margin pursuit, gd": partial(MarginPursuitClassifier, solver="gd"),
        "margin pursuit, sgd": partial(MarginPursuitClassifier, solver="sgd", l2=1e-2, max_passes=20),
    }
    kinds |= {name.removesuffix("Classifier"): getattr(baselines, name) for name in baselines.__all__}

    def one_thread(cls):
        has = signature(cls).parameters
        return partial(cls, **{name: value for name, value in {"n_jobs": 1, "random_state": 0}.items() if name in has})

    return {name: one_thread(cls) for name, cls in kinds.items()}


def concurrent_sets():
    """The digits, and 2,000 x 50 in five clouds."""
    rng = np.random.default_rng(5)
    centres, y = 0.7 * rng.standard_normal((5, 50)), rng.integers(0, 5, 2000)
    return {"digits": load_digits(return_X_y=True), "2,000 x 50": (centres[y] + rng.standard_normal((2000, 50)), y)}


def at_once(work):
    """(seconds of FITS calls one by one, of as many in AT_ONCE threads, their results)."""
    start = perf_counter()
    alone = [work() for _ in range(FITS)]
    middle = perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        together = list(pool.map(lambda _: work(), range(FITS)))
    return middle - start, perf_counter() - middle, alone, together


def hashed(n_bytes):
    """What two cores give work that needs no lock of the interpreter's."""
    return hashlib.sha256(bytes(n_bytes)).digest()


def concurrent(options):
    """Wall time of sixteen fits in eight threads over half that of sixteen one by one, median of REPEATS.

    The last column is the same of hashing, which holds no lock, measured next to each: what the machine gives.
    """
    rows = []
    for name, make in kinds_of_fit().items():
        for data, (X, y) in concurrent_sets().items() if options.kind in name else ():
            make().fit(X, y)
            found, same = [], True
            for _ in range(REPEATS):
                one, many, alone, together = at_once(lambda make=make, X=X, y=y: make().fit(X, y))
                same &= all(model.coef_.tobytes() == alone[0].coef_.tobytes() for model in together)
                plain, threads, *_ = at_once(partial(hashed, 10_000_000))
                found.append((one / FITS, many / FITS, 2 * many / one, 2 * threads / plain))
                if one > LONG:
                    break
            one, many, ratio, machine = np.median(found, axis=0)
            rows.append([name, data, 1e3 * one, 1e3 * many, ratio, machine, same])
    yield table(f"{FITS} fits in {AT_ONCE} threads, two cores",
                ["fit", "data", "one by one, ms", "at once, ms", "over the fair share", "hashing", "same bits"], rows)


def subset(options):
    """Passes to a certified 1e-4 over fresh seeds, every second one in another order of the rows."""
    data = load("covtype", folder=options.data)
    X, rows = scale(data.X.astype(np.float32)), []
    for number in (2, 4, 7):
        code = np.where(data.y == np.unique(data.y)[number - 1], 1, -1)
        for l2 in (1e-3, 1e-5):
            passes = []
            for seed in range(options.seeds):
                order = np.random.default_rng(1000 + seed).permutation(len(X)) if seed % 2 else slice(None)
                model = SmSVMClassifier(l2=l2, random_state=500 + seed, max_passes=60).fit(X[order], code[order])
                passes.append(model.n_passes_)
            rows.append([number, l2, np.median(passes), max(passes)])
    yield table("Covtype, passes to a certified 1e-4", ["class", "l2", "median", "worst"], rows)


PARTS = {"small": small, "classes": classes, "pursuit": pursuit, "concurrent": concurrent, "subset": subset}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--kind", default="")
    parser.add_argument("--data")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args(arguments)
    print(heading(2))
    for part in options.part or ("small", "classes", "pursuit", "concurrent"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for text in PARTS[part](options):
                print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
