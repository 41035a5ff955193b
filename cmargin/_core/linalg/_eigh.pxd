"""Leading eigenpairs of a symmetric matrix by LAPACK's dsyevr or ssyevr."""

from cython cimport floating

include "_blas_int.pxi"


cdef enum eigh_status:
    EIGH_OK = 0
    EIGH_NOT_FINITE = 1     # a NaN or an infinity in the input
    EIGH_FAILED = 2         # LAPACK said info != 0
    EIGH_INCOMPLETE = 3     # LAPACK said info = 0 but found fewer pairs than asked


# Sizes of the workspace that eigh_top needs for order n: floating and integer entries
cdef Py_ssize_t eigh_work_size(Py_ssize_t n) noexcept nogil
cdef Py_ssize_t eigh_iwork_size(Py_ssize_t n) noexcept nogil

cdef eigh_status eigh_top(
    floating *A,            # INOUT (n, n) symmetric, upper triangle read (row-major); destroyed
    Py_ssize_t n,
    Py_ssize_t k,           # pairs wanted, 1 <= k <= n
    floating *values,       # OUT   (n,), the k largest, descending, in values[0:k]; the rest is scratch
    floating *vectors,      # OUT   (k, n), one eigenvector a row, same order
    floating *work,         # WORK  (eigh_work_size(n),)
    blas_int *iwork,        # WORK  (eigh_iwork_size(n),)
) noexcept nogil
