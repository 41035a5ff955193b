"""The data source of rows that live in memory: a dense array of any strides or a CSR matrix, read where it lies."""

from functools import cached_property

import numpy as np

from cmargin._core.rows._dual_rows import squares as row_squares
from cmargin._core.rows._rows import Rows
from cmargin._core.util._arrays import marked
from cmargin._runtime.aligned import aligned_throughout
from cmargin.data.arrays import dense, squares
from cmargin.data.memory.class_columns import ClassColumns
from cmargin.data.memory.dual_rows import DualRows
from cmargin.data.memory.gram_rows import GramMatrix, ListedProducts
from cmargin.data.memory.joint_rows import JointRows
from cmargin.data.memory.lane_rows import LaneRows
from cmargin.data.memory.one_class_rows import OneClassRows
from cmargin.data.memory.reduced_rows import WideRows
from cmargin.data.memory.row_pass import MemoryRowPass
from cmargin.data.memory.score_blocks import ScoreBlocks
from cmargin.data.memory.shared_start import SharedStart
from cmargin.data.memory.softmax_rows import SoftmaxRowPass
from cmargin.data.memory.stochastic_rows import StochasticRows
from cmargin.data.stats import Described

COLUMN_BLOCK = 64                # of columns: a multiple of what the kernels of a BLAS take at a time


