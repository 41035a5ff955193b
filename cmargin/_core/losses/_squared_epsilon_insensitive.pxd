"""The squared epsilon-insensitive loss max(0, |u| - e)^2 of a residual u, LinearSVR's other one; e = 0: least squares.

A parameter e >= 0; dual variables have no bounds. Its formulas stand in ``_smooth_rows.h``.
"""

from libc.math cimport NAN

from cmargin._core.losses._point cimport loss_facts, point
from cmargin._core.losses._smooth_rows cimport (
    as_point, squared_epsilon_insensitive_at, squared_epsilon_insensitive_gain_at,
)


cdef inline point squared_epsilon_insensitive(double z, double e) noexcept nogil:
    return as_point(squared_epsilon_insensitive_at(z, e))


cdef inline double squared_epsilon_insensitive_gain(double a, double e) noexcept nogil:
    return squared_epsilon_insensitive_gain_at(a, e)


cdef inline loss_facts squared_epsilon_insensitive_facts(double e) noexcept nogil:
    return loss_facts("squared_epsilon_insensitive", NAN, NAN, 2, 1e300, NAN, False, True, e > 0, -1e300)
