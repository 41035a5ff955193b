"""Products with the entries of one CSR row, and sums of them, in float64 whatever the row (see ``_csr.h``)."""

from libc.stdint cimport int32_t, int64_t

from cmargin._core.rows._rows cimport rows_view, storage_t


cdef extern from "_csr.h" nogil:
    ctypedef struct csr_row:
        Py_ssize_t n
    csr_row csr_row_of(storage_t storage, const void *values, const int32_t *columns, const int64_t *columns_64,
                       const int64_t *starts, Py_ssize_t row) noexcept
    double csr_dot(csr_row x, const double *w) noexcept
    void csr_axpy(csr_row x, double scale, double *w) noexcept
    void csr_axpy_weighted(csr_row x, double scale, const double *weight, double *w) noexcept
    void csr_moments(csr_row x, const double *weight, double *first, double *second) noexcept


cdef inline csr_row sparse_row(const rows_view *X, Py_ssize_t row) noexcept nogil:
    return csr_row_of(X.storage, X.values, X.columns, X.columns_64, X.starts, row)
