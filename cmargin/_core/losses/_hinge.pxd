"""The hinge, F(z) = max(0, 1 - z). Newton's method puts the smoothed hinge in its place."""

from libc.math cimport NAN

from cmargin._core.losses._point cimport loss_facts, point


cdef inline point hinge(double z) noexcept nogil:
    # the slope at the kink is the right one, 0
    cdef point at
    at.value = 1 - z if z < 1 else 0
    at.slope = -1 if z < 1 else 0
    at.curvature = 0
    return at


cdef inline double hinge_gain(double a) noexcept nogil:
    return a


cdef inline loss_facts hinge_facts() noexcept nogil:
    return loss_facts("hinge", 1, NAN, 1, 1, 0, False, False, True, 0)
