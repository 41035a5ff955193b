"""Rows in memory as the dual of the joint hinge sees them, one after the other."""

import numpy as np
import scipy.sparse as sp

from cmargin._core.rows._dual_rows import squares
from cmargin._core.rows._joint_sweeps import JointSweeps
from cmargin._core.rows._rows import Rows
from cmargin.data.arrays import FULL
from cmargin.data.memory.dual_rows import DENSE, FREE_BIAS, seen_from_mean


class JointRows(JointSweeps):
    """The sweeps of one problem, of rows x_i seen from their ``mean`` where that is not None.

    ``labels`` (n_rows,): 0 .. n_classes - 1; ``weight``: of mean 1, or None. ``upper`` (n_rows,): C_i = s_i / (l2 N),
    ``of_class`` their sums over the classes. An intercept that is ``free``, not penalised, is the weight of a column of
    constants, ``bias``, of half the typical length of a row, or of sqrt(l2) where rows are so short beside the penalty
    that multipliers of such a column would not move; else of ones.
    """

    def __init__(self, source, labels, weight, n_classes, l2, intercept, free, stream):
        rows, n, m = rows_of(source), source.n_rows, source.n_features
        self.source, self.n_rows, self.n_features = source, n, m
        self.labels, self.n_classes = labels.astype(np.int32), n_classes
        self.upper, square = (np.ones(n) if weight is None else weight) / (l2 * n), np.zeros(n)
        self.of_class = np.bincount(labels, self.upper, n_classes)
        squares(rows, np.ones(max(1, m)), square)
        density, self.mean, x_dot_mean = source.entries / max(1, n * m), None, None
        if free and density >= DENSE:
            self.mean, x_dot_mean, square = seen_from_mean(rows, density, square)
        self.bias = float(np.sqrt(max(FREE_BIAS**2 * square.mean(), l2))) if free else float(intercept)
        square += self.bias**2
        if not np.isfinite(square).all():
            raise FloatingPointError("squares of the rows overflow")
        np.maximum(square, np.finfo(float).tiny, out=square)             # an empty row goes to its bound at once
        super().__init__(rows, self.labels, self.upper, square, n_classes, self.bias, free, stream, self.mean,
                         x_dot_mean)
        self.work = (1 + rows.n_entries // max(1, n)) * self.W.shape[1]  # multiply-adds of a row's scores
        self._class_sums = None

    def intercepts(self):
        """(n_classes,) of the rows as they are."""
        W = self.W[:, :self.n_classes]
        return self.bias * W[-1] - (0.0 if self.mean is None else self.mean @ W[:-1])

    def class_sums(self):
        """(n_features, n_classes) sum_i C_i x_i e_y'."""
        if self._class_sums is None:
            places = np.arange(self.n_rows + 1)
            own = sp.csr_matrix((self.upper, self.labels, places), shape=(self.n_rows, self.n_classes))
            sums = own.T @ self.source.X
            self._class_sums = np.asarray(sums.toarray() if sp.issparse(sums) else sums, float).T
            if self.mean is not None:
                self._class_sums = self._class_sums - np.outer(self.mean, self.of_class)
        return self._class_sums


def rows_of(source):
    """`Rows` of a source in memory; of dense ones with many zeros, or whose columns lie apart, a copy."""
    if source.sparse:
        return source.rows
    if FULL * np.count_nonzero(source.X) < source.X.size:
        return Rows(sp.csr_matrix(source.X))
    return source.rows if source.row_is_contiguous else Rows(np.ascontiguousarray(source.X))
