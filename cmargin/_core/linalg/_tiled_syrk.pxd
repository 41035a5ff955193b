"""Products of a matrix with itself, tile by tile, by threads (see the .pyx)."""

from cython cimport floating

from cmargin._core.linalg._blas cimport transpose_flag

# C += A' A (trans, A (k, n)) or A A' (A (n, k)); upper triangle of C (n, n), rows ldc apart
cdef void tiled_syrk(transpose_flag trans, Py_ssize_t n, Py_ssize_t k, const floating *A, Py_ssize_t lda, floating *C,
                     Py_ssize_t ldc, int n_threads) noexcept nogil
