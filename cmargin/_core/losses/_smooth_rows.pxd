"""Rows of a loss that is smooth itself, many at a time; what is asked of them stands in ``_smooth_rows.h``."""


cdef extern from "_smooth_rows.h" nogil:
    void logistic_rows(double step, double floor, Py_ssize_t n, const double *code, const double *deficit,
                       const double *change, double *dual_next, double *parts, Py_ssize_t ld, double *r,
                       double *curvature) noexcept
    void squared_hinge_rows(double step, double floor, Py_ssize_t n, const double *code, const double *deficit,
                            const double *change, double *dual_next, double *parts, Py_ssize_t ld, double *r,
                            double *curvature) noexcept
