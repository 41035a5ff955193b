"""The joint hinge of Crammer and Singer beside LIBLINEAR's: processor seconds to the same objective; prints ratios.

    python -m asv_benches.compare_joint --data FOLDER [--sets digits,mnist,sector] [--C 0.01,1,100] [--turns 3]
                                          [--tols 0.1,0.01,0.001] [--distance 1e-3]

FOLDER holds `load.py` and the sets; digits needs none. Entries are at most 1, mnist's first 10,000 rows are taken. Ours
runs to a certified relative gap of ``distance``; LinearSVC(multi_class="crammer_singer") runs with each of ``tols`` and
at most 10,000 iterations, and its objective is evaluated at its weights: how far above the bound that ours proves it
ends, relative to it, is printed, and the time of the first that is within ``distance`` makes the ratio. One thread, by
turns, medians. The intercept is penalised, as LIBLINEAR's is.
"""

import argparse
import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from cmargin import SmSVMClassifier


def rows_of(name, folder):
    """X with entries of at most 1 and labels 0 .. k - 1."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        sys.path.insert(0, str(folder))
        from load import load  # of that folder
        X, y = load(name)[:2]
    X, y = (X[:10_000], y[:10_000]) if name == "mnist" else (X, y)
    return X.astype(float) / X.max(), np.unique(y, return_inverse=True)[1]


def objective(model, X, y, C):
    """(1 / (2 C n)) (|W|^2 + |b|^2) + mean of the joint hinges."""
    scores, rows = np.asarray(X @ model.coef_.T) + model.intercept_, np.arange(len(y))
    own = scores[rows, y].copy()
    scores[rows, y] -= 1.0
    square = np.sum(model.coef_**2) + np.sum(model.intercept_**2)
    return square / (2 * C * len(y)) + np.mean(scores.max(axis=1) + 1.0 - own)


def timed(model, X, y):
    begin = time.process_time()
    model.fit(X, y)
    return time.process_time() - begin


def compare(X, y, C, tols, turns, distance):
    """Print a line a solver: median seconds, and how far above the bound it ends."""
    ours = SmSVMClassifier(C=C, multi_class="crammer_singer", penalize_intercept=True, tol=distance, n_jobs=1)
    peers = [LinearSVC(C=C, multi_class="crammer_singer", tol=tol, max_iter=10_000, random_state=0) for tol in tols]
    seconds = np.array([[timed(model, X, y) for model in (ours, *peers)] for _ in range(turns)])
    seconds = np.median(seconds, axis=0)
    bound, ratio = ours.objective_[0] * (1 - ours.duality_gap_[0]), np.nan
    print(f"  cmargin              {seconds[0]:8.3f} s  gap {ours.duality_gap_[0]:.1e}  {ours.n_passes_:.0f} reads")
    for model, tol, spent in zip(peers, tols, seconds[1:], strict=True):
        above = objective(model, X, y, C) / bound - 1
        print(f"  LinearSVC tol={tol:<7g}{spent:8.3f} s  above {above:.1e}  {model.n_iter_} iterations")
        ratio = spent / seconds[0] if np.isnan(ratio) and above <= distance else ratio
    print(f"  ratio {ratio:.1f}" if ratio > 0 else f"  ratio above {seconds[-1] / seconds[0]:.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=None)
    parser.add_argument("--sets", default="digits,mnist,sector")
    parser.add_argument("--C", default="0.01,1,100")
    parser.add_argument("--tols", default="0.1,0.01,0.001")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--distance", type=float, default=1e-3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tols = [float(tol) for tol in options.tols.split(",")]
    with threadpool_limits(1):
        for name in options.sets.split(","):
            X, y = rows_of(name, options.data)
            for C in map(float, options.C.split(",")):
                print(f"{name} {X.shape}, {y.max() + 1} classes, C={C:g}")
                compare(X, y, C, tols, options.turns, options.distance)


if __name__ == "__main__":
    main()
