"""A search for penalties beside one fit: reads, processor time and peak memory, as multiples of a fit in its middle.

    python asv_benches/compare_searches.py [--data FOLDER] [--sets cells,...] [--losses hinge,...] [--shuffle]
                                           [--rows N] [--peers]

Sets are those of `compare_paths.py`. Of every set and loss 100 penalties, 1e-1 to 1e-7, in every fold, and one fit at
1e-5, by one thread. Memory: what the process takes at most besides what it had before, in parts of X (Linux).
``--rows N``: of N rows, at random. ``--peers``: LogisticRegressionCV on the same folds and penalties, and how far its
objectives in the first fold are above a lower bound of the minimum, at worst.
"""

import argparse
import re
import warnings
from pathlib import Path

import numpy as np
from compare_paths import L2S, rows, timed
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from cmargin import SmSVMClassifier, SmSVMClassifierCV


def peak():
    """Bytes that the process has had at most since the last call of `forget_peak`."""
    return 1024 * int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1])


def forget_peak():
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peers(name, X, y, folds, seconds):
    """Print LogisticRegressionCV's seconds, as multiples of ours, and its worst relative excess in the first fold."""
    train, _ = next(StratifiedKFold(folds).split(X, y))
    signs, n = np.where(y[train] == y.max(), 1, -1), len(train)
    path = SmSVMClassifier(loss="logistic", tol=1e-5, n_jobs=1).path(X[train], y[train], l2s=L2S)
    bounds = (path.objectives * (1 - path.gaps))[:, 0]
    for solver in ("newton-cholesky", "lbfgs"):
        model = LogisticRegressionCV(Cs=1 / (L2S * n), cv=folds, solver=solver, refit=False, max_iter=10_000)
        with threadpool_limits(1):
            _, theirs = timed(model.fit, X, y)
        weights = next(iter(model.coefs_paths_.values()))[0]
        losses = np.logaddexp(0, -signs[:, None] * (X[train] @ weights[:, :-1].T + weights[:, -1])).mean(axis=0)
        excess = (losses + L2S / 2 * (weights[:, :-1]**2).sum(axis=1)) / bounds - 1
        print(f"{name:10} {solver:20} {theirs:8.2f} s, {theirs / seconds:.1f} times ours, excess up to "
              f"{excess.max():.0e}", flush=True)


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--data", default=".")
    asked.add_argument("--sets", default="digits,cells,noisy")
    asked.add_argument("--losses", default="hinge,squared_hinge,logistic")
    asked.add_argument("--tol", type=float, default=1e-3)
    asked.add_argument("--folds", type=int, default=5)
    asked.add_argument("--shuffle", action="store_true")
    asked.add_argument("--rows", type=int)
    asked.add_argument("--peers", action="store_true")
    asked = asked.parse_args()
    warnings.simplefilter("ignore")
    print("set        loss             reads  of a fit  seconds  of a fit  largest gap  memory of a fit, of the search")
    for name in asked.sets.split(","):
        X, y = rows(name, asked.data)
        if asked.shuffle or asked.rows is not None:
            order = np.random.default_rng(0).permutation(len(y))[:asked.rows]
            X, y = X[order], y[order]
        for loss in asked.losses.split(","):
            model, memory = SmSVMClassifier(l2=1e-5, loss=loss, tol=asked.tol, n_jobs=1), []
            search = SmSVMClassifierCV(L2S, cv=asked.folds, estimator=model, refit=False)
            seconds = []
            for one in (model, search):
                before = forget_peak()
                seconds.append(timed(one.fit, X, y)[1])
                memory.append((peak() - before) / X.nbytes)
            gap = search.cv_results_["max_duality_gap"].max()
            print(f"{name:10} {loss:14} {search.n_passes_:7.1f} {search.n_passes_ / model.n_passes_:9.1f} "
                  f"{seconds[1]:8.2f} {seconds[1] / seconds[0]:9.1f} {gap:12.1e} {memory[0]:16.2f} {memory[1]:15.2f}",
                  flush=True)
            if asked.peers and loss == "logistic":
                peers(name, X, y, asked.folds, seconds[1])


if __name__ == "__main__":
    main()
