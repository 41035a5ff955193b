"""Many labels: seconds, precision at 1, 3 and 5 and size of SmSVM's model, beside LinearSVC one label after the other.

    python asv_benches/compare_labels.py [--data FOLDER] [--sets bibtex delicious eurlex] [--turns 5] [--threads 1]
                                         [--labels N] [--seed 0] [--prune True 0.03] [--peers linearsvc libmultilabel
                                         omikuji] [--loss squared_hinge] [--C 1]

Squared hinge, C = 1, rows of length 1, certified 1e-3; LinearSVC with its defaults but tol=0.1. Processor time, the
median of turns that all take one after the other in one process; and reads of X per label, which no machine changes.
``--prune``: SmSVM also with ``coef_dtype="float32"`` and ``prune=True``, or that number. Where they are installed,
LibMultiLabel's one-vs-rest with its defaults, and Omikuji with its own, which are three trees; its data go through a
file, whose reading counts. The size of a model is that of its weights, of Omikuji's that of its folder.
``eurlex``: a made-up set of EUR-Lex's shape, 15,500 rows of 5,000 tf-idf columns with some 230 entries each, 3,956
labels in power law, 5 a row; LinearSVC is timed on one label in a hundred of it. ``dense-22-2000-294``,
``sparse-153-13000-500``: made up, of so many labels, rows and columns, which are correlated, or 12 entries a row.
``tinyimagenet``: 15,000 of its rows / 255, its 200 classes as labels. ``--labels``: no more than so many.
"""

import argparse
import io
import resource
import sys
import tempfile
import warnings
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
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


def drawn(seed, kind, n_labels, n, m, n_test=2000):
    """Labels in power law, by noisy directions, of dense rows with common factors or binary ones of 12 entries."""
    rng, total = np.random.default_rng(seed), n + n_test
    if kind == "dense":
        X = rng.standard_normal((total, m)) + rng.standard_normal((total, 10)) @ rng.standard_normal((10, m))
    else:
        usual = np.arange(1, m + 1) ** -0.7
        places = rng.choice(m, (total, 12), p=usual / usual.sum())
        X = sp.csr_matrix((np.ones(12 * total), places.ravel(), np.arange(0, 12 * total + 1, 12)), shape=(total, m))
        X.sum_duplicates()
        X.data[:] = 1
    scores = X @ rng.standard_normal((m, n_labels)) / np.sqrt(m if kind == "dense" else 12)
    scores += rng.standard_normal(scores.shape)
    share = 0.3 * np.arange(1, n_labels + 1) ** -0.7
    Y = sp.csr_matrix([column > np.quantile(column, 1 - part) for column, part in zip(scores.T, share, strict=True)]).T
    Y = Y.tocsr().astype(np.int8)
    return X[:n], Y[:n], X[n:], Y[n:]


def read(name, options):
    """X, labels, and those of test rows; rows of length 1."""
    if name == "eurlex":
        X, Y, X_test, Y_test = made_up(options.seed)
    elif "-" in name:
        kind, *sizes = name.split("-")
        X, Y, X_test, Y_test = drawn(options.seed, kind, *map(int, sizes))
    else:
        sys.path.insert(0, str(options.data))
        from load import load

        X, Y, X_test, Y_test = load(name, dtype=float)
    if name == "tinyimagenet":
        some, Y, Y_test = np.random.default_rng(0).permutation(len(X))[:15_000], *map(indicator, (Y, Y_test))
        return X[some] / 255, Y[some], X_test / 255, Y_test
    return normalize(X), Y, normalize(X_test), Y_test


def indicator(y):
    return sp.csr_matrix(y[:, None] == np.arange(y.max() + 1), dtype=np.int8)


def timed(fit):
    start, wall = process_time(), perf_counter()
    fit()
    return process_time() - start, perf_counter() - wall


def one_by_one(X, Y, labels, options):
    return [LinearSVC(tol=0.1, C=options.C, loss=options.loss).fit(X, Y[:, [c]].toarray().ravel()) for c in labels]


def scores_of(models, labels, X, n_labels):
    scores = np.full((X.shape[0], n_labels), -1e30)
    for c, model in zip(labels, models, strict=True):
        scores[:, c] = model.decision_function(X)
    return scores


def size_of(coef):
    """MB"""
    parts = (coef.data, coef.indices, coef.indptr) if sp.issparse(coef) else (np.asarray(coef),)
    return sum(part.nbytes for part in parts) / 1e6


