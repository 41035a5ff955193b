"""The smoothed hinge, row by row (see ``_hinge_rows.h``)."""


cdef extern from "_hinge_rows.h" nogil:
    ctypedef struct hinge_step:
        double step
        double line_width
        double width
        double floor
        int primal

    ctypedef struct hinge_point:
        double above
    hinge_point hinge_at(double u, double width) noexcept
    double hinge_value(hinge_point at) noexcept
    double hinge_slope(hinge_point at) noexcept
    double dual_curvature(double a, hinge_point at) noexcept
    double primal_curvature(hinge_point at, double width) noexcept
    void hinge_rows(const hinge_step *at, Py_ssize_t n, const double *code, const double *deficit, const double *change,
                    const double *dual, double *dual_next, double *parts, Py_ssize_t ld, double *r,
                    double *curvature) noexcept
    void hinge_along(Py_ssize_t n, const double *code, const double *deficit, const double *change, double step,
                     double width, double *out) noexcept
