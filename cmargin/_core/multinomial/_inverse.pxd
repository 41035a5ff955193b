"""Approximate inverses of the multinomial Hessian, applied without the interpreter (see the .pyx)."""

from cython cimport floating

from cmargin._core.linalg._eigh cimport blas_int


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


cdef struct kronecker:
    Py_ssize_t m, k, rank, n_chunks
    bint intercept
    double l2, tail, scale
    const double *mean          # IN    (m,) of the rows
    const double *values        # IN    (rank,) of S
    const float *vectors        # IN    (m, rank)
    double *curvature           # (k,) eigenvalues of A, descending,
    double *U                   # (k, k) its vectors as columns,
    float *low_U                # (k, k) and these in single precision
    double *A                   # WORK  (k, k)
    double *values_of_A         # WORK  (k,)
    double *rows_of_U           # WORK  (k, k)
    double *work                # WORK  of `eigh_top`, and (CURVATURE_ROWS + 1, k)
    blas_int *iwork             # WORK
    float *centred              # WORK  (m, k)
    float *rotated              # WORK  (m, k)
    float *low                  # WORK  (n_chunks, rank, k)
    double *at_mean             # WORK  (n_chunks, k)


cdef class Kronecker(Inverse):
    cdef kronecker at


# A becomes the mean of diag(p) - p p' over every ``stride``-th of n rows
cdef void kronecker_update_at(kronecker *at, const floating *probs, const double *weight, Py_ssize_t n,
                              Py_ssize_t stride) noexcept nogil
