"""The epsilon-insensitive loss max(0, |u| - e) of a residual u, that of support vector regression.

A parameter e >= 0. Dual variables lie between -1 and 1. Its formulas stand in ``_two_kinks.h``.
"""

from libc.math cimport NAN

from cmargin._core.losses._point cimport loss_facts
from cmargin._core.losses._two_kinks cimport two_kinks


cdef inline two_kinks epsilon_insensitive(double e) noexcept nogil:
    cdef two_kinks of
    of.up, of.down, of.e = 1, 1, e
    return of


cdef inline loss_facts epsilon_insensitive_facts() noexcept nogil:
    return loss_facts("epsilon_insensitive", NAN, NAN, 1, 1, NAN, False, False, True, -1)
