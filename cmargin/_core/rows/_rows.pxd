"""Rows of a matrix, dense of any stride or CSR, read by kernels through one small struct."""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t, uint16_t


cdef extern from "_storage.h" nogil:
    ctypedef enum storage_t:
        FLOAT64
        FLOAT32
    int storage_of(char kind, Py_ssize_t width) noexcept        # a storage_t, or less than 0
    Py_ssize_t storage_width(storage_t storage) noexcept        # bytes of a number
    double stored_number(storage_t storage, const void *values, Py_ssize_t at) noexcept


cdef struct rows_view:
    Py_ssize_t n_rows
    Py_ssize_t n_features
    storage_t storage           # of the values
    const void *values
    Py_ssize_t row_stride       # dense: entries from one row to the next,
    Py_ssize_t column_stride    # and from one column to the next
    const int64_t *starts       # CSR: (n_rows + 1,); NULL for dense
    const int32_t *columns      # CSR with 32-bit indices, else NULL
    const int64_t *columns_64   # CSR with 64-bit indices, else NULL
    const uint16_t *columns_16  # CSR: the columns once more, for `_csr`, or NULL: see `Rows.in_few_bytes`
    bint ones                   # CSR: every value is known to be one


cdef class Rows:
    cdef rows_view view
    cdef readonly object dtype
    cdef readonly tuple shape
    cdef readonly bint sparse
    cdef tuple _alive
    cdef bint _few_bytes
    cdef point_at_dense(self, X)
    cdef point_at_csr(self, X)


cdef inline double value_at(const rows_view *X, int64_t entry) noexcept nogil:
    return stored_number(X.storage, X.values, entry)


cdef inline int64_t column_of(const rows_view *X, int64_t entry) noexcept nogil:
    return X.columns[entry] if X.columns != NULL else X.columns_64[entry]


# where the numbers begin that follow those of so many entries
cdef inline const void *from_entry(const rows_view *X, int64_t entry) noexcept nogil:
    return <const void *> (<const char *> X.values + entry * storage_width(X.storage))


# dense rows whose numbers are not side by side; NumPy leaves the stride of a single column free
cdef inline bint lies_by_columns(const rows_view *X) noexcept nogil:
    return X.starts == NULL and X.column_stride != 1 and X.n_features != 1


# CSR: rows begin one after the other, and every column is one of the matrix
cdef bint structure_is_sound(const rows_view *X) noexcept nogil

# whether the numbers are of the type `floating`, which sparse reading functions and weights share with the rows
cdef inline bint stored_as(const rows_view *X, const floating *like) noexcept nogil:
    if floating is float:
        return X.storage == FLOAT32
    else:
        return X.storage == FLOAT64


# out = x_row, dense
cdef void gather_row(const rows_view *X, Py_ssize_t row, floating *out) noexcept nogil

# <v, x_row>, and v += scale x_row; CSR only
cdef double sparse_dot(const rows_view *X, Py_ssize_t row, const floating *v) noexcept nogil
cdef void sparse_axpy(double scale, const rows_view *X, Py_ssize_t row, floating *v) noexcept nogil

# v += scale gain o x_row; CSR only
cdef void sparse_scaled_axpy(double scale, const rows_view *X, Py_ssize_t row, const floating *gain,
                             floating *v) noexcept nogil

# <w, x_row>; scratch (n_features,) is used where a dense row is not contiguous, or of another type
cdef double row_times(const rows_view *X, Py_ssize_t row, const floating *w, floating *scratch) noexcept nogil

# out (n, k) = x_row P for the rows of a list (or row_lo .. when rows is NULL);  (n, k) = (n, d) (d, k)
cdef void rows_times(
    const rows_view *X,
    const int64_t *rows,        # IN    (n,), or NULL for row_lo, row_lo + 1, ...
    Py_ssize_t row_lo,
    Py_ssize_t n,
    const floating *P,          # IN    (d, k)
    Py_ssize_t k,
    floating *dense,            # OUT   (n, d), the rows themselves; NULL allowed for CSR
    floating *out,              # OUT   (n, k)
) noexcept nogil
