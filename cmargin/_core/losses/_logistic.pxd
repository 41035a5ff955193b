"""The logistic loss, F(z) = ln(1 + e^-z): SLND eq. (2), LogisticRegression's."""

from libc.math cimport exp, fabs, log

from cmargin._core.losses._point cimport loss_facts, point


cdef inline point logistic(double z) noexcept nogil:
    cdef double e = exp(-fabs(z))       # at most 1: never overflows
    cdef double whole = 1 + e
    cdef double share = 1 / whole
    cdef point at
    # ln(1 + e) to the last digit without log1p, which is slow: whole - 1 shows what 1 + e has rounded off (Kahan)
    at.value = (log(whole) * (e / (whole - 1)) if whole != 1 else e) + (0 if z > 0 else -z)
    at.slope = -e * share if z > 0 else -share
    at.curvature = e * share * share
    return at


cdef inline double logistic_gain(double a) noexcept nogil:
    # entropy
    return -(a * log(a) if a > 0 else 0) - ((1 - a) * log(1 - a) if a < 1 else 0)


cdef inline loss_facts logistic_facts() noexcept nogil:
    return loss_facts("logistic", log(2), 0.25, 1, 1, True)
