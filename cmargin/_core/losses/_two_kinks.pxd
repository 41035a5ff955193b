"""Losses of a residual u with a kink on either side of 0: F(u) = up max(0, u - e) + down max(0, -u - e).

Newton's method reads many rows at them, smoothed as the hinge is: those loops are vectorised C, ``_two_kinks.h``.
"""

from libc.math cimport fabs

from cmargin._core.losses._point cimport point
from cmargin._core.losses._smoothed_hinge cimport hinge_point, hinge_step


cdef extern from "_two_kinks.h" nogil:
    ctypedef struct two_kinks:
        double up
        double down
        double e

    ctypedef struct kinks_point:
        hinge_point up
    ctypedef struct kinks_shares:
        double by_up
    kinks_point kinks_at(int mirrored, double e, double u, double width) noexcept
    kinks_shares shares_at(const two_kinks *of, double width) noexcept
    double kinks_primal_curvature(const two_kinks *of, kinks_point at, double width) noexcept
    double kinks_dual_curvature(const two_kinks *of, const kinks_shares *shares, double a, kinks_point at) noexcept
    void two_kinks_rows(const hinge_step *at, const two_kinks *of, Py_ssize_t n, const double *signed_weight,
                        const double *slack, const double *change, const double *dual, double *dual_next,
                        double *parts, Py_ssize_t ld, double *r, double *curvature) noexcept
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


cdef inline double smoothed_curvature(const two_kinks *of, double u, double width, bint primal,
                                      double a) noexcept nogil:
    # h of one row: as the evaluations sum it
    cdef kinks_point at = kinks_at(of.e == 0, of.e, u, width)
    cdef kinks_shares shares
    if primal:
        return kinks_primal_curvature(of, at, width)
    shares = shares_at(of, width)
    return kinks_dual_curvature(of, &shares, a, at)
