"""Rows beside the problem's own that are linearised: their dual variables stay, and add a linear term to the penalty.

The reasons are in ``solvers/newton/working_set.py``: the problem is then a small one beside all other rows.
"""

from cmargin._core.newton._bound cimport make_feasible
from cmargin._core.newton._state cimport newton_state


cdef inline bint says_nothing(const newton_state *at) noexcept nogil:
    # the objective has fallen below what bounds that of all rows: this minimum would bound nothing
    return at.bound.objective < at.linearised.known


cdef inline bint says_enough(const newton_state *at) noexcept nogil:
    return at.bound.best_dual >= at.linearised.wanted


cdef inline void feasible_with_others(newton_state *at, const double *vectors) noexcept nogil:
    # ``vectors`` (2, p): sums of s a y x over the problem's own positive and negative rows
    cdef double pos = at.point.sums[4] + at.linearised.constant[0], neg = at.point.sums[5] + at.linearised.constant[1]
    cdef Py_ssize_t i
    for i in range(2 * at.p):
        at.linearised.sums_of_all[i] = vectors[i] + at.linearised.sums[i]
    make_feasible(&at.bound.last, at.linearised.sums_of_all, at.p, pos, neg, pos, neg, at.penalty.user.free >= 0)
