"""SLND over ranks beside one machine: test accuracy by the number of passes, ranks, and how rows lie with them.

    python asv_benches/compare_ranks.py --data FOLDER [--sets mnist,tinyimagenet,digits,covtype:2]
        [--ranks 1,2,4,8] [--seeds N] [--loss auto|logistic|...]

The ranks are threads of this process; ``--partitions 4,20``, instead: partitions of a Dask collection, whose tasks run
here, without a cluster. Rows are split at random, evenly, or by class: sorted by it, then cut; or
half or a fifth of them by class. Printed is
the median over the seeds of the accuracy in per cent after so many passes, and the worst difference to one machine.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from cmargin import SLNDClassifier
from measure.report import table
from race.data import read

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))
import ranks_in_threads
from ranks_in_threads import on_ranks
from workers_in_place import InPlace, fitted_in_place, known

PASSES = (1, 2, 3, 5)


class AtOnce(InPlace):
    """Workers in this process whose tasks are done when they are sent."""

    def everywhere(self, name, function, *columns):
        return [Done(function(*known(list(arguments), Done.result, Done))) for arguments in zip(*columns, strict=True)]


class Done:
    def __init__(self, found):
        self.found = found

    def result(self):
        return self.found


def split_of(name, folder):
    """Rows of length 1 to train on and to test by, and their labels; "covtype:2" is class 2 against the rest."""
    name, _, label = name.partition(":")
    X, y, X_test, y_test = load_digits(return_X_y=True) + (None, None) if name == "digits" else read(name, folder)
    if label:
        y, y_test = (None if labels is None else (labels == int(label)).astype(int) for labels in (y, y_test))
    if X_test is None:
        X = X if name == "digits" else X / X.std(axis=0).clip(1e-9)
        X, X_test, y, y_test = train_test_split(X, y, random_state=1, stratify=y)
    X, X_test = (np.asarray(rows, np.float32) for rows in (X, X_test))
    return *(rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-9) for rows in (X, X_test)), y, y_test


def accuracies(settings, X, X_test, y, y_test, size, how, seed, in_tasks=False):
    """Test accuracy after every number of passes; the step is chosen by each fit for itself."""
    order = np.random.default_rng(seed).permutation(len(y))
    if how != "random":
        last = {"by class": 0, "half": len(order) // 2, "fifth": 4 * len(order) // 5}[how]      # from where on by class
        order[last:] = order[last:][np.argsort(y[order[last:]], kind="stable")]
    parts, found = np.array_split(order, max(1, size)), []
    if how in ("half", "fifth"):
        mixed, sorted_ = (np.array_split(some, max(1, size)) for some in (order[:last], order[last:]))
        parts = [np.concatenate(pair) for pair in zip(mixed, sorted_, strict=True)]
    for passes in PASSES:
        def model(passes=passes):
            return SLNDClassifier(max_passes=passes, random_state=seed, n_jobs=None if size == 0 else 1, **settings)

        if size == 0:
            fitted = model().fit(X, y)
        elif in_tasks:
            order, cuts = np.concatenate(parts), np.cumsum([len(part) for part in parts])[:-1].tolist()
            fitted = fitted_in_place(model(), X[order], y[order], cuts, AtOnce())
            fitted.n_features_in_ = X.shape[1]
        else:
            fitted = on_ranks(size, lambda comm, model=model: model().fit(X[parts[comm.rank]], y[parts[comm.rank]],
                                                                          comm=comm))[0][-1]
            if isinstance(fitted, BaseException):
                raise fitted
        found.append(100 * fitted.score(X_test, y_test))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", metavar="FOLDER", default=os.environ.get("CMARGIN_DATA"))
    parser.add_argument("--sets", default="digits,mnist,tinyimagenet")
    parser.add_argument("--ranks", default="1,2,4,8")
    parser.add_argument("--partitions")
    parser.add_argument("--ways", default="random,by class")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--loss", default="auto")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ranks_in_threads.LIMIT = 3600                    # seconds that a rank is waited for: the machine may be busy
    settings = {"loss": options.loss}
    for name in options.sets.split(","):
        data, rows = split_of(name, options.data), []
        X, X_test, y, y_test = data
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        one = np.array([accuracies(settings, X, X_test, y, y_test, 0, "random", seed) for seed in seeds])
        rows.append(["one machine", "", *np.median(one, axis=0).round(2), ""])
        for size in map(int, (options.partitions or options.ranks).split(",")):
            for how in options.ways.split(","):
                found = np.array([accuracies(settings, X, X_test, y, y_test, size, how, seed,
                                             options.partitions is not None) for seed in seeds])
                later = (found[:, 1:3] - one[:, :2]).min()
                where = f"{size} {'partitions' if options.partitions else 'ranks'}"
                rows.append([where, how, *np.median(found, axis=0).round(2),
                             f"{(found - one).min():.2f}, {later:.2f}"])
        print(table(f"{name}: accuracy after passes, median of {options.seeds} seeds",
                    ("where", "rows", *map(str, PASSES), "worst difference, with one pass more"), rows), flush=True)


if __name__ == "__main__":
    main()
