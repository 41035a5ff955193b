"""One cheap linear model for all classes at once: what a class classifies with whose own fit was never begun.

At w = 0 every row of every one-vs-rest problem has the same curvature, so one second moment and one factor give the
first Newton step of all of them: ridge regression of the labels -1 and +1. Beside finished classes, whose scores are
below -1 on the rows of others, its scores are on the right scale; scores of 0 would win over them everywhere. It is
made from a sample of the rows, so that it costs about a tenth of a second whatever the data.
"""

import numpy as np

from cmargin._core.losses._losses import evaluate
from cmargin.data.arrays import dense

FLOPS = 4e9                  # of the second moment of the sample, at most
FEWEST = 2000                # rows of a sample, where there are so many
RIDGE = 1e-3                 # of the mean square of a column
SCORES = 1 << 21             # scores held at a time
SEED = 12                    # of rows that are drawn at random, of which the result depends on within what it promises


class SharedStart:
    """Weights of all problems from one factor, ``W`` (n_problems, m + intercept), and their mean losses.

    ``labels``: sequence of (n,) arrays of -1 and 1, with ``sample(rows)``, (n_problems, len(rows)) of them, and
    ``order()``, rows of a class together. ``risk`` (n_problems,), the mean losses at ``W``, are inf where `evaluate`
    did not get to.
    """

    def __init__(self, source, labels, weights, intercept, l2, loss):
        self.source, self.labels, self.weights, self.intercept = source, labels, weights, intercept
        self.loss = loss
        self.W = ridge_of_sample(source, labels.order(), len(labels), labels.sample, weights, intercept, l2)
        self.risk = np.full(len(labels), np.inf)

    def evaluate(self, out_of_time):
        """Mean losses, a few classes at a time, until ``out_of_time()``."""
        n = self.source.n_rows
        at_once = max(1, SCORES // max(1, n))
        for lo in range(0, len(self.labels), at_once):
            if out_of_time():
                return
            W = self.W[lo:lo + at_once]
            labels = (self.labels[lo + k] for k in range(len(W)))
            losses = losses_at(self.source, labels, self.weights, W, self.intercept, self.loss)
            self.risk[lo:lo + at_once] = losses / n


def losses_at(source, labels, weights, W, intercept, loss):
    """(len(W),) sums of the weighted losses of problems, ``labels`` of -1 and 1, at weights W."""
    X, m, values, sums = source.X, source.n_features, np.empty((3, source.n_rows)), np.zeros(len(W))
    scores = np.asarray(X @ W[:, :m].T.astype(X.dtype), float)
    for k, (signs, w) in enumerate(zip(labels, W, strict=True)):
        evaluate(loss.id, signs * (scores[:, k] + (w[m] if intercept else 0.0)), *values, *loss.parameters)
        sums[k] = weights @ values[0]
    return sums


def ridge_of_sample(source, order, n_problems, codes_of, weights, intercept, l2):
    """`ridge` of all problems from a sample of rows: ``codes_of(rows)`` are (n_problems, len(rows)) of -1 and 1."""
    rows = sample_rows(source, order, n_problems)
    weights = np.ones(len(rows)) if weights is None else weights[rows]
    return ridge(source.take(rows, np.float64), codes_of(rows), weights, intercept, l2)


def sample_rows(source, order, n_problems):
    """Rows of a sample, ascending; nothing is drawn. ``order``: rows of a class together, so each has its share."""
    return spaced(order, sample_size(source, n_problems))


def sample_size(source, n_problems):
    n, m = source.n_rows, source.n_features
    width = max(1, source.entries // max(1, n))
    by_columns = FLOPS / max(1, m) ** 2 if m <= FEWEST else 0.0
    by_rows = np.sqrt(FLOPS / width)
    return int(min(n, max(by_columns, min(FEWEST, by_rows)), max(FEWEST, 20 * m, 5 * n_problems)))


def some_places(n_rows, size):
    """Places, ascending, of ``size`` rows that stand for all; the same ones every time."""
    size = min(n_rows, size)
    return np.sort(np.random.default_rng(SEED).choice(n_rows, size, replace=False, shuffle=False))


def spaced(order, size):
    """So many of the rows in ``order``, evenly spaced, ascending."""
    return np.sort(order[np.linspace(0, len(order) - 1, size).astype(np.intp)])


def ridge(X, Y, weights, intercept, l2):
    """argmin over W and b of sum_i s_i |Y_i - W x_i - b|^2 / sum s + ridge |W|^2.

    X (n, m), Y (n_problems, n), weights (n,). Returns (n_problems, m + intercept), 0 where numbers overflow.
    """
    n, m = X.shape
    X, Y = X.astype(float), Y.astype(float)
    X = dense(X) if m <= n else X
    s = weights / weights.sum() if weights.sum() > 0 else np.full(n, 1 / n)
    mean = np.asarray(X.T @ s).ravel() if intercept else np.zeros(m)
    level = Y @ s if intercept else np.zeros(len(Y))
    target = (Y - level[:, None]) * s
    if m <= n:
        Z = X - mean
        H = Z.T @ (Z * s[:, None])
        H[np.diag_indices(m)] += max(l2, RIDGE * np.trace(H) / max(1, m), np.finfo(float).tiny)
        W = np.linalg.solve(H, Z.T @ target.T).T
    else:
        # (Z' S Z + r)^-1 Z' S y = Z' (S Z Z' + r)^-1 S y, Z Z' from X alone: CSR rows are not centred in memory
        across = np.asarray(X @ mean).ravel()
        K = dense(X @ X.T) - across[:, None] - across + mean @ mean
        r = max(l2, RIDGE * (np.diag(K) @ s) / max(1, min(n, m)), np.finfo(float).tiny)
        A = np.linalg.solve(s[:, None] * K + r * np.eye(n), target.T)
        W = np.asarray((X.T @ A).T) - A.sum(axis=0)[:, None] * mean
    W[~np.isfinite(W).all(axis=1)] = 0.0
    return np.column_stack([W, level - W @ mean]) if intercept else W