class MemorySource(Described):
    """`DataSource` over arrays in memory: X an array or CSR matrix, float32 or float64."""

    agreed, storage = None, "memory"
    in_memory, shares_reads, checkpoints = True, False, True

    def __init__(self, X, y=None):
        X = aligned_throughout(X)
        self.X, self.y, self.rows = X, y, Rows(X)       # X: for this package's views only; rows: the same for kernels
        self.n_rows, self.n_features = X.shape
        self.dtype, self.sparse = X.dtype, self.rows.sparse
        self.entries = X.nnz if self.sparse else X.size
        self.row_is_contiguous = self.sparse or X.shape[1] <= 1 or X.strides[1] == X.itemsize
        self._unrepeated = self._columns = None

    # ------------------------------------------------------------ rows

    def take(self, rows, dtype):
        X = self.X[rows]
        return X.astype(dtype, copy=False) if self.sparse else np.ascontiguousarray(X, dtype=dtype)

    def visit(self, see):
        see(0, self.X)

    def keep(self, rows):
        return MemorySource(self.X[rows], None if self.y is None else self.y[rows])

    def over_columns(self, scale):
        X, inverse = self.X, (1 / scale).astype(self.dtype)
        if not self.sparse:
            return MemorySource(np.multiply(X, inverse, order="C"), self.y)
        return MemorySource(type(X)((X.data * inverse[X.indices], X.indices, X.indptr), shape=X.shape), self.y)

    def in_units(self, columns):
        return MemorySource(columns.over(self.unrepeated().X), self.y)

    def occurring(self, least):
        """Columns outside which no CSR row has an entry, ascending: those that occur, and others, ``least`` in all.

        BLAS has other kernels for the last few columns of a product, which round otherwise: the last block of columns
        stays as it is, with whole blocks before it.
        """
        n = self.n_features
        there = marked(self.X.indices, n)
        there[n - n % COLUMN_BLOCK:] = True
        lacking = max(0, least - np.count_nonzero(there))
        lacking += (n - np.count_nonzero(there) - lacking) % COLUMN_BLOCK
        there[np.flatnonzero(~there)[:lacking]] = True
        return np.flatnonzero(there)

    def of_columns(self, columns):
        """CSR rows over ``columns``, ascending, outside of which none has an entry; numbers are not copied."""
        X, place = self.unrepeated().X, np.empty(self.n_features, self.X.indices.dtype)
        place[columns] = np.arange(len(columns))
        places = place.take(X.indices, mode="clip")                   # none is outside; "raise" goes over a copy
        return MemorySource(type(X)((X.data, places, X.indptr), shape=(self.n_rows, len(columns))), self.y)

    def as_dense(self):
        """All rows, float64, of either order: those that are here, not to be written to, where they are so."""
        X = dense(self.X)
        return np.asarray(X, dtype=float, order=None if X.flags.f_contiguous else "C")

    def largest(self):
        return np.abs(self.X.data if self.sparse else self.X).max()

    def sum_of_squares(self, most_rows):
        X = self.X if self.sparse else self.X[::-(-self.n_rows // most_rows)]
        x = X.data if self.sparse else X.ravel()
        return np.einsum("i,i", x, x, dtype=float), X.shape[0]

    @cached_property
    def _rows_in_columns(self):
        """(n_features,) CSR rows with an entry in a column, at least 1."""
        return np.maximum(np.bincount(self.X.indices, minlength=self.n_features), 1)

    def own_squares(self, few):
        """(few.n_rows,) of CSR rows ``few`` of these: squares of entries over `_rows_in_columns`, summed."""
        out = np.zeros(few.n_rows)
        row_squares(few.unrepeated().rows, 1 / self._rows_in_columns, out)
        return out

    def scores(self, W):
        """(n, B) X W of weights (m, B), float64."""
        if self.sparse:
            return self.X @ W
        found = np.empty((self.n_rows, W.shape[1]))
        for few in self._few_rows():
            found[few] = self.X[few] @ W
        return found

    def weighted_sums(self, S):
        """(B, m) S X of weights of dense rows (B, n), float64."""
        return sum((S[:, few] @ self.X[few] for few in self._few_rows()), np.zeros((len(S), self.n_features)))

    def sums_of_squares(self, h):
        """(m, B) sums over the rows of h_i x_ij^2, h (n, B)."""
        if self.sparse:
            return squares(self.unrepeated().X).T @ h
        found = np.zeros((self.n_features, h.shape[1]))
        for few in self._few_rows():
            found += squares(self.X[few]).T @ h[few]
        return found

    def _few_rows(self):
        """Slices of rows of which a copy takes little."""
        at_once = max(1, (1 << 18) // self.n_features)
        return (slice(lo, lo + at_once) for lo in range(0, self.n_rows, at_once))

    def unrepeated(self):
        """This data source, or a copy that stores no entry in parts, which would be squared apart.

        A copy too of CSR rows whose columns are out of order: parts are found by putting them in order.
        """
        if not self.sparse or self.X.has_canonical_format:
            return self
        if self._unrepeated is None:
            X = self.X.copy()
            X.sum_duplicates()
            self._unrepeated = MemorySource(X, self.y)
        return self._unrepeated

    def let_go(self):
        """Nothing: rows in memory are read by nobody else."""

    # ------------------------------------------------------------ what solvers read them by

    def row_pass(self, signed_weight, *, intercept, n_threads, offset=None):
        return MemoryRowPass(self.unrepeated().rows.in_few_bytes(), signed_weight, intercept=intercept,
                             n_threads=n_threads, offset=offset)

    def columns(self):
        """X', a column a row, made once: a copy, but of dense rows in F order."""
        if self._columns is None:
            X = self.unrepeated().X
            self._columns = Rows(X.T.tocsr()).in_few_bytes() if self.sparse else Rows(np.ascontiguousarray(X.T))
        return self._columns

    def reduced(self, least=0.0, beside=None):
        return WideRows(self, least, beside)

    def dual_rows(self, intercept, free, weights, l2, loss):
        return DualRows(self.unrepeated(), intercept, free, weights, l2, loss)

    def gram_matrix(self, intercept, free, whole=True):
        return (GramMatrix if whole else ListedProducts)(self, intercept, free)

    def one_class_rows(self, weights, nu, least):
        return OneClassRows(self.unrepeated(), weights, nu, least)

    def lane_rows(self, weights, l2, l2_bias, n_problems):
        return LaneRows(self, weights, l2, l2_bias, n_problems)

    def joint_rows(self, labels, weight, n_classes, l2, intercept, free, stream):
        return JointRows(self, labels, weight, n_classes, l2, intercept, free, stream)

    def score_blocks(self, Y, weight, n_threads):
        return ScoreBlocks(self, Y, weight, n_threads)

    def softmax_pass(self, labels, weight, n_classes, intercept, n_threads):
        return SoftmaxRowPass(self, labels, weight, n_classes, intercept, n_threads)

    def class_columns(self, columns, labels, weight, n_classes, intercept, n_threads, grouped):
        return ClassColumns(self.unrepeated(), columns, labels, weight, n_classes, intercept, n_threads, grouped)

    def shared_start(self, labels, weights, intercept, l2, loss):
        return SharedStart(self, labels, weights, intercept, l2, loss)

    def stochastic_rows(self, n_threads):
        return StochasticRows(self.unrepeated(), n_threads)
