"""CSR rows times the weights of all classes, and back (see ``_csr_classes.h``), fused over float and double."""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t

from cmargin._core.rows._rows cimport FLOAT32, rows_view


cdef extern from "_csr_classes.h" nogil:
    ctypedef struct csr_entries:
        const float *floats
        const double *doubles
        const int32_t *columns
        const int64_t *columns_64

    void csr_times_f(csr_entries X, const int64_t *starts, Py_ssize_t n, const float *V, Py_ssize_t k,
                     float *out) noexcept
    void csr_times_d(csr_entries X, const int64_t *starts, Py_ssize_t n, const double *V, Py_ssize_t k,
                     double *out) noexcept
    void csr_sums_f(csr_entries X, const int64_t *starts, Py_ssize_t n, const float *R, Py_ssize_t k,
                    float *sums) noexcept
    void csr_sums_d(csr_entries X, const int64_t *starts, Py_ssize_t n, const double *R, Py_ssize_t k,
                    double *sums) noexcept


cdef inline csr_entries entries_of(const rows_view *X) noexcept nogil:
    cdef csr_entries entries
    entries.floats = <const float *> X.values if X.storage == FLOAT32 else NULL
    entries.doubles = NULL if X.storage == FLOAT32 else <const double *> X.values
    entries.columns, entries.columns_64 = X.columns, X.columns_64
    return entries


cdef inline void csr_times(
    const rows_view *X,
    Py_ssize_t first,
    Py_ssize_t n,               # rows first .. first + n - 1
    const floating *V,          # IN    (n_features, k)
    Py_ssize_t k,
    floating *out,              # INOUT (n, k), X V is added
) noexcept nogil:
    if floating is float:
        csr_times_f(entries_of(X), X.starts + first, n, V, k, out)
    else:
        csr_times_d(entries_of(X), X.starts + first, n, V, k, out)


cdef inline void csr_sums(
    const rows_view *X,
    Py_ssize_t first,
    Py_ssize_t n,
    const floating *R,          # IN    (n, k)
    Py_ssize_t k,
    floating *sums,             # INOUT (n_features, k), X' R is added
) noexcept nogil:
    if floating is float:
        csr_sums_f(entries_of(X), X.starts + first, n, R, k, sums)
    else:
        csr_sums_d(entries_of(X), X.starts + first, n, R, k, sums)
