"""C += A' A for few columns (see ``_narrow_syrk.h``)."""


cdef extern from "_narrow_syrk.h" nogil:
    enum:
        NARROW_PAD                   # rows of A are padded with zeros to a multiple of it

    # lanes of a register to be used here; 0: none
    int narrow_syrk_lanes() noexcept

    # upper triangle of C (n, n) += A' A, A (k, n); False: not done
    bint narrow_syrk(int lanes, Py_ssize_t n, Py_ssize_t k, const double *A, Py_ssize_t lda, double *C,
                     Py_ssize_t ldc) noexcept
