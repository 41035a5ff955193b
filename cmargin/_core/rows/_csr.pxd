"""Products with the entries of CSR rows, and sums of them, in float64 whatever the rows (see ``_csr.h``)."""

from libc.stdint cimport int64_t

from cmargin._core.rows._rows cimport rows_view, storage_t


cdef extern from "_csr.h" nogil:
    ctypedef enum index_t:
        INDEX16
        INDEX32
        INDEX64
    ctypedef struct csr_rows:
        storage_t storage
        index_t index
        bint ones
        const void *values
        const void *columns
    ctypedef struct csr_row:
        Py_ssize_t n
    csr_row csr_row_of(csr_rows X, const int64_t *starts, Py_ssize_t row) noexcept
    double csr_dot(csr_row x, const double *w) noexcept
    void csr_axpy(csr_row x, double scale, double *w) noexcept
    void csr_axpy_weighted(csr_row x, double scale, const double *weight, double *w) noexcept
    void csr_axpy_squares(csr_row x, double scale, double *w) noexcept
    void csr_moments(csr_row x, const double *weight, double *first, double *second) noexcept
    Py_ssize_t csr_placed(csr_row x, double root, const Py_ssize_t *place, Py_ssize_t room, double *held,
                          Py_ssize_t *places, bint *in_order) noexcept
    void csr_prefetch(csr_row x) noexcept
    void csr_products(csr_rows X, const int64_t *starts, const Py_ssize_t *rows, Py_ssize_t n, const double *w,
                      double constant, double *out) noexcept
    void csr_sums(csr_rows X, const int64_t *starts, const Py_ssize_t *rows, Py_ssize_t n, const double *c,
                  double *sum) noexcept
    void csr_sums_3(csr_rows X, const int64_t *starts, const Py_ssize_t *rows, Py_ssize_t n, const double *a,
                    const double *b, const double *c, double *sum_a, double *sum_b, double *sum_c) noexcept


cdef inline csr_rows sparse_rows(const rows_view *X) noexcept nogil:
    cdef csr_rows entries
    entries.storage, entries.ones, entries.values = X.storage, X.ones, X.values
    if X.columns_16 != NULL:
        entries.index, entries.columns = INDEX16, X.columns_16
    elif X.columns != NULL:
        entries.index, entries.columns = INDEX32, X.columns
    else:
        entries.index, entries.columns = INDEX64, X.columns_64
    return entries


cdef inline csr_row sparse_row(const rows_view *X, Py_ssize_t row) noexcept nogil:
    return csr_row_of(sparse_rows(X), X.starts, row)