class LinearSVCs:
    """LinearSVC of some labels, one after the other."""

    name = "LinearSVC"

    def __init__(self, labels, n_labels, options):
        self.labels, self.n_labels, self.options = labels, n_labels, options

    def fit(self, X, Y):
        self.models = one_by_one(X, Y, self.labels, self.options)

    def scores(self, X):
        return scores_of(self.models, self.labels, X, self.n_labels)

    def size(self):
        return 8e-6 * sum(model.coef_.size for model in self.models)


class LibMultiLabel:
    """Its one-vs-rest: LIBLINEAR's squared hinge of every label, by the primal method."""

    name = "LibMultiLabel"

    def __init__(self, n_threads):
        from libmultilabel import linear

        self.train, self.options = linear.train_1vsrest, f"-s 1 -B 1 -e 0.1 -q -m {n_threads}"

    def fit(self, X, Y):
        self.model = self.train(Y.tocsr(), X, options=self.options, verbose=False)

    def scores(self, X):
        return self.model.predict_values(X)

    def size(self):
        return size_of(self.model.weights)


class Omikuji:
    """Three trees of labels, each by balanced 2-means, with the squared hinge at every node."""

    name = "Omikuji"

    def __init__(self, n_threads, n_labels):
        from omikuji import Model

        self.Model, self.n_threads, self.n_labels = Model, n_threads, n_labels

    def fit(self, X, Y):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.txt"
            text = io.BytesIO()
            dump_svmlight_file(X, Y.tocsr(), text, multilabel=True)
            path.write_bytes(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode() + text.getvalue())
            self.model = self.Model.train_on_data(str(path), n_threads=self.n_threads)

    def scores(self, X):
        scores = np.full((X.shape[0], self.n_labels), -1e30)
        for row, (lo, hi) in enumerate(pairwise(X.indptr)):
            for label, score in self.model.predict(zip(X.indices[lo:hi], X.data[lo:hi], strict=True)):
                scores[row, label] = score
        return scores

    def size(self):
        with tempfile.TemporaryDirectory() as folder:
            self.model.save(folder)
            return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6


class Ours:
    def __init__(self, options, **more):
        self.name = f"SmSVM, prune={more['prune']}" if more else "SmSVM"
        self.model = SmSVMClassifier(C=options.C, loss=options.loss, tol=1e-3, n_jobs=options.threads, **more)

    def fit(self, X, Y):
        self.model.fit(X, Y)

    def scores(self, X):
        return self.model.decision_function(X)

    def size(self):
        return size_of(self.model.coef_)


def compare(name, options):
    X, Y, X_test, Y_test = read(name, options)
    Y, Y_test = Y.tocsc()[:, :options.labels], Y_test.tocsc()[:, :options.labels]
    n_labels = Y.shape[1]
    met = np.flatnonzero(np.diff(Y.indptr))
    labels = met[::100] if name == "eurlex" else met
    makers = {"linearsvc": lambda: LinearSVCs(labels, n_labels, options),
              "libmultilabel": lambda: LibMultiLabel(options.threads),
              "omikuji": lambda: Omikuji(options.threads, n_labels)}
    methods = [Ours(options), *(Ours(options, prune=share, coef_dtype="float32") for share in options.prune)]
    methods += [makers[peer]() for peer in options.peers if peer == "linearsvc" or find_spec(peer)]
    seconds, walls = ({method.name: [] for method in methods} for _ in range(2))
    for _ in range(options.turns):
        for method in methods:
            part = len(met) / len(labels) if method.name == "LinearSVC" else 1
            took, wall = timed(lambda method=method: method.fit(X, Y))
            seconds[method.name].append(part * took)
            walls[method.name].append(part * wall)
    rows = []
    for method in methods:
        told = method.name != "LinearSVC" or len(labels) == len(met)
        at = 100 * precision_at_k(method.scores(X_test), Y_test, AT) if told else [np.nan] * len(AT)
        reads = method.model.n_passes_per_class_.mean() if isinstance(method, Ours) else np.nan
        rows.append([name, n_labels, method.name, np.median(seconds[method.name]), np.median(walls[method.name]), reads,
                     *at, method.size() if told else np.nan])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", default=["bibtex", "delicious"])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--labels", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--loss", choices=["hinge", "squared_hinge"], default="squared_hinge")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--prune", type=lambda text: text == "True" or float(text), nargs="*", default=[True, 0.03])
    parser.add_argument("--peers", nargs="*", default=["linearsvc", "libmultilabel", "omikuji"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [row for name in options.sets for row in compare(name, options)]
    columns = ["set", "labels", "method", "processor s", "wall s", "reads", *(f"P@{k}" for k in AT), "MB"]
    print(table("Many labels", columns, rows))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
