"""Row-major wrappers of BLAS."""

from cython cimport floating
from scipy.linalg cimport cython_blas as blas
from scipy.linalg cimport cython_lapack as lapack

from cmargin._core.linalg._packed_syrk cimport PACKED_PAD, packed_syrk_d, packed_syrk_f, packed_syrk_lanes

# SciPy declares no argument const, so the casts below drop it; BLAS writes to none of them.


cdef double dot(Py_ssize_t n, const floating *x, const floating *y) noexcept nogil:
    cdef blas_int n_ = <blas_int> n, one = 1
    if floating is float:
        return blas.sdot(&n_, <float *> x, &one, <float *> y, &one)
    else:
        return blas.ddot(&n_, <double *> x, &one, <double *> y, &one)


cdef void axpy(Py_ssize_t n, double alpha, const floating *x, floating *y) noexcept nogil:
    cdef blas_int n_ = <blas_int> n, one = 1
    cdef floating alpha_ = <floating> alpha
    if floating is float:
        blas.saxpy(&n_, &alpha_, <float *> x, &one, y, &one)
    else:
        blas.daxpy(&n_, &alpha_, <double *> x, &one, y, &one)


cdef void scal(Py_ssize_t n, double alpha, floating *x) noexcept nogil:
    cdef blas_int n_ = <blas_int> n, one = 1
    cdef floating alpha_ = <floating> alpha
    if floating is float:
        blas.sscal(&n_, &alpha_, x, &one)
    else:
        blas.dscal(&n_, &alpha_, x, &one)


cdef void gemv(transpose_flag trans, Py_ssize_t m, Py_ssize_t n, double alpha, const floating *A, Py_ssize_t lda,
               const floating *x, double beta, floating *y) noexcept nogil:
    # row-major A is column-major A', so the flag turns round
    cdef char flag = b"N" if trans == TRANS else b"T"
    cdef blas_int m_ = <blas_int> m, n_ = <blas_int> n, lda_ = <blas_int> max(lda, 1), one = 1
    cdef floating alpha_ = <floating> alpha, beta_ = <floating> beta
    if floating is float:
        blas.sgemv(&flag, &n_, &m_, &alpha_, <float *> A, &lda_, <float *> x, &one, &beta_, y, &one)
    else:
        blas.dgemv(&flag, &n_, &m_, &alpha_, <double *> A, &lda_, <double *> x, &one, &beta_, y, &one)


cdef void gemm(transpose_flag trans_a, transpose_flag trans_b, Py_ssize_t m, Py_ssize_t n, Py_ssize_t k,
               double alpha, const floating *A, Py_ssize_t lda, const floating *B, Py_ssize_t ldb,
               double beta, floating *C, Py_ssize_t ldc) noexcept nogil:
    # C' = op(B)' op(A)' in column-major reading
    cdef char flag_a = b"T" if trans_a == TRANS else b"N"
    cdef char flag_b = b"T" if trans_b == TRANS else b"N"
    cdef blas_int m_ = <blas_int> m, n_ = <blas_int> n, k_ = <blas_int> k
    cdef blas_int lda_ = <blas_int> max(lda, 1), ldb_ = <blas_int> max(ldb, 1), ldc_ = <blas_int> max(ldc, 1)
    cdef floating alpha_ = <floating> alpha, beta_ = <floating> beta
    if floating is float:
        blas.sgemm(&flag_b, &flag_a, &n_, &m_, &k_, &alpha_, <float *> B, &ldb_, <float *> A, &lda_,
                   &beta_, C, &ldc_)
    else:
        blas.dgemm(&flag_b, &flag_a, &n_, &m_, &k_, &alpha_, <double *> B, &ldb_, <double *> A, &lda_,
                   &beta_, C, &ldc_)


cdef void syrk(transpose_flag trans, Py_ssize_t n, Py_ssize_t k, double alpha, const floating *A, Py_ssize_t lda,
               double beta, floating *C, Py_ssize_t ldc) noexcept nogil:
    # the upper triangle of a row-major C is the lower one of its column-major reading
    cdef char flag = b"N" if trans == TRANS else b"T"
    cdef char lower = b"L"
    cdef blas_int n_ = <blas_int> n, k_ = <blas_int> k, lda_ = <blas_int> max(lda, 1), ldc_ = <blas_int> max(ldc, 1)
    cdef floating alpha_ = <floating> alpha, beta_ = <floating> beta
    if floating is float:
        blas.ssyrk(&lower, &flag, &n_, &k_, &alpha_, <float *> A, &lda_, &beta_, C, &ldc_)
    else:
        blas.dsyrk(&lower, &flag, &n_, &k_, &alpha_, <double *> A, &lda_, &beta_, C, &ldc_)


cdef Py_ssize_t potrf(Py_ssize_t n, floating *A) noexcept nogil:
    cdef char lower = b"L"               # row-major upper is column-major lower
    cdef blas_int n_ = <blas_int> n, lda = <blas_int> max(n, 1), info = 0
    if floating is float:
        lapack.spotrf(&lower, &n_, A, &lda, &info)
    else:
        lapack.dpotrf(&lower, &n_, A, &lda, &info)
    return info


cdef void potrs(Py_ssize_t n, Py_ssize_t k, const floating *A, floating *x) noexcept nogil:
    cdef char lower = b"L"
    cdef blas_int n_ = <blas_int> n, k_ = <blas_int> k, lda = <blas_int> max(n, 1), info = 0
    if floating is float:
        lapack.spotrs(&lower, &n_, &k_, <float *> A, &lda, x, &lda, &info)
    else:
        lapack.dpotrs(&lower, &n_, &k_, <double *> A, &lda, x, &lda, &info)


# ---------------------------------------------------------------- for Python callers

def packed_syrk_memview(int lanes, const floating[:, ::1] A, floating[:, ::1] C):
    """Upper triangle of C += A' A by registers of so many doubles, rows of A padded with zeros; False: not done."""
    if A.shape[1] % PACKED_PAD or A.shape[1] < C.shape[0] or C.shape[0] != C.shape[1]:
        raise ValueError(f"A {A.shape[0]} x {A.shape[1]} is not padded for C {C.shape[0]} x {C.shape[1]}")
    if lanes > packed_syrk_lanes():
        raise ValueError(f"this processor has {packed_syrk_lanes()} lanes, not {lanes}")
    if floating is float:
        return packed_syrk_f(lanes, C.shape[0], A.shape[0], &A[0, 0], A.shape[1], &C[0, 0], C.shape[1])
    else:
        return packed_syrk_d(lanes, C.shape[0], A.shape[0], &A[0, 0], A.shape[1], &C[0, 0], C.shape[1])


def lanes_here():
    """Doubles of a register that `packed_syrk_memview` uses on this processor."""
    return packed_syrk_lanes()
