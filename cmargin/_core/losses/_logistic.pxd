"""The logistic loss, F(z) = ln(1 + e^-z): SLND eq. (2), LogisticRegression's. Formulas stand in ``_smooth_rows.h``."""

from libc.math cimport NAN, log

from cmargin._core.losses._point cimport loss_facts, point
from cmargin._core.losses._smooth_rows cimport as_point, logistic_at, logistic_gain_at


cdef inline point logistic(double z) noexcept nogil:
    return as_point(logistic_at(z))


cdef inline double logistic_gain(double a) noexcept nogil:
    return logistic_gain_at(a)


cdef inline loss_facts logistic_facts() noexcept nogil:
    return loss_facts("logistic", log(2), 0.25, 1, 1, NAN, True, True, False, 0)
