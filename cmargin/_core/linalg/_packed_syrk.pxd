"""C += A' A for rows that are packed and padded (see ``_packed_syrk.h``)."""


cdef extern from "_packed_syrk.h" nogil:
    enum:
        PACKED_PAD                   # rows of A are padded with zeros to a multiple of it

    # doubles of a register to be used here; 0: none
    int packed_syrk_lanes() noexcept

    # columns up to which they are quicker than BLAS, whose own registers are shorter than 8 doubles where it `trails`
    Py_ssize_t packed_syrk_widest(int lanes, bint trails, bint single) noexcept

    # columns from which a sum over so many rows is quicker in single precision than in double
    Py_ssize_t packed_syrk_single_from(int lanes, Py_ssize_t rows) noexcept

    # upper triangle of C (n, n) += A' A, A (k, n); False: not done
    bint packed_syrk_d(int lanes, Py_ssize_t n, Py_ssize_t k, const double *A, Py_ssize_t lda, double *C,
                       Py_ssize_t ldc) noexcept
    bint packed_syrk_f(int lanes, Py_ssize_t n, Py_ssize_t k, const float *A, Py_ssize_t lda, float *C,
                       Py_ssize_t ldc) noexcept
