"""Softmax of rows of scores, and its curvature times a direction (see ``_softmax.h``), fused over float and double."""

from cython cimport floating


cdef extern from "_softmax.h" nogil:
    enum:
        FEW_CLASSES             # rows of fewer lie side by side, up to 16 of them

    void softmax_rows_f(const float *scores, Py_ssize_t n, Py_ssize_t k, const double *weight, float *probs,
                        float *weighted, double *of_rows, Py_ssize_t ld) noexcept
    void softmax_rows_d(const double *scores, Py_ssize_t n, Py_ssize_t k, const double *weight, double *probs,
                        double *weighted, double *of_rows, Py_ssize_t ld) noexcept
    void curved_rows_f(const float *p, float *t, Py_ssize_t n, Py_ssize_t k, const double *weight) noexcept
    void curved_rows_d(const double *p, double *t, Py_ssize_t n, Py_ssize_t k, const double *weight) noexcept
    void spread_rows_f(const float *p, const float *t, Py_ssize_t n, Py_ssize_t k, float *off, double *of_rows,
                       Py_ssize_t ld) noexcept
    void spread_rows_d(const double *p, const double *t, Py_ssize_t n, Py_ssize_t k, double *off, double *of_rows,
                       Py_ssize_t ld) noexcept


cdef inline void softmax_rows(
    const floating *scores,     # IN    (n, k)
    Py_ssize_t n,
    Py_ssize_t k,
    const double *weight,       # IN    (n,)
    floating *probs,            # OUT   (n, k), may be the scores, or NULL
    floating *weighted,         # OUT   (n, k), weight p, may be the scores, or NULL
    double *of_rows,            # OUT   (3, ld): top, ln sum exp(h - top), <p, h - top>
    Py_ssize_t ld,
) noexcept nogil:
    if floating is float:
        softmax_rows_f(scores, n, k, weight, probs, weighted, of_rows, ld)
    else:
        softmax_rows_d(scores, n, k, weight, probs, weighted, of_rows, ld)


cdef inline void curved_rows(
    const floating *p,          # IN    (n, k)
    floating *t,                # INOUT (n, k), becomes weight p (t - <p, t>)
    Py_ssize_t n,
    Py_ssize_t k,
    const double *weight,       # IN    (n,)
) noexcept nogil:
    if floating is float:
        curved_rows_f(p, t, n, k, weight)
    else:
        curved_rows_d(p, t, n, k, weight)


cdef inline void spread_rows(
    const floating *p,          # IN    (n, k)
    const floating *t,          # IN    (n, k)
    Py_ssize_t n,
    Py_ssize_t k,
    floating *off,              # WORK  (k,)
    double *of_rows,            # OUT   (2, ld): <p, t>, <p, (t - <p, t>)^2>
    Py_ssize_t ld,
) noexcept nogil:
    if floating is float:
        spread_rows_f(p, t, n, k, off, of_rows, ld)
    else:
        spread_rows_d(p, t, n, k, off, of_rows, ld)
