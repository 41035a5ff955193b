"""Dense rows times the weights of a few classes, and back (see ``_few_classes.h``), fused over float and double."""

from cython cimport floating


cdef extern from "_few_classes.h" nogil:
    int few_supported() noexcept    # whether this processor has them; otherwise they are not to be called
    void few_times_f(Py_ssize_t n, Py_ssize_t k, Py_ssize_t m, float scale, const float *X, Py_ssize_t ldx,
                     const float *V, Py_ssize_t ldv, float *out, Py_ssize_t ldo) noexcept
    void few_times_d(Py_ssize_t n, Py_ssize_t k, Py_ssize_t m, double scale, const double *X, Py_ssize_t ldx,
                     const double *V, Py_ssize_t ldv, double *out, Py_ssize_t ldo) noexcept
    void few_sums_f(Py_ssize_t n, Py_ssize_t k, Py_ssize_t m, float scale, const float *X, Py_ssize_t ldx,
                    const float *R, Py_ssize_t ldr, float *sums, Py_ssize_t lds) noexcept
    void few_sums_d(Py_ssize_t n, Py_ssize_t k, Py_ssize_t m, double scale, const double *X, Py_ssize_t ldx,
                    const double *R, Py_ssize_t ldr, double *sums, Py_ssize_t lds) noexcept


cdef enum:
    FEW_MOST = 16


cdef inline bint few_pay(Py_ssize_t k, Py_ssize_t m, bint single) noexcept nogil:
    # where they are quicker than gemm (doc/lab-notebook); 8 columns are the least that they can do
    return few_supported() and k <= FEW_MOST and m >= (max(16, 4 * k) if single else 16)


cdef inline void few_times(
    Py_ssize_t n,
    Py_ssize_t k,
    Py_ssize_t m,
    floating scale,
    const floating *X,          # IN    (n, m), rows ldx apart
    Py_ssize_t ldx,
    const floating *V,          # IN    (k, m)
    Py_ssize_t ldv,
    floating *out,              # INOUT (n, k), scale X V' is added
    Py_ssize_t ldo,
) noexcept nogil:
    if floating is float:
        few_times_f(n, k, m, scale, X, ldx, V, ldv, out, ldo)
    else:
        few_times_d(n, k, m, scale, X, ldx, V, ldv, out, ldo)


cdef inline void few_sums(
    Py_ssize_t n,
    Py_ssize_t k,
    Py_ssize_t m,
    floating scale,
    const floating *X,          # IN    (n, m), rows ldx apart
    Py_ssize_t ldx,
    const floating *R,          # IN    (n, k)
    Py_ssize_t ldr,
    floating *sums,             # INOUT (k, m), scale R' X is added
    Py_ssize_t lds,
) noexcept nogil:
    if floating is float:
        few_sums_f(n, k, m, scale, X, ldx, R, ldr, sums, lds)
    else:
        few_sums_d(n, k, m, scale, X, ldx, R, ldr, sums, lds)
