"""The minimum of a quadratic in one unknown with an l1 term."""


cdef inline double l1_minimum_of_one(double curvature, double x, double slope, double l1) noexcept nogil:
    # argmin over t of slope (t - x) + curvature (t - x)^2 / 2 + l1 |t|; curvature > 0
    cdef double pull = curvature * x - slope
    if pull > l1:
        return (pull - l1) / curvature
    if pull < -l1:
        return (pull + l1) / curvature
    return 0
