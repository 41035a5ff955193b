"""BLAS, and Cholesky of LAPACK, for row-major arrays, sizes by value: the only door to ``scipy.linalg.cython_blas``.

Every function is fused over float and double, needs no GIL and takes sizes as ``Py_ssize_t``; the cast to SciPy's
``blas_int`` happens here and nowhere else. ``ld*`` is the distance between two rows.
"""

from cython cimport floating

include "_blas_int.pxi"


cdef enum transpose_flag:
    NO_TRANS = 0
    TRANS = 1


# sum_i x_i y_i
cdef double dot(Py_ssize_t n, const floating *x, const floating *y) noexcept nogil

# y += alpha x
cdef void axpy(Py_ssize_t n, double alpha, const floating *x, floating *y) noexcept nogil

# x *= alpha
cdef void scal(Py_ssize_t n, double alpha, floating *x) noexcept nogil

# y = alpha op(A) x + beta y, A (m, n)
cdef void gemv(transpose_flag trans, Py_ssize_t m, Py_ssize_t n, double alpha, const floating *A, Py_ssize_t lda,
               const floating *x, double beta, floating *y) noexcept nogil

# C = alpha op(A) op(B) + beta C;  (m, n) = (m, k) (k, n)
cdef void gemm(transpose_flag trans_a, transpose_flag trans_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
               double alpha, const floating *A, Py_ssize_t lda, const floating *B, Py_ssize_t ldb,
               double beta, floating *C, Py_ssize_t ldc) noexcept nogil

# C = alpha A' A + beta C (trans) or alpha A A' + beta C; upper triangle of C (n, n), inner size k
cdef void syrk(transpose_flag trans, Py_ssize_t n, Py_ssize_t k, double alpha, const floating *A, Py_ssize_t lda,
               double beta, floating *C, Py_ssize_t ldc) noexcept nogil

# A = U' U, A (n, n) given and factor left in its upper triangle; LAPACK's info: 0 unless A is not positive definite
cdef Py_ssize_t potrf(Py_ssize_t n, floating *A) noexcept nogil

# x = A^-1 x for k right sides of length n one after the other, A as `potrf` leaves it
cdef void potrs(Py_ssize_t n, Py_ssize_t k, const floating *A, floating *x) noexcept nogil
