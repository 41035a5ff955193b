"""Products of a matrix with itself, tile by tile, by threads.

A tile is one thread's, and tiles do not depend on how many there are: nor do the bits.
"""

from cython cimport floating

from cmargin._core.linalg._blas cimport NO_TRANS, TRANS, gemm, syrk, transpose_flag
from cmargin._core.util._team cimport share_out

cdef enum:
    TILE = 192                  # rows and columns


cdef struct tiles:              # what threads share; void pointers are to floats where ``single``, else to doubles
    transpose_flag trans
    Py_ssize_t n, k, lda, ldc
    const void *A
    void *C
    bint single


cdef void one_tile(const tiles *at, Py_ssize_t row, Py_ssize_t column, const floating *A, floating *C) noexcept nogil:
    cdef Py_ssize_t i = row * TILE, j = column * TILE, step = 1 if at.trans == TRANS else at.lda
    cdef Py_ssize_t n_rows = min(<Py_ssize_t> TILE, at.n - i), n_columns = min(<Py_ssize_t> TILE, at.n - j)
    C += i * at.ldc + j
    if row == column:
        syrk(at.trans, n_rows, at.k, 1, A + i * step, at.lda, 1, C, at.ldc)
    else:
        # C += A_i' A_j or A_i A_j'   (n_rows, n_columns) = (n_rows, k) (k, n_columns)
        gemm(at.trans, NO_TRANS if at.trans == TRANS else TRANS, n_rows, n_columns, at.k, 1, A + i * step, at.lda,
             A + j * step, at.lda, 1, C, at.ldc)


cdef void do_tile(void *of, Py_ssize_t item, int thread) noexcept nogil:
    # the upper triangle's, column by column
    cdef const tiles *at = <const tiles *> of
    cdef Py_ssize_t column = 0
    while item > column:
        column += 1
        item -= column
    if at.single:
        one_tile(at, item, column, <const float *> at.A, <float *> at.C)
    else:
        one_tile(at, item, column, <const double *> at.A, <double *> at.C)


cdef void tiled_syrk(transpose_flag trans, Py_ssize_t n, Py_ssize_t k, const floating *A, Py_ssize_t lda, floating *C,
                     Py_ssize_t ldc, int n_threads) noexcept nogil:
    cdef tiles at
    cdef Py_ssize_t side = (n + TILE - 1) // TILE
    at.trans, at.n, at.k, at.lda, at.ldc, at.single = trans, n, k, lda, ldc, floating is float
    at.A, at.C = A, C
    share_out(do_tile, &at, side * (side + 1) // 2, n_threads)
