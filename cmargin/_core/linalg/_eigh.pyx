"""Leading eigenpairs of a symmetric matrix.

LAPACK's syevr answers ``info = 0`` with no eigenvalue found, and leaves its outputs unwritten, when the matrix
holds a single NaN or infinity; so the input is checked first, and the number found along with info.
"""

from cython cimport floating
from libc.math cimport isfinite
from scipy.linalg cimport cython_lapack as lapack


cdef Py_ssize_t eigh_work_size(Py_ssize_t n) noexcept nogil:
    return 32 * n + 64                   # at least 26 n; more lets the reduction work in blocks


cdef Py_ssize_t eigh_iwork_size(Py_ssize_t n) noexcept nogil:
    return 12 * n + 16                   # 10 n of iwork, 2 n of isuppz


cdef eigh_status eigh_top(floating *A, Py_ssize_t n, Py_ssize_t k, floating *values, floating *vectors,
                          floating *work, blas_int *iwork) noexcept nogil:
    cdef blas_int n_ = <blas_int> n, lo = <blas_int> (n - k + 1), hi = <blas_int> n, found = 0, info = 0
    cdef blas_int lwork = <blas_int> eigh_work_size(n), liwork = <blas_int> (10 * n)
    cdef floating zero = 0, held
    cdef char jobz = b"V", by_index = b"I", lower = b"L"     # row-major upper is column-major lower
    cdef Py_ssize_t i, j
    for i in range(n):
        for j in range(i, n):
            if not isfinite(A[i * n + j]):
                return EIGH_NOT_FINITE
    if floating is float:
        lapack.ssyevr(&jobz, &by_index, &lower, &n_, A, &n_, &zero, &zero, &lo, &hi, &zero, &found, values,
                      vectors, &n_, iwork + 10 * n, work, &lwork, iwork, &liwork, &info)
    else:
        lapack.dsyevr(&jobz, &by_index, &lower, &n_, A, &n_, &zero, &zero, &lo, &hi, &zero, &found, values,
                      vectors, &n_, iwork + 10 * n, work, &lwork, iwork, &liwork, &info)
    if info != 0:
        return EIGH_FAILED
    if found != k:
        return EIGH_INCOMPLETE
    for i in range(k // 2):              # LAPACK's order is ascending
        held = values[i]
        values[i] = values[k - 1 - i]
        values[k - 1 - i] = held
        for j in range(n):
            held = vectors[i * n + j]
            vectors[i * n + j] = vectors[(k - 1 - i) * n + j]
            vectors[(k - 1 - i) * n + j] = held
    return EIGH_OK
