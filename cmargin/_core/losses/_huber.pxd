"""The Huber loss of a residual u: u^2 / 2 to |u| = delta, then delta |u| - delta^2 / 2.

A parameter delta > 0; dual variables lie between -delta and delta. Its formulas stand in ``_smooth_rows.h``.
"""

from libc.math cimport NAN, sqrt

from cmargin._core.losses._point cimport loss_facts, point
from cmargin._core.losses._smooth_rows cimport as_point, huber_at, huber_gain_at


cdef inline point huber(double z, double delta) noexcept nogil:
    return as_point(huber_at(z, delta))


cdef inline double huber_gain(double a, double delta) noexcept nogil:
    return huber_gain_at(a, delta)


cdef inline loss_facts huber_facts(double delta) noexcept nogil:
    # F'^2 <= 2 F
    return loss_facts("huber", NAN, NAN, sqrt(2), delta, NAN, False, True, True, -delta)
