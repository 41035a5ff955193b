"""What a mechanism is worth: the same fits by two builds, or by one build twice, compared cell by cell.

    python asv_benches/ablation.py fit OUT.json [--root FOLDER] [--seeds FIRST LAST] [--cells TEXT ...] [--repeats N]
    python asv_benches/ablation.py compare WITH.json WITHOUT.json

``fit`` imports cmargin from FOLDER (a checkout built in place; the present one by default) and fits every cell of the
suite, a shape of data and a setting, once a seed. A seed makes the data, or the order and the choice of the rows of a
real set, and is the fit's ``random_state``. Real sets that are not bundled with scikit-learn are taken from the folder
that CMARGIN_DATA names, where there is one. A fit that ends at its limit of reads counts with what it took until then,
and is marked as capped. Seconds are processor seconds of one thread, the least of N fits.

``compare`` prints how the second file differs from the first: geometric means of the ratios of reads and of seconds,
over all cells and over those in which a fit came out differently, and the cells that lose most and gain most, each the
geometric mean over its seeds. A mechanism earns its lines if without it the reads or the seconds grow by 5 % in the
mean of the cells it acts in, or to 1.5 times in one of them.
"""

import argparse
import json
import os
import sys
import warnings
from functools import lru_cache
from pathlib import Path
from time import process_time

import numpy as np
import scipy.sparse as sp

MOST_READS = 300           # of a fit, which is capped then
EARNS, MUCH = 1.05, 1.5    # in the geometric mean of the cells that differ, and in one of them
SHOWN = 5                  # cells at either end


# ---------------------------------------------------------------- data: seed -> rows and labels

def noisy_plane(n, m, rng, noise=1.0, positives=0.5):
    """Correlated Gaussian columns, labels by a plane and noise; the part of the rows that is positive."""
    X = rng.standard_normal((n, m)) @ (np.eye(m) + rng.standard_normal((m, m)) / (2 * np.sqrt(m)))
    score = X @ rng.standard_normal(m) / np.sqrt(m) + noise * rng.standard_normal(n)
    return X, np.where(score > np.quantile(score, 1 - positives), 1, -1)


def clouds(n, m, rng, n_classes=2):
    centres, y = rng.standard_normal((n_classes, m)), rng.integers(0, n_classes, n)
    return 2.5 / np.sqrt(m) * centres[y] + rng.standard_normal((n, m)), y


def heavy_tailed(n, m, rng):
    X, _ = noisy_plane(n, m, rng)
    X *= rng.standard_t(2, (n, 1))
    return X, np.where(X @ rng.standard_normal(m) + np.sqrt(m) * rng.standard_normal(n) > 0, 1, -1)


def indicators(n, m, rng, standardised=True):
    """Ten measured columns beside one-hot ones, some of them of few rows, as forest cover has them."""
    X, kinds = rng.standard_normal((n, m)), m - 10
    chance = 1 / np.arange(1, kinds + 1) ** 1.5
    kind = rng.choice(kinds, n, p=chance / chance.sum())
    X[:, 10:] = kind[:, None] == np.arange(kinds)
    score = X[:, :10] @ rng.standard_normal(10) + 2 * rng.standard_normal(kinds)[kind] + 2 * rng.standard_normal(n)
    if standardised:
        X = (X - X.mean(0)) / np.maximum(X.std(0), 1e-12)
    return X, np.where(score > 1, 1, -1)


def text(n, m, each, rng, n_classes=2):
    """CSR rows of ``each`` entries, columns by Zipf's law, of length 1."""
    columns = np.minimum(m - 1, (m ** rng.random((n, each)) - 1).astype(np.int64))
    X = sp.csr_matrix((rng.exponential(size=n * each), (np.repeat(np.arange(n), each), columns.ravel())), (n, m))
    X.data /= np.repeat(np.sqrt(np.asarray(X.multiply(X).sum(1)).ravel()), np.diff(X.indptr))
    scores = X @ rng.standard_normal((m, n_classes)) + 0.3 * rng.standard_normal((n, n_classes))
    return X, scores.argmax(1)


