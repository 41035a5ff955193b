"""Approximate inverses of the multinomial Hessian, preconditioners of conjugate gradients (ours).

`KroneckerInverse`: the Hessian is nearly A (x) S, the mean of diag(p) - p p' over classes and the covariance of the
rows; S by its leading eigenpairs, the rest scaled, as everywhere in this package. `ClassInverse`: the diagonal block
of every class, exactly, on a subset of the rows; dear to make, and worth it where conjugate gradients are many.

Both act on gradients of shape (n_columns, n_classes), intercepts last. With an intercept b = c - <w, mean of the
rows>, so that w and c hardly couple.
"""

import numpy as np

from cmargin._core.linalg._eigh import top_eigenpairs
from cmargin._core.newton._multinomial_inverse import ClassBlocks, Kronecker, rows_above
from cmargin.homes.arrays import dense
from cmargin.homes.softmax_rows import SLICE_FLOPS

SAMPLE = 1024                # rows behind S: the order of the matrix that is taken apart
RANK = 64                    # 64, 256 and 512 pairs took the same number of products (doc/decisions.md)
SPARE = 16                   # more columns in subspace iteration than pairs wanted
NOTHING = 1e-7               # of the largest eigenvalue: what float32 rows leave of a zero
MOST_FEATURES = 2048         # of ClassInverse
MOST_NUMBERS = 1 << 26       # in the factors of all classes: 256 MB
MOST_READS = 12.0            # what making a ClassInverse may cost, in reads of the rows
LITTLE = 0.1                 # of a class's mean curvature: a row of no more is not worth its part in the block


def without_mean(G):
    """The part of G (n_columns, n_classes) that sums to 0 over the classes: nothing else ever moves."""
    return G - G.mean(axis=1, keepdims=True)


def centred_pairs(X, weight, rank, centred):
    """Mean of the rows of X (float32, dense or CSR) and leading eigenpairs of their second moment about it.

    From the Gram matrix of the rows or, where they have fewer columns than there are rows, the second moment itself.
    Without ``centred``, about 0.

    Returns
    -------
    mean : (n_features,) float64 array
    values : (k + 1,) array, descending; the last one is that of the rest
    vectors : (n_features, k) float32 array
    """
    n, m = X.shape
    s = weight / weight.sum()
    mean = np.asarray(s @ X).ravel() if centred else np.zeros(m)
    k, root = min(rank, n - 1, m - (m < n)), np.sqrt(s)
    if m < n:
        rows = dense(X) - mean.astype(np.float32)
        rows *= root.astype(np.float32)[:, None]
        values, vectors = pairs_of((rows.T @ rows).astype(np.float64), k + 1)
        keep = worth_keeping(values)
        return mean, np.append(np.maximum(values[keep], 0.0), max(values[-1], 0.0)), vectors[keep].T.astype(np.float32)
    gram = dense(X @ X.T).astype(np.float64)
    if centred:
        to_mean = gram @ s
        gram += s @ to_mean - to_mean[:, None] - to_mean
    gram *= root[:, None] * root
    values, Q = pairs_of(gram, k + 1)
    keep = worth_keeping(values)
    coefficients = root[:, None] * Q[keep].T
    vectors = np.asarray(X.T @ coefficients.astype(np.float32)) - np.outer(mean, coefficients.sum(axis=0))
    return mean, np.append(values[keep], max(values[-1], 0.0)), (vectors / np.sqrt(values[keep])).astype(np.float32)


def pairs_of(S, k):
    """Leading eigenpairs of a symmetric S, vectors as rows: of a large one those of two rounds of subspace iteration,
    as good for a preconditioner and quicker to find (doc/decisions.md, "S of the Kronecker inverse by 64 pairs of 1,024
    rows")."""
    if not np.isfinite(S).all():
        raise ValueError("X holds values so large that sums of their squares overflow in single precision; "
                         "scale the features.")
    n, width = len(S), k + SPARE
    if n <= 2 * width:
        return top_eigenpairs(S, k)
    Q = np.random.default_rng(0).standard_normal((n, width))
    for _ in range(2):
        Q = np.linalg.qr(S @ Q)[0]
    values, vectors = top_eigenpairs(Q.T @ (S @ Q), k)
    return values, vectors @ Q.T


def worth_keeping(values):
    """Places of all ``values`` (descending) but the last that rounding has not made."""
    return np.flatnonzero(values[:-1] > NOTHING * values[0])


class KroneckerInverse(Kronecker):
    """(A (x) S + l2)^-1; A is renewed by `update`."""

    cost = 0.0

    def __init__(self, home, subset, l2, pairs=None):
        if pairs is None:
            pairs = centred_pairs(home.copy_of(subset), home.weight[subset], RANK, home.intercept)
        self.pairs = self.mean, values, vectors = pairs
        super().__init__(self.mean, values, np.ascontiguousarray(vectors), home.n_classes, l2, home.intercept,
                         home.n_threads)


def class_inverse_sample(home):
    """Rows that a `ClassInverse` is made from, or 0 where it is not worth its cost."""
    d = home.n_features
    n = min(home.n_rows, max(8 * d, 2000))
    small = d <= MOST_FEATURES and d * d * home.n_classes <= MOST_NUMBERS
    return n if small and not home.sparse and class_inverse_cost(home, n) <= MOST_READS else 0


def class_inverse_cost(home, n):
    """Work of making a `ClassInverse` from n rows, over that of a read of all rows.

    n d^2 + d^3 / 3 a class beside 4 n_rows d, which run at two fifths of the speed (measured on mnist).
    """
    return (n * home.n_features + home.n_features**2 / 3) / (10.0 * home.n_rows)


def rows_that_count(probs, weight):
    """How many have more than LITTLE of a class's mean curvature, on average over the classes."""
    return rows_above(probs, weight, LITTLE)


class ClassInverse(ClassBlocks):
    """((1/N) sum_i s_i p_ic (1 - p_ic) (x_i - m_c)(x_i - m_c)' + l2)^-1 of every class, m_c their mean by that weight.

    Parameters
    ----------
    home : SoftmaxRowPass
    X : (n, n_features) float32 array
        The rows ``subset``.
    subset : (n,) array
    l2 : float
    probs : (n, n_classes) float32 array or None
        Of these rows; None: those at hand.

    Attributes
    ----------
    probs : as above
    sound : bool
        Whether single precision could hold it.
    """

    def __init__(self, home, X, subset, l2, probs=None):
        probs = home.probs[subset].astype(np.float32, copy=False) if probs is None else probs
        self.probs, weight = probs, home.weight[subset]
        super().__init__(X, probs, weight / weight.sum(), l2, home.intercept, home.n_threads, LITTLE)
        self.cost, self.sound = class_inverse_cost(home, rows_that_count(probs, weight)), True
        flops = len(X) * float(home.n_features) ** 2
        together = max(1, int(SLICE_FLOPS / (flops * home.n_threads))) * home.n_threads
        for first in range(0, home.n_classes, together):
            home.between_slices()
            self.sound &= self.make(first, min(first + together, home.n_classes))
