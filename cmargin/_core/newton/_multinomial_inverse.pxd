"""Approximate inverses of the multinomial Hessian, applied without the interpreter (see the .pyx)."""


# place of the first row of a chunk of ``n`` rows out of ``n_chunks``; the rows of a chunk depend on no thread count
cdef inline Py_ssize_t chunk_start(Py_ssize_t n, Py_ssize_t chunk, Py_ssize_t n_chunks) noexcept nogil:
    return n * chunk // n_chunks


# chunks for passes over (n_rows, n_columns) numbers
cdef inline Py_ssize_t chunks_of(Py_ssize_t n_rows, Py_ssize_t n_columns) noexcept nogil:
    return max(1, min(n_rows, min(16, n_rows * n_columns // 16384)))


# v -= mean of v
cdef inline void drop_mean(double *v, Py_ssize_t n) noexcept nogil:
    cdef double mean = 0
    cdef Py_ssize_t j
    for j in range(n):
        mean += v[j]
    mean /= n
    for j in range(n):
        v[j] -= mean


cdef class Inverse:
    cdef readonly Py_ssize_t n_features, n_classes, n_columns
    cdef readonly bint intercept
    cdef int n_threads
    cdef object _alive

    # out = M^-1 G, both (n_columns, n_classes); rows of ``out`` sum to 0
    cdef void apply(self, const double *G, double *out) noexcept nogil
