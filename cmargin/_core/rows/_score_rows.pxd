"""What predictions ask of one row of scores (see ``_score_rows.h``), fused over float and double."""

from cython cimport floating
from libc.stdint cimport int64_t


cdef extern from "_score_rows.h" nogil:
    bint finite_row_f(const float *h, Py_ssize_t k) noexcept
    bint finite_row_d(const double *h, Py_ssize_t k) noexcept
    Py_ssize_t best_of_row_f(const float *h, Py_ssize_t k) noexcept
    Py_ssize_t best_of_row_d(const double *h, Py_ssize_t k) noexcept
    void top_of_row_f(const float *h, Py_ssize_t k, Py_ssize_t n, int64_t *top) noexcept
    void top_of_row_d(const double *h, Py_ssize_t k, Py_ssize_t n, int64_t *top) noexcept


cdef inline bint finite_row(const floating *h, Py_ssize_t k) noexcept nogil:
    if floating is float:
        return finite_row_f(h, k)
    else:
        return finite_row_d(h, k)


cdef inline Py_ssize_t best_of_row(const floating *h, Py_ssize_t k) noexcept nogil:
    if floating is float:
        return best_of_row_f(h, k)
    else:
        return best_of_row_d(h, k)


# top (n,) = classes of the n largest of k scores, largest first
cdef inline void top_of_row(const floating *h, Py_ssize_t k, Py_ssize_t n, int64_t *top) noexcept nogil:
    if floating is float:
        top_of_row_f(h, k, n, top)
    else:
        top_of_row_d(h, k, n, top)
