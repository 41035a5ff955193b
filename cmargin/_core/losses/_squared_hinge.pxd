"""The squared hinge, F(z) = max(0, 1 - z)^2, LinearSVC's default."""

from cmargin._core.losses._point cimport loss_facts, point


cdef inline point squared_hinge(double z) noexcept nogil:
    # the curvature at the kink is the left one, 2
    cdef double u = 1 - z if z <= 1 else 0
    cdef point at
    at.value = u * u
    at.slope = -2 * u
    at.curvature = 2 if z <= 1 else 0
    return at


cdef inline double squared_hinge_gain(double a) noexcept nogil:
    return a - a * a / 4


cdef inline loss_facts squared_hinge_facts() noexcept nogil:
    return loss_facts("squared_hinge", 1, 2, 2, 1e300, False)
