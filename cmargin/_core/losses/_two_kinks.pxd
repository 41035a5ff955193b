"""Losses of a residual u with a kink on either side of 0: F(u) = up max(0, u - e) + down max(0, -u - e).

Newton's method reads many rows at them, smoothed as the hinge is: those loops are vectorised C, ``_two_kinks.h``.
"""

from libc.math cimport fabs

from cmargin._core.losses._point cimport point
from cmargin._core.losses._smoothed_hinge cimport hinge_step


cdef extern from "_two_kinks.h" nogil:
    ctypedef struct two_kinks:
        double up
        double down
        double e

    void two_kinks_rows(const hinge_step *at, const two_kinks *of, Py_ssize_t n, const double *signed_weight,
                        const double *slack, const double *change, const double *dual, double *dual_next,
                        double *parts, Py_ssize_t ld, double *r, double *curvature) noexcept
    void two_kinks_curvatures(const two_kinks *of, double width, double pending, double floor, Py_ssize_t n,
                              const double *signed_weight, const double *slack, const double *change,
                              const double *dual, double *weight) noexcept
    void two_kinks_line(const two_kinks *of, Py_ssize_t n, const double *signed_weight, const double *slack,
                        const double *change, double step, double width, double *out) noexcept


cdef inline point two_kinks_at(two_kinks of, double z) noexcept nogil:
    # the loss itself, not smoothed, at u = 1 - z
    cdef double u = 1 - z
    cdef point at
    at.value = of.up * max(0.0, u - of.e) + of.down * max(0.0, -u - of.e)
    at.slope = (of.down if u < -of.e else 0) - (of.up if u > of.e else 0)
    at.curvature = 0
    return at


cdef inline double two_kinks_gain(two_kinks of, double a) noexcept nogil:
    return a - of.e * fabs(a)
