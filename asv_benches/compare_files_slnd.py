"""SLND over rows in files beside rows in memory: test accuracy by the number of passes, and how rows lie in the file.

    python asv_benches/compare_files_slnd.py --data FOLDER [--sets mnist,tinyimagenet,covtype:2] [--windows 16]
        [--seeds N] [--loss multinomial|auto|logistic|...]

"covtype:2" is class 2 against the rest. The file is read in so many windows a pass. Rows lie in a random order or
sorted by class; ``whole windows``: sorted, and what is read together is what lies together, in a random order,
instead of pieces from all over the file. Printed is the median over the seeds of the accuracy in per cent after so
many passes, the worst difference to memory, and the same of one pass more.
"""

import argparse
import os
import tempfile
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from compare_ranks import PASSES, split_of

from cmargin import SLNDClassifier
from cmargin.data.files import open_files, windows
from cmargin.data.files import source as source
from measure.report import table

WAYS = ("random", "sorted", "whole windows")


def accuracies(X, X_test, y, y_test, way, seed, folder, n_windows, loss):
    """Test accuracy after every number of passes; the step is chosen by each fit for itself."""
    order, found = np.random.default_rng(seed).permutation(len(y)), []
    if way not in ("memory", "random"):
        order = order[np.argsort(y[order], kind="stable")]
    rows = X[order]
    if way != "memory":
        np.save(Path(folder) / "X.npy", rows)
        rows = open_files(Path(folder) / "X.npy", in_memory=False)
    whole = way == "whole windows"
    with mock.patch.object(source, "CHUNK", X.nbytes // n_windows), \
            mock.patch.object(windows, "PIECES", 1 if whole else windows.PIECES), \
            mock.patch.object(windows, "UNEVEN", 1.0 if whole else windows.UNEVEN):
        for passes in PASSES:
            fitted = SLNDClassifier(loss=loss, max_passes=passes, random_state=seed).fit(rows, y[order])
            found.append(100 * fitted.score(X_test, y_test))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", metavar="FOLDER", default=os.environ.get("CMARGIN_DATA"))
    parser.add_argument("--sets", default="mnist,tinyimagenet")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--windows", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--loss", default="multinomial")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for name in options.sets.split(","):
        X, X_test, y, y_test = split_of(name, options.data)
        with tempfile.TemporaryDirectory() as folder:
            def of(way, data=(X, X_test, y, y_test), folder=folder):
                return np.array([accuracies(*data, way, seed, folder, options.windows, options.loss)
                                 for seed in seeds])

            memory = of("memory")
            rows = [["memory", *np.median(memory, axis=0).round(2), ""]]
            for way in options.ways.split(","):
                found = of(way)
                later = (found[:, 1:3] - memory[:, :2]).min()
                rows.append([way, *np.median(found, axis=0).round(2), f"{(found - memory).min():.2f}, {later:.2f}"])
        print(table(f"{name}: accuracy after passes, {options.windows} windows, median of {options.seeds} seeds",
                    ("rows", *map(str, PASSES), "worst difference, with one pass more"), rows), flush=True)


if __name__ == "__main__":
    main()
