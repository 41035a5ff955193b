"""Dense rows in memory by all their products with each other, which are made once for all problems on them."""

import numpy as np
from scipy.linalg.blas import dsyrk

from cmargin._core.gram._gram_rows import GramProblem, GramRows, rows_without_products

AT_ONCE = 256                  # rows of K that are completed at a time
FARTHEST = 0.5                 # of a row from the middle of both classes, as hints say it: slacks begin at 1


class GramMatrix:
    """K = X X', in double precision, for problems with an intercept that is ``free``, is penalised, or none.

    Beside a free intercept rows are seen from their mean, for sum a y = 0 leaves the problem as it is; of a penalised
    one there is a column of ones. Nothing of X is kept but X.
    """

    def __init__(self, source, intercept, free):
        self.source, self.intercept, self.free = source, intercept, free
        X = source.as_dense()
        self.mean = X.mean(axis=0) if free else np.zeros(X.shape[1])
        if free:
            X = X - self.mean
        K = dsyrk(1.0, np.asarray(X).T, trans=1).T             # C order, the lower triangle
        for lo in range(0, len(K), AT_ONCE):
            some, others = slice(lo, lo + AT_ONCE), slice(lo + AT_ONCE, None)
            K[some, others] = K[others, some].T
            K[some, some] += np.tril(K[some, some], -1).T
        if intercept and not free:
            K += 1.0
        if not np.isfinite(np.diagonal(K)).all():
            raise FloatingPointError("squares of the rows overflow")
        self.K, self.rows = K, GramRows(K, free, float(np.sqrt(self.mean @ self.mean)))

    def problems(self, signed_weights):
        """`GramProblem` of each (n,) signed weights, at 0."""
        signed_weights = np.ascontiguousarray(signed_weights)
        hints = self.products(between_means(signed_weights))
        hints *= FARTHEST / np.maximum(np.abs(hints).max(axis=1, keepdims=True), np.finfo(float).tiny)
        return [self.problem(*each) for each in zip(signed_weights, hints, strict=True)]

    def problem(self, signed_weight, hint):
        return GramProblem(signed_weight, hint)

    def products(self, S):
        """(n_problems, n) S K"""
        return S @ self.K

    def read(self, problems):
        """K s of ``problems`` anew, from the rows themselves. Returns their `sums`."""
        S = np.stack([one.s for one in problems])
        V, sums = self.sums(S)
        self.take_products(problems, V, sums)
        return V, sums

    def take_products(self, problems, V, sums):
        """K s of ``problems`` by their `sums`, which is a read."""
        for one, z in zip(problems, self._scores(V, sums), strict=True):
            one.take(z)

    def _scores(self, V, sums):
        Z = self.source.scores(V.T).T - (V @ self.mean)[:, None]
        if self.intercept and not self.free:
            Z += sums[:, None]
        return np.ascontiguousarray(Z)

    def sums(self, S):
        """(n_problems, m), (n_problems,) sums of s x, seen from the mean, and of s; S (n_problems, n)."""
        sums = S.sum(axis=1)
        return self.source.weighted_sums(S) - sums[:, None] * self.mean, sums

    def weights(self, scale, b, V, sums):
        """(n_problems, p) weights, the intercept last where there is one, of `sums` and what problems have found."""
        W = scale[:, None] * V
        if not self.intercept:
            return W
        return np.column_stack([W, b - W @ self.mean if self.free else scale * sums])


class ListedProducts(GramMatrix):
    """The same problems without K: of the rows that a problem lists products are summed when it lists them, and K s is
    read from X, for many problems at a time."""

    def __init__(self, source, intercept, free):
        self.source, self.intercept, self.free = source, intercept, free
        X, constant = source.X, intercept and not free
        self.mean = X.mean(axis=0, dtype=float) if free else np.zeros(X.shape[1])
        longest = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=float).max())
        largest = (longest + np.sqrt(self.mean @ self.mean))**2 + constant
        if not np.isfinite(largest):
            raise FloatingPointError("squares of the rows overflow")
        self.rows = rows_without_products(source.rows, self.mean, largest, free, constant)

    def problem(self, signed_weight, hint):
        return GramProblem(signed_weight, hint, self.source.n_features)

    def products(self, S):
        return self._scores(*self.sums(S))


def between_means(signed_weights):
    """(n_problems, n) parts of the rows in the mean of the positive ones less that of the others, by weight."""
    positive, negative = np.maximum(signed_weights, 0), np.minimum(signed_weights, 0)
    return sum(part / np.maximum(np.abs(part).sum(axis=1, keepdims=True), np.finfo(float).tiny)
               for part in (positive, negative))
