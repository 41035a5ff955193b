"""Steps to the optimum of the rows near the hinge beside linearised others: when, and what follows them.

The reasons are in ``solvers/newton/working_set.py``, which answers the request; the driver makes it.
"""

from cmargin._core.newton._point cimport gap_of, objective_size
from cmargin._core.newton._state cimport RUNNING, newton_state


cdef inline bint wants_working_set(const newton_state *at, double smoothing_error) noexcept nogil:
    # not before Newton steps, or a subset, have led near the optimum
    cdef double close = 0.01                 # of the objective: what smoothing may cost there
    return at.working_set.allowed and at.status == RUNNING and at.point.predicted > 0 and at.point.step == 1 \
        and at.curvature.has_block \
        and at.curvature.n_active < 0 and smoothing_error <= close * objective_size(at)


cdef inline bint is_too_short(const newton_state *at) noexcept nogil:
    # a step to the small problem's optimum is searched to a length that gains too little for another read
    cdef double least = 0.05
    return at.working_set.in_use and at.point.step < least


cdef inline double width_after_working_set(const newton_state *at) noexcept nogil:
    # ``after`` times what is left of the objective
    cdef double after = 30
    cdef double left = min(gap_of(at) * objective_size(at), at.working_set.open_then)
    return min(at.working_set.width_then, max(at.smoothing.width, after * left))
