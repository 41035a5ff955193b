"""Rows of a matrix, dense of any stride or CSR, without a copy.

The one place where a kernel meets the two formats: everything above asks for a dense copy of one row, for a product
with it, or for a block of rows times a small matrix.
"""

import numpy as np
import scipy.sparse as sp

from cython cimport floating
from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.string cimport memcpy, memset

from cmargin._core.linalg._blas cimport NO_TRANS, gemm
from cmargin._core.util._simd cimport row_axpy, row_dot
from cmargin._core.util._team cimport share_out

from cmargin._core.rows._structure import check_structure

VALUES_AT_ONCE = 1 << 16                     # that are looked at before the next ones are
cdef Py_ssize_t GATHERED = 512               # rows at a time: their copies stay in a second-level cache
MOST_COLUMNS = 1 << 16                       # whose indices have 16 bits


cdef class Rows:
    """A matrix the kernels can read: ``X`` (n_rows, n_features) is a NumPy array or CSR, float32 or float64.

    Nothing is copied but the CSR row pointers, where they are 32-bit. The object keeps ``X`` alive.
    """

    def __cinit__(self, X):
        check_structure(X)
        self.dtype = np.dtype(X.dtype)
        self.sparse = sp.issparse(X)
        self.shape = X.shape
        cdef int storage = storage_of(ord(self.dtype.kind), self.dtype.itemsize)
        if storage < 0 or not self.dtype.isnative:
            raise TypeError(f"rows must be float32 or float64, got {self.dtype}")
        self.view.n_rows, self.view.n_features = X.shape
        self.view.storage = <storage_t> storage
        if self.sparse:
            if X.format != "csr":
                raise TypeError(f"sparse rows must be in CSR format, got {X.format}")
            self.point_at_csr(X)
        else:
            self.point_at_dense(X)

    cdef point_at_dense(self, X):
        cdef Py_ssize_t address = X.__array_interface__["data"][0]
        self.view.values = <const void *> address
        self.view.row_stride = X.strides[0] // X.itemsize
        self.view.column_stride = X.strides[1] // X.itemsize
        # what is never read may lie anywhere, and what is never stepped over be of any length
        if not X.flags.aligned or any(n > 1 and stride % X.itemsize for n, stride in zip(X.shape, X.strides)):
            raise ValueError("rows must be aligned: an address or a stride is no multiple of the item size")
        self._alive = (X,)

    cdef point_at_csr(self, X):
        starts = np.require(X.indptr, np.int64, "CA")
        values, columns = np.require(X.data, None, "CA"), np.require(X.indices, None, "CA")
        cdef Py_ssize_t address = values.__array_interface__["data"][0]
        self.view.values = <const void *> address
        address = starts.__array_interface__["data"][0]
        self.view.starts = <const int64_t *> address
        address = columns.__array_interface__["data"][0]
        if columns.dtype == np.int32:
            self.view.columns = <const int32_t *> address
        else:
            self.view.columns_64 = <const int64_t *> address
        self._alive = (X, starts, values, columns)

    def gathered(self, const Py_ssize_t[::1] rows, int n_threads):
        """Some rows of a dense matrix, one after the other in memory of their own, as `Rows` of the same dtype."""
        cdef gathering work
        cdef Py_ssize_t n = rows.shape[0]
        cdef double[:, ::1] doubles
        cdef float[:, ::1] singles
        out = np.empty((n, self.view.n_features), self.dtype)
        if out.size == 0:
            return Rows(out)
        work.X, work.rows, work.n = self.view, &rows[0], n
        if self.view.storage == FLOAT64:
            doubles = out
            work.out = &doubles[0, 0]
        else:
            singles = out
            work.out = &singles[0, 0]
        with nogil:
            share_out(do_gather, &work, (n + GATHERED - 1) // GATHERED, n_threads)
        return Rows(out)

    @property
    def n_entries(self):
        """Stored ones of a sparse matrix, all of a dense one."""
        if self.sparse:
            return self.view.starts[self.view.n_rows] - self.view.starts[0]
        return self.view.n_rows * self.view.n_features

    def in_few_bytes(self):
        """Itself, of which CSR kernels read fewer bytes from now on: for rows that are read again and again.

        Where all values are one, none is read. Columns are read from a copy in 16 bits where these are enough: 2 bytes
        an entry more, unless the rows are the map of a file, which may be larger than memory.
        """
        cdef const uint16_t[::1] short
        if not self.sparse or self._few_bytes:
            return self
        self._few_bytes = True
        _, starts, values, columns = self._alive
        n = starts[-1]
        if n == 0:
            return self
        self.view.ones = all((values[lo:min(n, lo + VALUES_AT_ONCE)] == 1).all() for lo in range(0, n, VALUES_AT_ONCE))
        if self.view.n_features <= MOST_COLUMNS and not is_mapped(columns):
            short = columns.astype(np.uint16)
            self._alive = (*self._alive, short)
            self.view.columns_16 = &short[0]
        return self

    @property
    def entry_bytes(self):
        """What a kernel reads of an entry: its value and, of CSR rows, its column."""
        columns = 0 if not self.sparse else 2 if self.view.columns_16 != NULL else self._alive[3].itemsize
        return columns + (0 if self.view.ones else self.dtype.itemsize)


def is_mapped(array):
    """Whether its numbers lie in a map of a file."""
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


cdef struct gathering:                       # what threads share
    rows_view X
    const Py_ssize_t *rows
    Py_ssize_t n
    void *out                                # (n, n_features)


cdef void gather_block(const gathering *by, Py_ssize_t first, Py_ssize_t end, const floating *like) noexcept nogil:
    # column by column, as they lie
    cdef const floating *values = <const floating *> by.X.values
    cdef floating *out = <floating *> by.out
    cdef Py_ssize_t m = by.X.n_features, step = by.X.row_stride, i, j
    for j in range(m):
        for i in range(first, end):
            out[i * m + j] = values[by.rows[i] * step]
        values += by.X.column_stride


cdef void do_gather(void *of, Py_ssize_t block, int thread) noexcept nogil:
    cdef const gathering *by = <gathering *> of
    cdef Py_ssize_t first = block * GATHERED, end = min(by.n, (block + 1) * GATHERED)
    if by.X.storage == FLOAT64:
        gather_block(by, first, end, <const double *> NULL)
    else:
        gather_block(by, first, end, <const float *> NULL)


cdef bint structure_is_sound(const rows_view *X) noexcept nogil:
    cdef Py_ssize_t i
    cdef int64_t entry
    if X.starts[0] < 0:
        return False
    for i in range(X.n_rows):
        if X.starts[i + 1] < X.starts[i]:
            return False
    for entry in range(X.starts[0], X.starts[X.n_rows]):
        if not 0 <= column_of(X, entry) < X.n_features:
            return False
    return True


cdef void gather_row(const rows_view *X, Py_ssize_t row, floating *out) noexcept nogil:
    cdef const floating *values = <const floating *> X.values
    cdef Py_ssize_t j
    cdef int64_t entry
    if X.starts != NULL:
        memset(out, 0, X.n_features * sizeof(floating))
        for entry in range(X.starts[row], X.starts[row + 1]):
            out[column_of(X, entry)] += values[entry]           # repeated indices add up, as in SciPy
    elif X.column_stride == 1 and stored_as(X, out):
        memcpy(out, values + row * X.row_stride, X.n_features * sizeof(floating))
    else:
        for j in range(X.n_features):
            out[j] = <floating> value_at(X, row * X.row_stride + j * X.column_stride)


cdef double sparse_dot(const rows_view *X, Py_ssize_t row, const floating *v) noexcept nogil:
    cdef const floating *values = <const floating *> X.values
    cdef double total = 0
    cdef int64_t entry
    for entry in range(X.starts[row], X.starts[row + 1]):
        total += <double> values[entry] * v[column_of(X, entry)]
    return total


cdef void sparse_axpy(double scale, const rows_view *X, Py_ssize_t row, floating *v) noexcept nogil:
    cdef const floating *values = <const floating *> X.values
    cdef int64_t entry
    for entry in range(X.starts[row], X.starts[row + 1]):
        v[column_of(X, entry)] += <floating> (scale * values[entry])


cdef void sparse_scaled_axpy(double scale, const rows_view *X, Py_ssize_t row, const floating *gain,
                             floating *v) noexcept nogil:
    cdef const floating *values = <const floating *> X.values
    cdef int64_t entry, j
    for entry in range(X.starts[row], X.starts[row + 1]):
        j = column_of(X, entry)
        v[j] += <floating> (scale * gain[j] * values[entry])


cdef double row_times(const rows_view *X, Py_ssize_t row, const floating *w, floating *scratch) noexcept nogil:
    cdef const floating *x = <const floating *> X.values + row * X.row_stride
    if X.starts != NULL:
        return sparse_dot(X, row, w)
    if X.column_stride != 1 or not stored_as(X, w):
        gather_row(X, row, scratch)
        x = scratch
    return row_dot(x, w, X.n_features)


cdef void rows_times(const rows_view *X, const int64_t *rows, Py_ssize_t row_lo, Py_ssize_t n, const floating *P,
                     Py_ssize_t k, floating *dense, floating *out) noexcept nogil:
    cdef const floating *values = <const floating *> X.values
    cdef Py_ssize_t i, row
    cdef int64_t entry
    if X.starts != NULL:
        memset(out, 0, n * k * sizeof(floating))
    for i in range(n):
        row = rows[i] if rows != NULL else row_lo + i
        if X.starts == NULL:
            gather_row(X, row, dense + i * X.n_features)
            continue
        for entry in range(X.starts[row], X.starts[row + 1]):
            row_axpy(values[entry], P + column_of(X, entry) * k, out + i * k, k)
    if X.starts == NULL:
        # out = dense P   (n, k) = (n, d) (d, k)
        gemm(NO_TRANS, NO_TRANS, n, k, X.n_features, 1, dense, X.n_features, P, k, 0, out, k)