@lru_cache(maxsize=2)
def stored(name):
    from cmargin.datasets import load
    data = load(name)
    X = data.X.astype(float) if sp.issparse(data.X) else np.asarray(data.X, np.float32)
    if name in ("covtype", "breast_cancer", "wine", "australian", "colon"):
        X = (X - X.mean(0)) / np.maximum(X.std(0), 1e-6)
    return X / 255 if name == "mnist" else X, np.asarray(data.y)


def real(name, n, rng, positive=None):
    """At most n rows of a set in a random order, one class against the rest where one is named."""
    X, y = stored(name)
    rows = rng.permutation(X.shape[0])[:min(n, int(0.9 * X.shape[0]))]
    y = y[rows]
    return X[rows], y if positive is None else np.where(y == positive, 1, -1)


def cover(kind, n=100_000):
    return lambda rng: real("covtype", n, rng, kind - 1)         # codes begin at 0


# ---------------------------------------------------------------- the suite

SMSVM = [dict(loss=loss, l2=l2) for loss in ("hinge", "squared_hinge", "logistic") for l2 in (1e-2, 1e-4, 1e-6)]
SOME = [dict(loss=loss, l2=l2) for loss in ("hinge", "squared_hinge", "logistic") for l2 in (1e-2, 1e-5)]
SPARSE = [dict(loss=loss, l2=0.0, l1=l1) for loss in ("hinge", "squared_hinge", "logistic") for l1 in (1e-2, 1e-4)]
FEW_SPARSE = [dict(loss=loss, l2=1e-6, l1=1e-3) for loss in ("hinge", "squared_hinge", "logistic")]
HINGE = [dict(loss="hinge", l2=l2) for l2 in (1e-3, 1e-5, 1e-7)]
WEAK = [dict(loss=loss, l2=1e-7) for loss in ("squared_hinge", "logistic")]
SQUARED = [dict(loss="squared_hinge", l2=l2) for l2 in (1e-3, 1e-4, 1e-6)]
PURSUIT = [dict(estimator="MarginPursuitClassifier", l2=l2) for l2 in (1e-2, 1e-4)]
LOW_RANK = [dict(estimator="SLNDClassifier")]
MULTINOMIAL = [dict(estimator="SLNDClassifier", loss="multinomial", l2=l2) for l2 in (1e-3, 1e-5)]

