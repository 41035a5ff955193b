"""Approximate inverses of the multinomial Hessian, preconditioners of conjugate gradients (ours).

`KroneckerInverse`: the Hessian is nearly A (x) S, the mean of diag(p) - p p' over classes and the covariance of the
rows; S by its leading eigenpairs, the rest scaled, as everywhere in this package. `ClassInverse`: the diagonal block
of every class, exactly, on a subset of the rows; dear to make, and worth it where conjugate gradients are many.

Both act on gradients of shape (n_columns, n_classes), intercepts last. With an intercept b = c - <w, mean of the
rows>, so that w and c hardly couple.
"""

import numpy as np

from cmargin._core.multinomial._inverse import ClassBlocks, Kronecker, rows_above
from cmargin.data.arrays import FULL, dense, squares
from cmargin.data.memory.softmax_rows import SLICE_FLOPS

SAMPLE = 1024                # rows behind S: the order of the matrix that is taken apart
RANK = 64                    # 64, 256 and 512 pairs took the same number of products (doc/lab-notebook)
SPARE = 16                   # more columns in subspace iteration than pairs wanted
SINGLE = 1e-6                # of squared means: what float32 rows leave of a difference of them
NOTHING = 1e-7               # of the largest eigenvalue: what float32 rows leave of a zero
MOST_FEATURES = 2048         # of ClassInverse
MOST_NUMBERS = 1 << 26       # in the factors of all classes: 256 MB
MOST_FLOPS = 2e10            # of one class, as nobody looks at the clock: less than half a second
FIRST = 4                    # products before the first ClassInverse, at least
LITTLE_READS = 12.0          # that one of more rows may cost even where one of the sample costs less
PLENTY = 32                  # rows that count a column: more would not make a class's block any better
LITTLE = 0.1                 # of a class's mean curvature: a row of no more is not worth its part in the block


def without_mean(G):
    """The part of G (n_columns, n_classes) that sums to 0 over the classes: nothing else ever moves."""
    return G - G.mean(axis=1, keepdims=True)


def centred_pairs(X, weight, rank, centred):
    """Mean of the rows of X (float32, dense or CSR) and leading eigenpairs of their second moment about it.

    From the Gram matrix of the rows or, where they have fewer columns than there are rows, the second moment itself.
    Without ``centred``, about 0. Returns the mean (n_features,), values (k + 1,), descending, the last one that of the
    rest, and vectors (n_features, k) float32.
    """
    n, m = X.shape
    s = weight / weight.sum()
    mean = np.asarray(s @ X).ravel() if centred else np.zeros(m)
    k, root = min(rank, n - 1, m - (m < n)), np.sqrt(s)
    if m < n:
        rows = dense(X) - mean.astype(np.float32)
        rows *= root.astype(np.float32)[:, None]
        values, vectors = pairs_of((rows.T @ rows).astype(np.float64), k + 1)
        keep = large_enough(values)
        return mean, np.append(np.maximum(values[keep], 0.0), rest_of(values)), vectors[keep].T.astype(np.float32)
    gram = dense(X @ X.T).astype(np.float64)
    if centred:
        to_mean = gram @ s
        gram += s @ to_mean - to_mean[:, None] - to_mean
    gram *= root[:, None] * root
    values, Q = pairs_of(gram, k + 1)
    keep = large_enough(values)
    coefficients = root[:, None] * Q[keep].T
    vectors = np.asarray(X.T @ coefficients.astype(np.float32)) - np.outer(mean, coefficients.sum(axis=0))
    return mean, np.append(values[keep], rest_of(values)), (vectors / np.sqrt(values[keep])).astype(np.float32)


def no_pairs(X, weight, centred):
    """What `centred_pairs` returns, of rank 0, everything scaled by the mean eigenvalue; and their sum."""
    s = weight / weight.sum()
    mean = np.asarray(s @ X).ravel() if centred else np.zeros(X.shape[1])
    centre, of_rows = mean @ mean, np.asarray(squares(X).sum(axis=1)).ravel()
    total = max(s @ of_rows - centre, 0.0) + SINGLE * centre    # no less than what single precision has lost
    return (mean, np.array([total / min(X.shape)]), np.empty((X.shape[1], 0), np.float32)), total


def pairs_cost(source):
    """Work of `centred_pairs`, over that of a read of all rows.

    The time of the pairs is close to linear in the order of the matrix: 7e5 operations of a read a row of it (measured
    from 50 to 1,024). The matrix itself is made four times as fast as a read goes, and CSR rows are read at an eighth.
    """
    n = min(source.n_rows, SAMPLE)
    order, read = min(n, source.n_features), 4.0 * source.entries * source.n_classes
    return (7e5 * order + 0.5 * n * source.n_features * order) / max(1.0, read * (8 if source.sparse else 1))


