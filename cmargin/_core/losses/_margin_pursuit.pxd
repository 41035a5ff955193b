"""The loss of margin pursuit, F(z) = s^2 rho((gamma - z) / s), level gamma, scale s > 0."""

from libc.math cimport NAN, fabs

from cmargin._core.losses._point cimport loss_facts, point


cdef inline point catoni_rho(double u) noexcept nogil:
    # rho(u) = u^2/2 - u^4/24 for |u| <= sqrt 2, else 2 sqrt(2)/3 |u| - 1/2; slope psi(u)   margin pursuit eq. (3), (4)
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
    cdef point at = catoni_rho((level - z) / scale)
    at.value *= scale * scale
    at.slope *= -scale
    return at


cdef inline loss_facts margin_pursuit_facts() noexcept nogil:
    return loss_facts("margin_pursuit", NAN, NAN, NAN, 0, NAN, False, True, False, 0)
