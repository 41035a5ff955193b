"""The squared hinge, F(z) = max(0, 1 - z)^2, LinearSVC's default. Its formulas stand in ``_smooth_rows.h``."""

from cmargin._core.losses._point cimport loss_facts, point
from cmargin._core.losses._smooth_rows cimport as_point, squared_hinge_at, squared_hinge_gain_at


cdef inline point squared_hinge(double z) noexcept nogil:
    return as_point(squared_hinge_at(z))


cdef inline double squared_hinge_gain(double a) noexcept nogil:
    return squared_hinge_gain_at(a)


cdef inline loss_facts squared_hinge_facts() noexcept nogil:
    return loss_facts("squared_hinge", 1, 2, 2, 1e300, 0.5, False, True, True, 0)
