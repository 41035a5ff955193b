"""The l2 penalty, (l2/2) |w|^2. Its dual term is |v|^2 / (2 l2)."""

from cmargin._core.penalties._penalty cimport penalty_t


cdef inline double ridge_value(const penalty_t *penalty, const double *w) noexcept nogil:
    cdef double squares = 0
    cdef Py_ssize_t j
    for j in range(penalty.n):
        squares += penalty.l2_each[j] * w[j] * w[j]
    return squares / 2


cdef inline double ridge_multiple(double l2, double total, Py_ssize_t n, const double *size) noexcept nogil:
    # argmax over 0 <= t <= 1 of t S - sum (t |v_j|)^2 / (2 l2)
    cdef double squares = 0
    cdef Py_ssize_t j
    for j in range(n):
        squares += size[j] * size[j]
    return min(1.0, l2 * total / squares) if squares > 0 else 1.0


cdef inline double ridge_conjugate(double l2, double t, Py_ssize_t n, const double *size) noexcept nogil:
    # sum (t |v_j|)^2 / (2 l2)
    cdef double squares = 0
    cdef Py_ssize_t j
    for j in range(n):
        squares += (t * size[j]) * (t * size[j])
    return squares / (2 * l2)
