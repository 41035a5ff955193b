"""The calibrated hinge, F(z) = max(0, -z) - ln(2 + |z|): SLND eq. (3). It tends to -infinity with growing margin."""

from libc.math cimport NAN, fabs, log

from cmargin._core.losses._point cimport loss_facts, point


cdef inline point calibrated_hinge(double z) noexcept nogil:
    cdef double reach = 1 / (2 + fabs(z))
    cdef point at
    at.value = (0 if z > 0 else -z) - log(2 + fabs(z))
    at.slope = -reach if z > 0 else reach - 1
    at.curvature = reach * reach
    return at


cdef inline loss_facts calibrated_hinge_facts() noexcept nogil:
    return loss_facts("calibrated_hinge", log(2), 0.25, NAN, 0, NAN, True, True, False, 0)
