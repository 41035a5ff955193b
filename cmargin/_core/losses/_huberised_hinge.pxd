"""The hinge rounded off by a parabola of width delta, and the modified Huber loss, four times that of delta = 2.

In u = 1 - z, F is 0 below 0, u^2 / (2 delta) to delta, and u - delta / 2 beyond. The modified Huber loss is that of
Zhang (2004), as SGDClassifier has it: max(0, 1 - z)^2 for z >= -1, else -4 z. Formulas stand in ``_smooth_rows.h``.
"""

from libc.math cimport NAN, sqrt

from cmargin._core.losses._point cimport loss_facts, point
from cmargin._core.losses._smooth_rows cimport as_point, huberised_hinge_at, huberised_hinge_gain_at

cdef enum:
    MODIFIED_DELTA = 2
    MODIFIED_SCALE = 4


cdef inline point huberised_hinge(double z, double delta) noexcept nogil:
    return as_point(huberised_hinge_at(z, delta, 1))


cdef inline double huberised_hinge_gain(double a, double delta) noexcept nogil:
    return huberised_hinge_gain_at(a, delta, 1)


cdef inline loss_facts huberised_hinge_facts(double delta) noexcept nogil:
    # F'^2 <= 2 F / delta, and 1
    cdef double at_zero = 1 / (2 * delta) if delta >= 1 else 1 - delta / 2
    return loss_facts("huberised_hinge", at_zero, NAN, min(1, sqrt(2 / delta)), 1, delta, False, True, True, 0)


cdef inline point modified_huber(double z) noexcept nogil:
    return as_point(huberised_hinge_at(z, MODIFIED_DELTA, MODIFIED_SCALE))


cdef inline double modified_huber_gain(double a) noexcept nogil:
    return huberised_hinge_gain_at(a, MODIFIED_DELTA, MODIFIED_SCALE)


cdef inline loss_facts modified_huber_facts() noexcept nogil:
    return loss_facts("modified_huber", 1, 2, 2, MODIFIED_SCALE, 0.5, False, True, True, 0)
