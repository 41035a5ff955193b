"""The squared loss, F(z) = (1 - z)^2 / 4: SLND section 5.3."""

from libc.math cimport NAN

from cmargin._core.losses._point cimport loss_facts, point


cdef inline point squared(double z) noexcept nogil:
    cdef point at
    at.value = (1 - z) * (1 - z) / 4
    at.slope = (z - 1) / 2
    at.curvature = 0.5
    return at


cdef inline loss_facts squared_facts() noexcept nogil:
    return loss_facts("squared", 0.25, 0.5, NAN, 0, NAN, True, True, False, 0)
