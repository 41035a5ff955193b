"""Dense rows in memory by all their products with each other, which are made once for all problems on them."""

import numpy as np
from scipy.linalg.blas import dsyrk

from cmargin._core.gram._gram_rows import GramProblem, GramRows

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
        hints = between_means(signed_weights) @ self.K
        hints *= FARTHEST / np.maximum(np.abs(hints).max(axis=1, keepdims=True), np.finfo(float).tiny)
        return [GramProblem(*each) for each in zip(signed_weights, hints, strict=True)]

    def read(self, problems):
        """K s of ``problems`` anew, from the rows themselves. Returns their `sums`."""
        X, S = self.source.as_dense(), np.stack([one.s for one in problems])
        sums = S.sum(axis=1)
        V = S @ X - sums[:, None] * self.mean
        Z = (X @ V.T).T - (V @ self.mean)[:, None]
        if self.intercept and not self.free:
            Z += sums[:, None]
        for one, z in zip(problems, np.ascontiguousarray(Z), strict=True):
            one.take(z)
        return V, sums

    def sums(self, s):
        """(1, m), (1,) sums of s x, seen from the mean, and of s."""
        return (s @ self.source.as_dense() - s.sum() * self.mean)[None], s.sum()[None]

    def weights(self, scale, b, V, sums):
        """(n_problems, p) weights, the intercept last where there is one, of `sums` and what problems have found."""
        W = scale[:, None] * V
        if not self.intercept:
            return W
        return np.column_stack([W, b - W @ self.mean if self.free else scale * sums])


def between_means(signed_weights):
    """(n_problems, n) parts of the rows in the mean of the positive ones less that of the others, by weight."""
    positive, negative = np.maximum(signed_weights, 0), np.minimum(signed_weights, 0)
    return sum(part / np.maximum(np.abs(part).sum(axis=1, keepdims=True), np.finfo(float).tiny)
               for part in (positive, negative))
