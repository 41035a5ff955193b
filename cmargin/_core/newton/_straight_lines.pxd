"""When a few rows are to be given other dual variables, and looks at these rows beside all others.

The reasons are in ``solvers/newton/dual_repair.py``, which answers the question.
"""

from cmargin._core.newton._certificate cimport make_feasible
from cmargin._core.newton._newton cimport RUNNING, newton_state


cdef inline bint wants_repair(const newton_state *at, double smoothing_error, double width) noexcept nogil:
    # ``width``: of the step taken. The dual variables of rows that a repair leaves alone are smooth by it, which the
    # error of smoothing, at the next width, says
    cdef double most_open = 0.8              # of the tolerance: what smoothing may keep open where a repair is tried,
    cdef double for_repairs = 0.1            # and what part of all reads those before may have cost
    cdef double wider = width / at.rule.width
    return at.may_repair and at.status == RUNNING and at.predicted > 0 and at.step == 1 \
        and at.repairs <= for_repairs * at.passes \
        and smoothing_error * wider * wider <= most_open * at.tol * at.objective


cdef inline void told_with_others(newton_state *at, const double *vectors) noexcept nogil:
    # ``vectors`` (2, p): sums of s a y x over the positive and the negative rows looked at
    cdef double pos = at.sums[4] + at.of_others[0], neg = at.sums[5] + at.of_others[1]
    cdef Py_ssize_t i
    for i in range(2 * at.p):
        at.both[i] = vectors[i] + at.others[i]
    make_feasible(&at.told, at.both, at.p, pos, neg, pos, neg, at.free >= 0)