def pairs_pay_off(source, total, curvature, l2):
    """Whether so many products without pairs are to be expected that making these costs less.

    ``total``: sum of the eigenvalues of S; ``curvature``: A. The Hessian, close to A (x) S + l2, has a condition of at
    most 1 + |A| total / l2, |A| by the sums of its rows; conjugate gradients take about twice its root of products.
    """
    condition = 1.0 + min(0.5, 2.0 * np.max(np.diag(curvature))) * total / l2
    return not 2.0 * np.sqrt(condition) + 1.0 < pairs_cost(source)         # nor where it overflows


def pairs_of(S, k):
    """Leading eigenpairs of a symmetric S, vectors as rows: of a large one those of two rounds of subspace iteration,
    as good for a preconditioner and quicker to find (doc/lab-notebook, "S of the Kronecker inverse by 64 pairs of 1,024
    rows")."""
    if not np.isfinite(S).all():
        raise ValueError("X holds values so large that sums of their squares overflow in single precision; "
                         "scale the features.")
    n, width = len(S), k + SPARE
    Q = None
    if n > 2 * width:
        Q = np.random.default_rng(0).standard_normal((n, width))
        for _ in range(2):
            Q = np.linalg.qr(S @ Q)[0]
        S = Q.T @ (S @ Q)
    values, vectors = np.linalg.eigh(S)      # all of them by dsyevd: sooner than 65 by dsyevr (doc/lab-notebook)
    leading = vectors.T[:-k - 1:-1]
    return values[:-k - 1:-1], leading if Q is None else leading @ Q.T


def large_enough(values):
    """Places of all ``values`` (descending) but the last that rounding has not made."""
    return np.flatnonzero(values[:-1] > NOTHING * values[0])


def rest_of(values):
    """What stands for the eigenvalues behind the pairs: no less than single precision leaves of them, or an inverse
    that is all rest would multiply that by 1 / l2."""
    return max(values[-1], NOTHING * values[0])


class KroneckerInverse(Kronecker):
    """(A (x) S + l2)^-1; A is renewed by `update`. ``pairs``: of S, from `centred_pairs`."""

    cost = 0.0

    def __init__(self, source, pairs, l2):
        self.pairs = self.mean, values, vectors = pairs
        super().__init__(self.mean, values, np.ascontiguousarray(vectors), source.n_classes, l2, source.intercept,
                         source.n_threads)


def class_inverse_sample(source):
    """Rows that a `ClassInverse` is made from, or 0 where it would be too large, or CSR rows have many zeros."""
    d = source.n_features
    if source.sparse and source.n_rows * d > FULL * source.entries:
        return 0
    n = min(source.n_rows, max(8 * d, 2000))
    small = d <= MOST_FEATURES and d * d * source.n_classes <= MOST_NUMBERS
    quick = n * d * d <= MOST_FLOPS or class_inverse_cost(source, n) <= LITTLE_READS
    return n if small and quick else 0


def class_inverse_cost(source, n):
    """Work of making a `ClassInverse` from n rows, over that of a read of all rows.

    n d^2 + d^3 / 3 a class beside 4 n_rows d, which run at two fifths of the speed, or at four fifths where rows are in
    single precision, as the former always are (measured on mnist and on random rows). The same is said of
    CSR rows with few zeros (`FULL`), though their reads take longer.
    """
    return (n * source.n_features + source.n_features**2 / 3) / ((5.0 if source.single else 10.0) * source.n_rows)


def rows_that_count(probs, weight):
    """How many have more than LITTLE of a class's mean curvature, on average over the classes."""
    return rows_above(probs, weight, LITTLE)


class ClassInverse(ClassBlocks):
    """((1/N) sum_i s_i p_ic (1 - p_ic) (x_i - m_c)(x_i - m_c)' + l2)^-1 of every class, m_c their mean by that weight.

    X (n, n_features) float32 is the rows ``subset`` of ``source``, ``probs`` (n, n_classes) float32 theirs; None: those
    at hand. ``sound`` says whether single precision could hold it.
    """

    def __init__(self, source, X, subset, l2, probs=None):
        probs = source.probs_of(subset) if probs is None else probs
        self.probs, weight = probs, source.weight_of(subset)
        super().__init__(X, probs, weight / weight.sum(), l2, source.intercept, source.n_threads, LITTLE)
        self.cost, self.sound = class_inverse_cost(source, rows_that_count(probs, weight)), True
        flops = len(X) * float(source.n_features) ** 2
        together = max(1, int(SLICE_FLOPS / (flops * source.n_threads))) * source.n_threads
        for first in range(0, source.n_classes, together):
            source.between_slices()
            self.sound &= self.make(first, min(first + together, source.n_classes))
