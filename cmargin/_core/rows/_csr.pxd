"""Products with the entries of one CSR row, and sums of them, in float64 whatever the row: one place for all passes.

Steps of stochastic methods, whose weights have the type of the rows, go through ``sparse_dot`` of _rows.
"""

from libc.stdint cimport int32_t, int64_t

ctypedef fused real_t:
    float
    double

ctypedef fused index_t:
    int32_t
    int64_t


cdef inline double csr_dot(const real_t *values, const index_t *columns, Py_ssize_t n, const double *w) noexcept nogil:
    # four sums hide the latency of the additions
    cdef double a = 0, b = 0, c = 0, d = 0
    cdef Py_ssize_t k = 0
    while k + 4 <= n:
        a += values[k] * w[columns[k]]
        b += values[k + 1] * w[columns[k + 1]]
        c += values[k + 2] * w[columns[k + 2]]
        d += values[k + 3] * w[columns[k + 3]]
        k += 4
    while k < n:
        a += values[k] * w[columns[k]]
        k += 1
    return (a + b) + (c + d)


cdef inline void csr_axpy(double scale, const real_t *values, const index_t *columns, Py_ssize_t n,
                          double *w) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(n):
        w[columns[k]] += scale * values[k]


cdef inline void csr_axpy_weighted(double scale, const real_t *values, const index_t *columns, Py_ssize_t n,
                                   const double *weight, double *w) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(n):
        w[columns[k]] += scale * values[k] * weight[columns[k]]


cdef inline void csr_moments(const real_t *values, const index_t *columns, Py_ssize_t n, const double *weight,
                             double *sum_of, double *sum_of_squares) noexcept nogil:
    cdef double first = 0, second = 0, part
    cdef Py_ssize_t k
    for k in range(n):
        part = weight[columns[k]] * values[k]
        first += part
        second += part * values[k]
    sum_of[0], sum_of_squares[0] = first, second
