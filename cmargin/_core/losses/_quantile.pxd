"""The quantile or pinball loss of a residual u, q u where u > 0 and (q - 1) u elsewhere: its mean is least at the
quantile q of the residuals.

A parameter 0 < q < 1. Dual variables lie between q - 1 and q. Its formulas stand in ``_two_kinks.h``.
"""

from libc.math cimport NAN

from cmargin._core.losses._point cimport loss_facts
from cmargin._core.losses._two_kinks cimport two_kinks


cdef inline two_kinks quantile(double q) noexcept nogil:
    cdef two_kinks of
    of.up, of.down, of.e = q, 1 - q, 0
    return of


cdef inline loss_facts quantile_facts(double q) noexcept nogil:
    return loss_facts("quantile", NAN, NAN, 1, q, NAN, False, False, True, q - 1)
