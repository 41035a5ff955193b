"""CSR rows in memory as problems of the squared hinge read them side by side, and the curvature that they share."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from cmargin._core.lanes._lane_batch import LANE_COUNT, LaneBatch, Proven, SingleRows, squared_hinges

PAIRED = 2                    # batches come in pairs, for two threads to be even,
PROBLEMS_PER_LANE = 4         # of about so many problems for every lane: the last ones of a batch leave lanes idle


@dataclass
class Batch:
    """Problems ``lo`` .. ``hi`` - 1, the thread's work with them, and what it finds of each."""

    lo: int
    hi: int
    worker: LaneBatch
    proven: Proven


class LaneRows:
    """Rows in single precision beside the rows as they are, and what all problems share.

    ``weights`` (n,) of mean 1, or None; ``l2_bias``: None without an intercept, 0 where it is free.
    """

    def __init__(self, source, weights, l2, l2_bias, n_problems):
        source = source.unrepeated()
        X = source.X
        self.X, self.n, self.m, self.l2, self.l2_bias = source.rows, source.n_rows, source.n_features, l2, l2_bias
        self.s = np.ones(self.n) if weights is None else np.ascontiguousarray(weights, float)
        self.s_single = self.s.astype(np.float32)
        single = sp.csr_matrix((X.data.astype(np.float32, copy=False), X.indices, X.indptr), shape=X.shape)
        self.by_rows, self.by_columns = arrays_of(single), arrays_of(single.tocsc())
        self.rows, self.squared = SingleRows(self.n, self.m, self.by_rows, self.by_columns), None
        self.inverse, self.scale = inverse_curvature(single, self.s, l2, l2_bias, n_problems)

    def batches(self, positives, tol, most):
        """[() -> `Batch`] of all problems, whose rows are the columns of ``positives`` (n, n_problems).

        A batch is made when a thread has time for it: its memory is some hundred bytes a row and its weights.
        """
        return [partial(self.batch, positives, tol, most, lo, hi) for lo, hi in self.spans(positives.shape[1])]

    def spans(self, n_problems):
        """(lo, hi) of batches of so many problems. How many there are goes by the problems alone."""
        n_batches = min(n_problems, PAIRED * -(-n_problems // (PAIRED * PROBLEMS_PER_LANE * LANE_COUNT)))
        return pairwise(np.linspace(0, n_problems, n_batches + 1).astype(int).tolist())

    def batch(self, positives, tol, most, lo, hi, start=None, prove=True):
        """`Batch` of problems lo .. hi - 1; of those of ``start``'s columns that are not 0, from there, where it is
        given, (hi - lo, m)."""
        starts, proven = positives.indptr[lo:hi + 1].astype(np.int64), Proven(hi - lo, self.m)
        rows = positives.indices[starts[0]:starts[-1]].astype(np.int64)
        worker = LaneBatch(self.rows, self.X, self.s, self.s_single, starts - starts[0], rows, self.inverse, self.scale,
                           self.l2, self.l2_bias, tol, most, proven, start, prove)
        return Batch(lo, hi, worker, proven)

    def in_lanes(self, positives, b):
        """`InLanes`: at most as many problems as there are lanes, ``positives`` (n, B) theirs."""
        if self.squared is None:
            starts, rows, values = self.by_columns
            self.squared = SingleRows(self.n, self.m, self.by_rows, (starts, rows, values * values))
        return InLanes(self, positives, b)


class InLanes:
    """Problems at weights (m, B) and intercepts ``b`` (B,), evaluated in single precision."""

    def __init__(self, rows, positives, b):
        self.rows, self.b = rows, b.astype(np.float32)
        self.Y = np.full((rows.n, LANE_COUNT), -1, np.float32)
        self.Y[positives.nonzero()] = 1

    def objective(self, W):
        """(B,)"""
        rows, losses = self.rows, np.empty(LANE_COUNT)
        squared_hinges(self._scores(W), self.Y, rows.s_single, self._in_lanes(self.b[None])[0], losses)
        of_b = (rows.l2_bias or 0.0) * np.square(self.b, dtype=float)
        return losses[:len(self.b)] / rows.n + (rows.l2 * np.einsum("jl,jl->l", W, W, dtype=float) + of_b) / 2

    def bend(self, W):
        """(m, B) curvature in every weight: l2 and twice the mean square of its column over the rows with slack."""
        rows, out = self.rows, np.empty((self.rows.m, LANE_COUNT), np.float32)
        slack = self.Y * (self._scores(W) + self._in_lanes(self.b[None])) < 1
        rows.squared.back(np.where(slack, rows.s_single[:, None], np.float32(0)), out)
        return rows.l2 + 2 / rows.n * out[:, :len(self.b)].astype(float)

    def _scores(self, W):
        out = np.empty((self.rows.n, LANE_COUNT), np.float32)
        self.rows.rows.times(self._in_lanes(W), out)
        return out

    def _in_lanes(self, A):
        out = np.zeros((len(A), LANE_COUNT), np.float32)
        out[:, :len(self.b)] = A
        return out


def arrays_of(A):
    """Of a CSR or CSC matrix, as `SingleRows` has them."""
    return A.indptr.astype(np.int64), A.indices.astype(np.int32, copy=False), A.data


def inverse_curvature(X, s, l2, l2_bias, n_problems):
    """(m, m) and None, or None and (m,): the inverse of the curvature at w = 0, or of its diagonal.

    It is l2 I + (2/N) sum_i s_i (x_i - mean)(x_i - mean)', as every row has slack there, and an intercept that is free
    goes where the rows go. All of it is used where a product with it costs two reads of X at most, and its inverse one
    read for every problem.
    """
    n, m = X.shape
    mean = np.zeros(m) if l2_bias is None else np.asarray(X.T @ s, float) / n
    if m * m <= 2 * X.nnz and m**3 <= n_problems * X.nnz:
        H = 2 / n * (X.T @ X.multiply(s[:, None]).tocsr()).toarray().astype(float) - 2 * np.outer(mean, mean)
        H[np.diag_indices(m)] += l2
        factor, failed = scipy.linalg.lapack.dpotrf(H)
        if not failed:
            inverse = np.triu(scipy.linalg.lapack.dpotri(factor)[0])
            return np.ascontiguousarray(inverse + np.triu(inverse, 1).T, np.float32), None
    diagonal = 2 / n * np.asarray(X.multiply(X).T @ s, float) - 2 * mean**2
    return None, (1 / (l2 + np.maximum(diagonal, 0))).astype(np.float32)
