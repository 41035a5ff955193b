"""The end of a step of full length: whether it is a place to stay, and where it is not, the line to search.

Value and slope along the line are exact there, from the look; a better length is found on numbers kept per row.
"""

from libc.math cimport fabs

from cmargin._core.newton._bound cimport relative_gap
from cmargin._core.newton._line cimport ARMIJO, search_begin
from cmargin._core.newton._point cimport penalty_of, penalty_of_path, slope_of_penalty
from cmargin._core.penalties._penalties cimport has_kinks, penalty_slope
from cmargin._core.util._stop cimport is_done

cdef double SLOPE_KEPT = 0.5             # a full step is kept if the slope at its end is at most this part of the first
cdef double FIRST_SLOPE_KEPT = 0.1       # and the first step from w = 0 of a smooth loss, see `leaves_zero`
cdef double LONGEST = 16                 # a step is at most so many Newton steps long
cdef double SEARCHED = 1e-4              # part of the first slope that a search may leave
cdef double WORTH_A_READ = 0.2           # of the first slope: what a length that was searched for has to win


cdef double slope_at_end(const newton_state *at) noexcept nogil:
    cdef double last = at.point.sums[1] + penalty_slope(&at.penalty.step, at.point.w, at.point.d, 1, -1)
    cdef Py_ssize_t j
    for j in range(at.p):
        last += slope_of_penalty(at, j, at.point.scratch[j]) * at.point.d[j]
    return last


cdef bint descends(const newton_state *at) noexcept nogil:
    return at.point.sums[0] + penalty_of(at, at.point.scratch) <= at.point.value + ARMIJO * at.point.slope


cdef bint is_poor(const newton_state *at) noexcept nogil:
    cdef double kept = FIRST_SLOPE_KEPT if at.line.leaves_zero else SLOPE_KEPT
    if at.working_set.in_use:
        # There is no curvature in these steps, and slopes leap at the hinge.
        return not descends(at)
    return not descends(at) or not fabs(slope_at_end(at)) <= kept * -at.point.slope


cdef bint is_good_enough(const newton_state *at, double step) noexcept nogil:
    # beside the minimum, at ``step``: by convexity it is lower by the slope at the end times the way there at most
    return descends(at) and fabs(slope_at_end(at) * (step - 1)) <= WORTH_A_READ * -at.point.slope


cdef bint is_certified(newton_state *at) noexcept nogil:
    cdef double objective = at.point.sums[2] + penalty_of(at, at.point.scratch) - penalty_of_path(at)
    return is_done(&at.stop, relative_gap(objective, at.bound.dual))


cdef void begin_line(newton_state *at) noexcept nogil:
    cdef Py_ssize_t j
    cdef bint stops = False                      # where a component comes to 0: its kink is the end
    at.line.slope = at.line.curvature = 0
    for j in range(at.p):
        stops = stops or (at.point.scratch[j] == 0 and at.point.w[j] != 0 and has_kinks(&at.penalty.step))
        at.line.slope += slope_of_penalty(at, j, at.point.w[j]) * at.point.d[j]
        at.line.curvature += at.penalty.step.l2_each[j] * at.point.d[j] * at.point.d[j]
    at.line.search.penalty, at.line.search.w, at.line.search.d = &at.penalty.step, at.point.w, at.point.d
    at.line.search.steps, at.line.search.index = at.l1_block.keys, at.l1_block.index
    at.line.search.s_max, at.line.search.tol, at.line.search.max_trials = 1 if stops else LONGEST, SEARCHED, 100
    search_begin(&at.line.search)
