"""Every loss, one inline function each: value, slope and curvature at one margin z = y <w, x>.

Where a caller uses only the slope, the compiler drops the rest. Domain: every finite z. Arithmetic is double
whatever the dtype of the data. ``1 + slope`` of a calibrated loss is the posterior of the class at that score
(BSN, table 1). Parameters ``a`` and ``b`` of `point_loss` mean what the single functions say; others ignore them.
"""

from libc.math cimport exp, fabs, log

from cmargin._core.losses._hinge_rows cimport hinge_at, hinge_point, hinge_slope, hinge_value, primal_curvature


cdef struct point:
    double value
    double slope
    double curvature


cdef enum loss_id:
    LOGISTIC = 0
    CALIBRATED_HINGE = 1
    SQUARED = 2
    HINGE = 3
    SMOOTHED_HINGE = 4
    MARGIN_PURSUIT = 5
    SQUARED_HINGE = 6


cdef inline point logistic(double z) noexcept nogil:
    # F(z) = ln(1 + e^-z)                                                    SLND eq. (2)
    cdef double e = exp(-fabs(z))       # at most 1: never overflows
    cdef double whole = 1 + e
    cdef double share = 1 / whole
    cdef point at
    # ln(1 + e) to the last digit without log1p, which is slow: whole - 1 shows what 1 + e has rounded off (Kahan)
    at.value = (log(whole) * (e / (whole - 1)) if whole != 1 else e) + (0 if z > 0 else -z)
    at.slope = -e * share if z > 0 else -share
    at.curvature = e * share * share
    return at


cdef inline point calibrated_hinge(double z) noexcept nogil:
    # F(z) = max(0, -z) - ln(2 + |z|): tends to -infinity with growing margin, SLND eq. (3)
    cdef double reach = 1 / (2 + fabs(z))
    cdef point at
    at.value = (0 if z > 0 else -z) - log(2 + fabs(z))
    at.slope = -reach if z > 0 else reach - 1
    at.curvature = reach * reach
    return at


cdef inline point squared(double z) noexcept nogil:
    # F(z) = (1 - z)^2 / 4                                                   SLND section 5.3
    cdef point at
    at.value = (1 - z) * (1 - z) / 4
    at.slope = (z - 1) / 2
    at.curvature = 0.5
    return at


cdef inline point hinge(double z) noexcept nogil:
    # F(z) = max(0, 1 - z); the slope at the kink is the right one, 0
    cdef point at
    at.value = 1 - z if z < 1 else 0
    at.slope = -1 if z < 1 else 0
    at.curvature = 0
    return at


cdef inline point squared_hinge(double z) noexcept nogil:
    # F(z) = max(0, 1 - z)^2, LinearSVC's default; the curvature at the kink is the left one, 2
    cdef double u = 1 - z if z <= 1 else 0
    cdef point at
    at.value = u * u
    at.slope = -2 * u
    at.curvature = 2 if z <= 1 else 0
    return at


cdef inline point smoothed_hinge(double z, double width) noexcept nogil:
    # F(z) = (u + sqrt(width^2 + u^2)) / 2 with u = 1 - z, width > 0          SmSVM eq. (6), in _hinge_rows.h
    cdef hinge_point there
    cdef point at
    if width < 1e-150 or width > 1e150:       # its square leaves the range of doubles: in units of it
        there = hinge_at((1 - z) / width, 1)
        at.value = (1 - z if z < 1 else 0) + there.above * width
        at.slope = -hinge_slope(there)
        at.curvature = primal_curvature(there, 1) / width
        return at
    there = hinge_at(1 - z, width)
    at.value = hinge_value(there)
    at.slope = -hinge_slope(there)
    at.curvature = primal_curvature(there, width)
    return at


cdef inline point catoni_rho(double u) noexcept nogil:
    # rho(u) = u^2/2 - u^4/24 for |u| <= sqrt 2, else 2 sqrt(2)/3 |u| - 1/2; slope psi(u)   margin pursuit eq. (2)
    cdef double edge = 0.94280904158206336587     # 2 sqrt(2) / 3
    cdef double square = u * u
    cdef point at
    if square <= 2:
        at.value = square / 2 - square * square / 24
        at.slope = u - u * square / 6
        at.curvature = 1 - square / 2
    else:
        at.value = edge * fabs(u) - 0.5
        at.slope = edge if u > 0 else -edge
        at.curvature = 0
    return at


cdef inline point margin_pursuit(double z, double level, double scale) noexcept nogil:
    # F(z) = s^2 rho((gamma - z) / s), level gamma, scale s > 0               margin pursuit
    cdef point at = catoni_rho((level - z) / scale)
    at.value *= scale * scale
    at.slope *= -scale
    return at


cdef inline point point_loss(int loss, double z, double a, double b) noexcept nogil:
    # a: width of the smoothed hinge, level of margin pursuit; b: scale of margin pursuit
    if loss == LOGISTIC:
        return logistic(z)
    if loss == CALIBRATED_HINGE:
        return calibrated_hinge(z)
    if loss == SQUARED:
        return squared(z)
    if loss == HINGE:
        return hinge(z)
    if loss == SMOOTHED_HINGE:
        return smoothed_hinge(z, a)
    if loss == SQUARED_HINGE:
        return squared_hinge(z)
    return margin_pursuit(z, a, b)


# ---------------------------------------------------------------- conjugates: what a dual variable a = -F'(z) is worth

cdef inline double dual_gain(int loss, double a) noexcept nogil:
    # -F*(-a) = min over z of F(z) + a z; concave, 0 at a = 0. Hinge: a; squared hinge: a - a^2 / 4; logistic: entropy
    if loss == SQUARED_HINGE:
        return a - a * a / 4
    if loss == LOGISTIC:
        return -(a * log(a) if a > 0 else 0) - ((1 - a) * log(1 - a) if a < 1 else 0)
    return a


cdef inline double dual_largest(int loss) noexcept nogil:
    # the dual variables of a loss lie between 0 and this
    return 1e300 if loss == SQUARED_HINGE else 1