# name: rows and labels from a generator, type of the rows, settings, whether they are in CMARGIN_DATA
SUITE = {
    "60 x 20": (lambda rng: noisy_plane(60, 20, rng), "d", SMSVM + SPARSE, False),
    "400 x 200": (lambda rng: noisy_plane(400, 200, rng), "d", SMSVM + SPARSE, False),
    "60 x 2,000": (lambda rng: noisy_plane(60, 2000, rng), "d", SOME + FEW_SPARSE, False),
    "3,000 x 60 plane": (lambda rng: noisy_plane(3000, 60, rng), "d", SMSVM + SPARSE + PURSUIT, False),
    "8,000 x 100 clouds": (lambda rng: clouds(8000, 100, rng), "f", SMSVM + PURSUIT, False),
    "4,000 x 300 plane": (lambda rng: noisy_plane(4000, 300, rng, 0.3), "f", SMSVM[3:6], False),
    "20,000 x 300": (lambda rng: noisy_plane(20_000, 300, rng), "f", SOME, False),
    "50,000 x 30 rare class": (lambda rng: noisy_plane(50_000, 30, rng, 0.5, 0.01), "d", SOME + FEW_SPARSE, False),
    "40,000 x 30 heavy tails": (lambda rng: heavy_tailed(40_000, 30, rng), "d", SOME, False),
    "30,000 x 60 indicators": (lambda rng: indicators(30_000, 60, rng), "d", SOME, False),
    "100,000 x 54 indicators": (lambda rng: indicators(100_000, 54, rng), "f", HINGE + WEAK, False),
    "6,000 x 40 indicators": (lambda rng: indicators(6000, 40, rng, False), "f", SOME + FEW_SPARSE, False),
    "2,000 x 5,000 text": (lambda rng: text(2000, 5000, 30, rng), "d", SOME + SPARSE[1::2] + FEW_SPARSE, False),
    "20,000 x 40 CSR": (lambda rng: text(20_000, 40, 6, rng), "d", SOME, False),
    "4,000 x 2,000 text, 8 classes": (lambda rng: text(4000, 2000, 20, rng, 8), "d", MULTINOMIAL, False),
    "4,000 x 60 clouds, 6 classes": (lambda rng: clouds(4000, 60, rng, 6), "f", [*MULTINOMIAL, *LOW_RANK, HINGE[0]],
                                     False),
    "breast cancer": (lambda rng: real("breast_cancer", 600, rng), "d", SMSVM + SPARSE[::2] + PURSUIT, False),
    "digits": (lambda rng: real("digits", 1800, rng), "f", SOME[::2] + MULTINOMIAL[:1] + LOW_RANK, False),
    "australian": (lambda rng: real("australian", 700, rng), "d", SMSVM, True),
    "colon": (lambda rng: real("colon", 60, rng), "d", SOME + FEW_SPARSE, True),
    "a9a": (lambda rng: real("a9a", 15_000, rng), "d", SOME, True),
    "mnist 3": (lambda rng: real("mnist", 8000, rng, 3), "f", SOME + SQUARED[:2] + PURSUIT[:1], True),
    "mnist 8": (lambda rng: real("mnist", 5000, rng, 8), "f", SQUARED, True),
    "banking77 3": (lambda rng: real("banking77_embedded", 8000, rng, 3), "f", SQUARED, True),
    "tinyimagenet 3": (lambda rng: real("tinyimagenet", 3000, rng, 3), "f", SQUARED[::2], True),
    "mnist 3, 28,000 rows": (lambda rng: real("mnist", 28_000, rng, 3), "f", [SOME[0], SOME[4]], True),
    "forest cover 2": (cover(2), "f", HINGE + WEAK + [dict(loss="hinge", l2=1e-6, l1=1e-4)] + PURSUIT[:1], True),
    "forest cover 4": (cover(4), "f", HINGE, True),
    "forest cover 7": (cover(7), "f", HINGE, True),
    "forest cover 2, all": (cover(2, 522_000), "f", HINGE, True),
    "forest cover 5, all": (cover(5, 522_000), "f", HINGE[1:2], True),
    "forest cover 7, all": (cover(7, 522_000), "f", HINGE[1:2], True),
}


def named(data, setting):
    shown = (f"{key} {value:g}" if isinstance(value, float) else value.removesuffix("Classifier")
             for key, value in setting.items() if value != 0)
    return ", ".join([data, *shown])


def cells(wanted=()):
    """(name of the data, name of the cell, settings) of those whose name holds one of ``wanted``."""
    at_hand = bool(os.environ.get("CMARGIN_DATA"))
    for data, (_, _, settings, elsewhere) in SUITE.items():
        for setting in settings if at_hand or not elsewhere else ():
            name = named(data, setting)
            if not wanted or any(part in name for part in wanted):
                yield data, name, setting


@lru_cache(maxsize=1)
def rows_of(data, seed):
    make, dtype, _, _ = SUITE[data]
    X, y = make(np.random.default_rng(seed))
    return X.astype(dtype, copy=False), y


