"""One cheap linear model for all classes at once: what a class classifies with whose own fit was never begun.

At w = 0 every row of every one-vs-rest problem has the same curvature, so one second moment and one factor give the
first Newton step of all of them: ridge regression of the codes -1 and +1. Beside finished classes, whose scores are
below -1 on the rows of others, its scores are on the right scale; scores of 0 would win over them everywhere. It is
made from a sample of the rows, so that it costs about a tenth of a second whatever the data.
"""

import numpy as np

from cmargin._core.losses._losses import LOSS_IDS, evaluate

FLOPS = 4e9                  # of the second moment of the sample, at most
FEWEST = 2000                # rows of a sample, where there are so many
RIDGE = 1e-3                 # of the mean square of a column
SCORES = 1 << 21             # scores held at a time


class SharedStart:
    """Weights of all problems from one factor, and their objectives.

    Parameters
    ----------
    X : (n, m) array or CSR matrix
    codes : sequence of (n,) arrays of -1 and 1
        With ``sample(rows)``, (n_problems, len(rows)) of them, and ``order()``, rows of a class together.
    weights : (n,) array
    intercept : bool
    l2 : float
    loss : str

    Attributes
    ----------
    W : (n_problems, m + intercept) array
    objective : (n_problems,) array
        The objective without l1 at ``W``, inf where `evaluate` did not get to.
    """

    def __init__(self, X, codes, weights, intercept, l2, loss="hinge"):
        self.loss = LOSS_IDS[loss]
        self.X, self.codes, self.weights, self.intercept, self.l2 = X, codes, weights, intercept, l2
        rows = sample_rows(X, codes.order(), len(codes))
        self.W = ridge(X[rows], codes.sample(rows), weights[rows], intercept, l2)
        self.objective = np.full(len(codes), np.inf)

    def evaluate(self, out_of_time):
        """Objectives, a few classes at a time, until ``out_of_time()``."""
        n, m = self.X.shape
        at_once, values = max(1, SCORES // max(1, n)), np.empty((3, n))
        for lo in range(0, len(self.codes), at_once):
            if out_of_time():
                return
            group = range(len(self.codes))[lo:lo + at_once]
            W = self.W[group.start:group.stop]
            scores = np.asarray(self.X @ W[:, :m].T.astype(self.X.dtype), float)
            for k, c in enumerate(group):
                w = W[k]
                z = self.codes[c] * (scores[:, k] + (w[m] if self.intercept else 0.0))
                evaluate(self.loss, z, *values)
                self.objective[c] = self.l2 / 2 * w[:m] @ w[:m] + self.weights @ values[0] / n


def sample_rows(X, order, n_problems):
    """Rows of a sample, ascending; nothing is drawn. ``order``: rows of a class together, so each has its share."""
    n, m = X.shape
    width = max(1, X.nnz // max(1, n)) if hasattr(X, "nnz") else max(1, m)
    by_columns = FLOPS / max(1, m) ** 2 if m <= FEWEST else 0.0
    by_rows = np.sqrt(FLOPS / width)
    size = min(n, max(by_columns, min(FEWEST, by_rows)), max(FEWEST, 20 * m, 5 * n_problems))
    return np.sort(order[np.linspace(0, n - 1, int(size)).astype(np.intp)])


def ridge(X, Y, weights, intercept, l2):
    """argmin over W and b of sum_i s_i |Y_i - W x_i - b|^2 / sum s + ridge |W|^2.

    X (n, m), Y (n_problems, n), weights (n,). Returns (n_problems, m + intercept), 0 where numbers overflow.
    """
    n, m = X.shape
    X, Y = X.astype(float), Y.astype(float)
    if hasattr(X, "toarray") and m <= n:
        X = X.toarray()
    s = weights / weights.sum() if weights.sum() > 0 else np.full(n, 1 / n)
    sparse = hasattr(X, "toarray")
    mean = np.asarray(X.T @ s).ravel() if intercept else np.zeros(m)
    level = Y @ s if intercept else np.zeros(len(Y))
    target = (Y - level[:, None]) * s
    if m <= n and not sparse:
        Z = X - mean
        H = Z.T @ (Z * s[:, None])
        H[np.diag_indices(m)] += max(l2, RIDGE * np.trace(H) / max(1, m), np.finfo(float).tiny)
        W = np.linalg.solve(H, Z.T @ target.T).T
    else:
        # (Z' S Z + r)^-1 Z' S y = Z' (S Z Z' + r)^-1 S y, Z Z' from X alone: CSR rows are not centred in memory
        across = np.asarray(X @ mean).ravel()
        K = X @ X.T
        K = np.asarray(K.toarray() if sparse else K) - across[:, None] - across + mean @ mean
        r = max(l2, RIDGE * (np.diag(K) @ s) / max(1, min(n, m)), np.finfo(float).tiny)
        A = np.linalg.solve(s[:, None] * K + r * np.eye(n), target.T)
        W = np.asarray((X.T @ A).T) - A.sum(axis=0)[:, None] * mean
    W[~np.isfinite(W).all(axis=1)] = 0.0
    return np.column_stack([W, level - W @ mean]) if intercept else W
