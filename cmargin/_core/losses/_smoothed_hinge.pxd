"""The smoothed hinge, F(z) = (u + sqrt(width^2 + u^2)) / 2 with u = 1 - z, width > 0: SmSVM eq. (6).

Newton's method reads many rows at it: those loops are vectorised C, ``_smoothed_hinge.h``, and so are its formulas.
"""

from libc.math cimport NAN

from cmargin._core.losses._point cimport loss_facts, point


cdef extern from "_smoothed_hinge.h" nogil:
    ctypedef struct hinge_step:
        double step
        double line_width
        double width
        double floor
        int primal
        int tangents

    ctypedef struct hinge_point:
        double above
    hinge_point hinge_at(double u, double width) noexcept
    double hinge_value(hinge_point at) noexcept
    double hinge_slope(hinge_point at) noexcept
    double dual_curvature(double a, hinge_point at) noexcept
    double primal_curvature(hinge_point at, double width) noexcept
    void hinge_rows(const hinge_step *at, Py_ssize_t n, const double *signed_weight, const double *slack,
                    const double *change, const double *dual, double *dual_next, double *parts, Py_ssize_t ld,
                    double *r, double *curvature) noexcept
    void hinge_line(Py_ssize_t n, const double *signed_weight, const double *slack, const double *change, double step,
                    double width, double *out) noexcept


cdef inline point smoothed_hinge(double z, double width) noexcept nogil:
    cdef hinge_point there
    cdef point at
    if width < 1e-150 or width > 1e150:       # its square leaves the range of doubles: in units of it
        there = hinge_at((1 - z) / width, 1)
        at.value = (1 - z if z < 1 else 0) + there.above * width
        at.slope = -hinge_slope(there)
        at.curvature = primal_curvature(there, 1) / width
        return at
    there = hinge_at(1 - z, width)
    at.value = hinge_value(there)
    at.slope = -hinge_slope(there)
    at.curvature = primal_curvature(there, width)
    return at


cdef inline loss_facts smoothed_hinge_facts() noexcept nogil:
    # the bound is the hinge's, and so are its dual variables
    return loss_facts("smoothed_hinge", NAN, NAN, 1, 1, NAN, False, True, False, 0)
