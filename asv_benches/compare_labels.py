"""Many labels: seconds and precision at 1, 3 and 5 of SmSVM, beside LinearSVC one label after the other.

    python asv_benches/compare_labels.py [--data FOLDER] [--sets bibtex delicious eurlex] [--turns 5] [--threads 1]
                                         [--labels N] [--seed 0]

Squared hinge, C = 1, rows of length 1, certified 1e-3; LinearSVC with its defaults but tol=0.1. Processor time, the
median of turns that both take one after the other in one process; and reads of X per label, which no machine changes.
``eurlex``: a made-up set of EUR-Lex's shape, 15,500 rows of 5,000 tf-idf columns with some 230 entries each, 3,956
labels in power law, 5 a row; LinearSVC is timed on one label in a hundred of it. ``--labels``: no more than so many.
"""

import argparse
import resource
import sys
import warnings
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from cmargin import SmSVMClassifier
from cmargin.margins import precision_at_k
from measure.report import table

AT = (1, 3, 5)


def made_up(seed, n=15_500, n_test=2000, m=5000, n_labels=3956, per_row=5):
    """Rows of words of their labels and of others, as counts; X, Y, and the same of test rows."""
    rng, total = np.random.default_rng(seed), n + n_test
    chance, usual = np.arange(1, n_labels + 1) ** -0.9, np.arange(1, m + 1) ** -0.7
    chance, usual = chance / chance.sum(), usual / usual.sum()
    words = [rng.choice(m, 40, p=usual) for _ in range(n_labels)]
    labels = [np.unique(rng.choice(n_labels, 1 + rng.poisson(per_row - 1), p=chance)) for _ in range(total)]
    texts = [np.concatenate([rng.choice(m, 190, p=usual), *(rng.choice(words[label], 20) for label in row)])
             for row in labels]
    X, Y = (sp.csr_matrix((np.ones(sum(map(len, rows))), np.concatenate(rows), np.cumsum([0, *map(len, rows)])),
                          shape=(total, width)) for rows, width in ((texts, m), (labels, n_labels)))
    X.sum_duplicates()
    found = np.bincount(X.indices, minlength=m)
    X.data = (1 + np.log(X.data)) * np.log((1 + total) / (1 + found))[X.indices]
    return X[:n], Y[:n].astype(np.int8), X[n:], Y[n:].astype(np.int8)


def read(name, options):
    if name == "eurlex":
        return made_up(options.seed)
    sys.path.insert(0, str(options.data))
    from load import load

    return load(name, dtype=float)


def timed(fit):
    start, wall = process_time(), perf_counter()
    model = fit()
    return process_time() - start, perf_counter() - wall, model


def one_by_one(X, Y, labels):
    return [LinearSVC(tol=0.1).fit(X, Y[:, [c]].toarray().ravel()) for c in labels]


def scores_of(models, labels, X, n_labels):
    scores = np.full((X.shape[0], n_labels), -np.inf)
    for c, model in zip(labels, models, strict=True):
        scores[:, c] = model.decision_function(X)
    return scores


def compare(name, options):
    X, Y, X_test, Y_test = read(name, options)
    X, X_test = normalize(X), normalize(X_test)
    Y, Y_test = Y.tocsc()[:, :options.labels], Y_test.tocsc()[:, :options.labels]
    n_labels = Y.shape[1]
    met = np.flatnonzero(np.diff(Y.indptr))
    labels = met[::100] if name == "eurlex" else met
    model = SmSVMClassifier(C=1.0, loss="squared_hinge", tol=1e-3, n_jobs=options.threads)
    ours, theirs, walls = [], [], []
    for _ in range(options.turns):
        seconds, wall, _ = timed(lambda: model.fit(X, Y))
        ours, walls = [*ours, seconds], [*walls, wall]
        seconds, _, models = timed(lambda: one_by_one(X, Y, labels))
        theirs.append(seconds * len(met) / len(labels))
    rows = [[name, n_labels, "SmSVM", np.median(ours), np.median(walls), model.n_passes_per_class_.mean(),
             *(100 * precision_at_k(model.decision_function(X_test), Y_test, AT))]]
    at = 100 * precision_at_k(scores_of(models, labels, X_test, n_labels), Y_test, AT) \
        if len(labels) == len(met) else [np.nan] * len(AT)
    rows.append([name, n_labels, "LinearSVC", np.median(theirs), np.nan, np.nan, *at])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", default=["bibtex", "delicious"])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--labels", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [row for name in options.sets for row in compare(name, options)]
    columns = ["set", "labels", "method", "processor s", "wall s", "reads", *(f"P@{k}" for k in AT)]
    print(table("Many labels", columns, rows))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
