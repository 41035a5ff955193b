"""A path of penalties beside fits: fits made, reads and processor time, as multiples of one fit in its middle.

    python asv_benches/compare_paths.py [--data FOLDER] [--sets digits,cells,...] [--losses hinge,...] [--tol 1e-3]

Where FOLDER holds the sets of the race, NAME.npz, of these too: `covtype`, class 2, columns scaled. Of every set and
loss a path of 100 penalties, 1e-1 to 1e-7, and one fit at 1e-5, by one thread; then the largest gap of 1,000 penalties
between those of the path, as the path says it.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.preprocessing import scale

from cmargin import SmSVMClassifier

L2S = np.geomspace(1e-1, 1e-7, 100)


def rows(name, folder):
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X / 16, y % 2
    if name == "cells":
        X, y = load_breast_cancer(return_X_y=True)
        return scale(X), y
    if name == "noisy":
        return make_classification(60_000, 30, flip_y=0.2, random_state=100)
    with np.load(Path(folder) / f"{name}.npz") as stored:
        X, y = (stored[key] for key in ("X", "y"))
    return scale(X.astype(float), copy=False), (y == np.sort(np.unique(y))[1]).astype(int)


def timed(work, *given, **more):
    begin = time.process_time()
    return work(*given, **more), time.process_time() - begin


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--data", default=".")
    asked.add_argument("--sets", default="digits,cells,noisy")
    asked.add_argument("--losses", default="hinge,squared_hinge,logistic")
    asked.add_argument("--tol", type=float, default=1e-3)
    asked = asked.parse_args()
    warnings.simplefilter("ignore")
    between = np.exp(np.random.default_rng(0).uniform(*np.log(L2S[[-1, 0]]), 1000))
    print("set        loss            fits    reads  of a fit  seconds  of a fit  between")
    for name in asked.sets.split(","):
        X, y = rows(name, asked.data)
        for loss in asked.losses.split(","):
            model = SmSVMClassifier(l2=1e-5, loss=loss, tol=asked.tol, n_jobs=1)
            one, seconds_of_one = timed(model.fit, X, y)
            path, seconds = timed(model.path, X, y, l2s=L2S)
            largest = max(path.at(l2).duality_gap_.max() for l2 in between)
            print(f"{name:10} {loss:14} {path.n_fits:5} {path.n_passes:8.1f} {path.n_passes / one.n_passes_:9.1f} "
                  f"{seconds:8.2f} {seconds / seconds_of_one:9.1f} {largest:8.1e}", flush=True)


if __name__ == "__main__":
    main()