def fitted(data, setting, seed):
    """One fit: reads, iterations, largest certified gap, whether it was capped, processor seconds."""
    import cmargin
    setting = dict(setting)
    name = setting.pop("estimator", "SmSVMClassifier")
    limit = MOST_READS if name == "SmSVMClassifier" else 100
    model = getattr(cmargin, name)(random_state=seed, n_jobs=1, max_passes=limit, **setting)
    X, y = rows_of(data, seed)
    with warnings.catch_warnings(record=True) as received:
        warnings.simplefilter("always")
        start = process_time()
        model.fit(X, y)
        seconds = process_time() - start
    return {"reads": float(np.mean(model.n_passes_)), "iterations": float(np.mean(model.n_iter_)),
            "gap": float(np.max(getattr(model, "duality_gap_", np.nan))), "seconds": seconds,
            "capped": any(warning.category.__name__ == "ConvergenceWarning" for warning in received)}


def fit(options):
    sys.path.insert(0, str(Path(options.root).resolve()))
    found, first, last = [], *options.seeds
    for seed in range(first, last + 1):
        for data, name, setting in cells(options.cells):
            fits = [fitted(data, setting, seed) for _ in range(options.repeats)]
            found.append({"cell": name, "seed": seed, **min(fits, key=lambda received: received["seconds"])})
        print(seed, len(found), flush=True)
    Path(options.out).write_text(json.dumps(found), encoding="utf-8")


# ---------------------------------------------------------------- the comparison

def geometric_mean(ratios):
    return float(np.exp(np.mean(np.log(ratios)))) if len(ratios) else np.nan


def pairs(before, after):
    """{cell: [(fit before, fit after)]} of the same seeds."""
    known, of_cell = {(fit["cell"], fit["seed"]): fit for fit in before}, {}
    for received in after:
        if (received["cell"], received["seed"]) in known:
            of_cell.setdefault(received["cell"], []).append((known[received["cell"], received["seed"]], received))
    return of_cell


def outcome(fit):
    return [repr(fit[name]) for name in ("reads", "iterations", "gap")]          # NaN is NaN here


def compared(before, after):
    """Lines on how two lists of fits differ."""
    of_cell = pairs(before, after)
    yield (f"{len(after)} fits, capped: {sum(fit['capped'] for fit in before)} with, "
           f"{sum(fit['capped'] for fit in after)} without")
    acts = [cell for cell, found in of_cell.items() if any(outcome(old) != outcome(new) for old, new in found)]
    for what in ("reads", "seconds"):
        found = {cell: geometric_mean([new[what] / old[what] for old, new in fits]) for cell, fits in of_cell.items()}
        order = sorted(acts, key=found.get)
        mean, of_all = (geometric_mean([found[cell] for cell in some]) for some in (order, found))
        earns = bool(order) and (mean >= EARNS or found[order[-1]] >= MUCH)
        yield (f"{what}: geometric mean {of_all:.3f} of {len(found)} cells, {mean:.3f} of the {len(acts)} that differ; "
               f"{'earns' if earns else 'does not earn'} its lines by this")
        yield from (f"    {found[cell]:7.3f}  {cell}" for cell in [*order[:-SHOWN - 1:-1], *order[:SHOWN]])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(required=True)
    runs = parts.add_parser("fit")
    runs.add_argument("out")
    runs.add_argument("--root", default=Path(__file__).parents[1], help="the checkout whose build fits")
    runs.add_argument("--seeds", type=int, nargs=2, default=(91000, 91019), metavar=("FIRST", "LAST"))
    runs.add_argument("--cells", nargs="*", default=(), help="parts of the names of those wanted")
    runs.add_argument("--repeats", type=int, default=1)
    runs.set_defaults(work=fit)
    shows = parts.add_parser("compare")
    shows.add_argument("before")
    shows.add_argument("after")
    shows.set_defaults(work=lambda options: print("\n".join(compared(*(
        json.loads(Path(name).read_text(encoding="utf-8")) for name in (options.before, options.after))))))
    options = parser.parse_args(argv)
    options.work(options)


if __name__ == "__main__":
    main()
