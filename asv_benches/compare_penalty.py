"""Margin pursuit's default penalty, l2="auto", beside the best of 1e-8, 1e-7, ... 1e-2.

    python asv_benches/compare_penalty.py [--data FOLDER] [--sets digits,rare,...] [--seeds 100,101,102] [--threads 1]

Few rows of many kinds, as named in `SETS`, and other rows to test on: bundled and made-up ones, and where FOLDER holds
the sets of the race, NAME.npz, of these. The best penalty is that of the test rows. A line of every set: test
accuracies, median over the seeds, then the default less the best of the seed, median and worst. The rule was made on
seeds 0 and 1, and its loss chosen on 200 to 219.
"""

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler, normalize

from cmargin import MarginPursuitClassifier
from race.data import read

GRID = 10.0 ** np.arange(-8, -1)
MOST_TEST_ROWS = 3000


def overlapping(seed, n_columns, n_classes, per_class, separation=0.6):
    """Unit rows around one common direction."""
    r = np.random.default_rng(seed)
    base, centres = r.standard_normal(n_columns), r.standard_normal((n_classes, n_columns))
    y, t = np.repeat(np.arange(n_classes), per_class), np.repeat(np.arange(n_classes), 20)
    X, T = (normalize(base + separation * centres[k] + 1.2 * r.standard_normal((len(k), n_columns))) for k in (y, t))
    return X, y, T, t


def rare(seed, n_rows=200, n_columns=400, share=0.1):
    """One of ten rows is of the class looked for, as many columns as rows, or twice as many."""
    r = np.random.default_rng(seed)
    y = (r.random(n_rows + MOST_TEST_ROWS) < share).astype(int)
    X = r.standard_normal((len(y), n_columns))
    X[:, :20] += y[:, None]
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def part_of(seed, X, y, n_rows, test=None, per_class=False, scaled=False):
    """``n_rows`` rows, or so many a class, of X, and rows to test on: ``test``, or others of X."""
    r = np.random.default_rng(seed)
    order = r.permutation(len(y))
    if per_class:
        order = np.concatenate([order[y[order] == c][:n_rows] for c in np.unique(y)])
        n_rows = len(order)
    rows = order[:n_rows]
    T, t = test if test is not None else (X[order[n_rows:]], y[order[n_rows:]])
    X, y, T, t = X[rows], y[rows], T[:MOST_TEST_ROWS], t[:MOST_TEST_ROWS]
    if scaled:
        scaler = StandardScaler().fit(X)
        X, T = scaler.transform(X), scaler.transform(T)
    return X, y, T, t


def of_the_race(name, n_rows, scaled=False, **how):
    def rows(seed, folder):
        X, y, T, t = read(name, folder)
        change = (lambda A: A.astype(float)) if scaled or name != "mnist" else (lambda A: A / 255.0)
        return part_of(seed, change(X), y, n_rows, None if T is None else (change(T), t), scaled=scaled, **how)

    rows.from_folder = True
    return rows


SETS = {
    "overlapping 384 x 50 x 8": lambda seed: overlapping(seed, 384, 50, 8),
    "overlapping 384 x 150 x 2": lambda seed: overlapping(seed, 384, 150, 2),
    "rare": rare, "rare 120 x 100": lambda seed: rare(seed, 120, 100, 0.15),
    "digits": lambda seed: part_of(seed, *load_digits(return_X_y=True), 100, scaled=True),
    "digits 900": lambda seed: part_of(seed, *load_digits(return_X_y=True), 900, scaled=True),
    "breast cancer": lambda seed: part_of(seed, *load_breast_cancer(return_X_y=True), 100, scaled=True),
    "banking77_embedded x 5": of_the_race("banking77_embedded", 5, per_class=True),
    "banking77_embedded x 20": of_the_race("banking77_embedded", 20, per_class=True),
    "banking77 x 5": of_the_race("banking77", 5, per_class=True),
    "mnist 500": of_the_race("mnist", 500), "tinyimagenet 400": of_the_race("tinyimagenet", 400, scaled=True),
    "a9a 1000": of_the_race("a9a", 1000), "covtype 1000": of_the_race("covtype", 1000, scaled=True),
    "hflights 3000": of_the_race("hflights", 3000),
    "covtype 400": of_the_race("covtype", 400, scaled=True), "colon 40": of_the_race("colon", 40, scaled=True),
}


def accuracies(rows, threads):
    """Of the default, and of every penalty of the grid, in %."""
    X, y, T, t = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [100 * MarginPursuitClassifier(l2=l2, trace=False, n_jobs=threads).fit(X, y).score(T, t)
                for l2 in ("auto", *GRID)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", default="100,101,102")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    print("| rows | default | best of 1e-8 to 1e-2 | 1e-8 | default less best: median | worst |")
    print("|---|---|---|---|---|---|")
    for name in options.sets.split(","):
        make = SETS[name]
        folder = (options.data,) * hasattr(make, "from_folder")
        if folder and options.data is None:
            continue
        found = np.array([accuracies(make(int(seed), *folder), options.threads)
                          for seed in options.seeds.split(",")])
        best = found[:, 1:].max(axis=1)
        less = found[:, 0] - best
        middle = np.median(np.column_stack([found[:, 0], best, found[:, 1], less]), axis=0)
        figures = [f"{number:.1f}" for number in middle[:3]] + [f"{middle[3]:+.1f}", f"{less.min():+.1f}"]
        print("| " + " | ".join([name, *figures]) + " |", flush=True)


if __name__ == "__main__":
    main()
