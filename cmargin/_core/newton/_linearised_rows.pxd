"""Rows near the hinge beside straight lines for all others: when they are worth a step, and what a look at them tells.

The reasons are in ``solvers/newton/working_set.py``, which answers the question.
"""

from cmargin._core.newton._bound cimport make_feasible
from cmargin._core.newton._driver cimport RUNNING, newton_state

cdef double LEAST_NEAR                   # shortest length of such a step that is worth a read of its own

cdef void step_proposed(newton_state *at) noexcept nogil       # its end is asked for; it is in `d`
cdef void told_near(newton_state *at) noexcept nogil           # and was looked at
cdef void leave_near(newton_state *at) noexcept nogil          # from the best point on, steps of all rows


cdef inline bint wants_near(const newton_state *at, double smoothing_error) noexcept nogil:
    # where no subset has led near the optimum, Newton steps do first
    cdef double close = 0.01                 # of the objective: what smoothing may cost there
    return at.may_near and at.status == RUNNING and at.predicted > 0 and at.step == 1 and at.has_block \
        and at.n_active < 0 and smoothing_error <= close * at.objective


cdef inline bint says_nothing(const newton_state *at) noexcept nogil:
    # so far below what is known of all rows, whose minimum is hardly there
    cdef double lowest = 0.9
    return at.objective < lowest * at.known


cdef inline bint says_enough(const newton_state *at) noexcept nogil:
    # a minimum that is far below what is known is one to doubt: many rows cross there, and half of the way tells which
    cdef double doubted = 0.05, half = 0.5, won = at.known - at.objective
    return at.best_dual >= at.wanted or (
        won > doubted * at.known and at.objective - at.best_dual <= half * won and not says_nothing(at))


cdef inline void told_with_others(newton_state *at, const double *vectors) noexcept nogil:
    # ``vectors`` (2, p): sums of s a y x over the positive and the negative rows looked at
    cdef double pos = at.sums[4] + at.of_others[0], neg = at.sums[5] + at.of_others[1]
    cdef Py_ssize_t i
    for i in range(2 * at.p):
        at.both[i] = vectors[i] + at.others[i]
    make_feasible(&at.told, at.both, at.p, pos, neg, pos, neg, at.free >= 0)
