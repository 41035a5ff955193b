"""dot, axpy, axpy by columns, running mean and sum of short rows (see ``_simd.h``), fused over float and double."""

from cython cimport floating


cdef extern from "_simd.h" nogil:
    float row_dot_f(const float *a, const float *b, Py_ssize_t n) noexcept
    double row_dot_d(const double *a, const double *b, Py_ssize_t n) noexcept
    void row_axpy_f(float scale, const float *x, float *y, Py_ssize_t n) noexcept
    void row_axpy_d(double scale, const double *x, double *y, Py_ssize_t n) noexcept
    void row_scaled_axpy_f(float scale, const float *g, const float *x, float *y, Py_ssize_t n) noexcept
    void row_scaled_axpy_d(double scale, const double *g, const double *x, double *y, Py_ssize_t n) noexcept
    void row_lerp_f(float rate, const float *value, float *mean, Py_ssize_t n) noexcept
    void row_lerp_d(double rate, const double *value, double *mean, Py_ssize_t n) noexcept
    void rows_sum_f(const float *x, Py_ssize_t n, Py_ssize_t k, float *y) noexcept
    void rows_sum_d(const double *x, Py_ssize_t n, Py_ssize_t k, double *y) noexcept
    void row_prefetch_f(const float *x, Py_ssize_t n) noexcept
    void row_prefetch_d(const double *x, Py_ssize_t n) noexcept
    double lane_sum(const double *x, Py_ssize_t n) noexcept
    void PREFETCH(const void *address) noexcept
    void prefetch_of_six(Py_ssize_t i, const double *a, const double *b, const double *c, const double *d,
                         const double *e, const double *f) noexcept


cdef inline double row_dot(const floating *a, const floating *b, Py_ssize_t n) noexcept nogil:
    if floating is float:
        return row_dot_f(a, b, n)
    else:
        return row_dot_d(a, b, n)


cdef inline void row_axpy(double scale, const floating *x, floating *y, Py_ssize_t n) noexcept nogil:
    if floating is float:
        row_axpy_f(<float> scale, x, y, n)
    else:
        row_axpy_d(scale, x, y, n)


cdef inline void row_scaled_axpy(double scale, const floating *g, const floating *x, floating *y,
                                 Py_ssize_t n) noexcept nogil:
    if floating is float:
        row_scaled_axpy_f(<float> scale, g, x, y, n)
    else:
        row_scaled_axpy_d(scale, g, x, y, n)


cdef inline void row_lerp(double rate, const floating *value, floating *mean, Py_ssize_t n) noexcept nogil:
    if floating is float:
        row_lerp_f(<float> rate, value, mean, n)
    else:
        row_lerp_d(rate, value, mean, n)


cdef inline void rows_sum(const floating *x, Py_ssize_t n, Py_ssize_t k, floating *y) noexcept nogil:
    if floating is float:
        rows_sum_f(x, n, k, y)
    else:
        rows_sum_d(x, n, k, y)


cdef inline void row_prefetch(const floating *x, Py_ssize_t n) noexcept nogil:
    if floating is float:
        row_prefetch_f(x, n)
    else:
        row_prefetch_d(x, n)
