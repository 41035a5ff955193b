"""Some columns of rows in memory, with a multinomial problem posed on them and its quadratic model."""

import numpy as np
import scipy.sparse as sp

from cmargin._core.rows._column_model import ColumnModel
from cmargin.data.memory.softmax_rows import SoftmaxRowPass


class ClassColumns(SoftmaxRowPass):
    """A `SoftmaxRowPass` over the ``columns`` (ascending) of ``source``, with copies of them for a model.

    The model has dense columns from their means where there is an intercept, all in units of a power of two above their
    largest number. ``grouped``: the penalty is of columns' norms.
    """

    def __init__(self, source, columns, labels, weight, n_classes, intercept, n_threads, grouped):
        few = source if len(columns) == source.n_features else type(source)(_some(source.X, columns))
        super().__init__(few, labels, weight, n_classes, intercept, n_threads)
        self.keep(np.float64)
        self.columns, share = columns, self.weight / self.weight.sum()
        if self.sparse:
            X = few.X.tocsc()
            self.mean, largest = np.zeros(len(columns)), np.abs(X).max(axis=0).toarray().ravel()
            self.unit = _power_above(largest)
            values = X.data / np.repeat(self.unit, np.diff(X.indptr))
            starts, places = X.indptr.astype(np.int64), X.indices.astype(np.int32)
        else:
            X = np.array(few.X.T, np.float64, order="C")
            self.mean = X @ share if intercept else np.zeros(len(columns))
            X -= self.mean[:, None]
            self.unit = _power_above(np.abs(X).max(axis=1))
            X /= self.unit[:, None]
            values, starts, places = X.ravel(), np.arange(len(columns) + 1, dtype=np.int64) * self.n_rows, None
        self.model = ColumnModel(values.astype(np.float32), starts, places, share.astype(np.float32), n_classes,
                                 bool(intercept), grouped)

    def begin_model(self, V, gradient, l2, l1, enough, most):
        """The model at the point V, whose probabilities are here, with the risk's ``gradient`` there."""
        G, W, units = np.array(gradient), np.array(V), np.ones(self.n_columns)
        units[:self.n_features] = self.unit
        penalised = np.zeros(self.n_columns)
        penalised[:self.n_features] = 1.0
        if self.intercept:
            G[:-1] -= np.outer(self.mean, G[-1])
        self.kept = G / units[:, None], W * units[:, None], l1 * penalised / units, l2 * penalised / units**2
        self.model.begin(self.probs, *self.kept, enough, most)

    def direction(self):
        """(n_columns, n_classes) that the model has come to."""
        D = self.model.direction
        D[:self.n_features] /= self.unit[:, None]
        if self.intercept:
            D[-1] -= self.mean @ D[:-1]
        return D


def _some(X, columns):
    return sp.csr_matrix(X[:, columns]) if sp.issparse(X) else np.ascontiguousarray(X[:, columns])


def _power_above(sizes):
    return np.ldexp(1.0, np.frexp(np.where(sizes > 0, sizes, 1.0))[1])
