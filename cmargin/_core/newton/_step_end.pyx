"""The end of a step of full length: whether it is a place to stay, and where it is not, the line to search.

Value and slope along the line are exact there, from the evaluation; a better length is found on numbers kept per row.
"""

from libc.math cimport INFINITY, fabs

from cmargin._core.newton._line cimport ARMIJO, search_begin
from cmargin._core.newton._point cimport gap_between, penalty_of, penalty_of_path, slope_of_penalty
from cmargin._core.penalties._penalties cimport has_kinks, is_held, longest_within, penalty_slope
from cmargin._core.util._stop cimport is_done

cdef double FIRST_SLOPE_KEPT = 0.1       # `slope_kept` of the first step from w = 0 of a smooth loss, see `leaves_zero`
cdef line_rule WITH_BOUND = line_rule(slope_kept=0.5, longest=16, searched=1e-4, read_gain=0.2, vanishing=1e-16)
# a fit by the gradient's norm takes steps that its value no longer shows
cdef line_rule BY_GRADIENT = line_rule(slope_kept=0.9, longest=INFINITY, searched=1e-3, read_gain=0, vanishing=1e-17)
cdef double ROUNDING = 1e-14             # and the value may grow by so much of itself in one of them


cdef line_rule rule_of(const newton_state *at) noexcept nogil:
    return BY_GRADIENT if at.stop.by_gradient else WITH_BOUND


cdef double slope_at_end(const newton_state *at) noexcept nogil:
    cdef double last = at.point.sums[1] + penalty_slope(&at.penalty.step, at.point.w, at.point.d, 1, -1)
    cdef Py_ssize_t j
    for j in range(at.p):
        last += slope_of_penalty(at, j, at.point.scratch[j]) * at.point.d[j]
    return last


cdef bint descends(const newton_state *at) noexcept nogil:
    cdef double most = at.point.value + ARMIJO * at.point.slope
    if at.stop.by_gradient:
        most += ROUNDING * fabs(at.point.value)
    return at.point.sums[0] + penalty_of(at, at.point.scratch) <= most


cdef bint is_poor(const newton_state *at) noexcept nogil:
    cdef double kept = FIRST_SLOPE_KEPT if at.line.leaves_zero else rule_of(at).slope_kept
    if at.working_set.in_use:
        # There is no curvature in these steps, and slopes leap at the hinge.
        return not descends(at)
    return not descends(at) or not fabs(slope_at_end(at)) <= kept * -at.point.slope


cdef bint is_good_enough(const newton_state *at, double step) noexcept nogil:
    # beside the minimum, at ``step``: by convexity it is lower by the slope at the end times the way there at most
    return descends(at) and fabs(slope_at_end(at) * (step - 1)) <= rule_of(at).read_gain * -at.point.slope


cdef bint is_certified(newton_state *at) noexcept nogil:
    cdef double objective = at.point.sums[2] + penalty_of(at, at.point.scratch) - penalty_of_path(at)
    return is_done(&at.stop, gap_between(at, objective, at.bound.dual))


cdef void begin_line(newton_state *at) noexcept nogil:
    cdef line_rule rule = rule_of(at)
    cdef Py_ssize_t j
    cdef bint stops = False                      # where a component comes to a kink: that is the end
    at.line.slope = at.line.curvature = 0
    for j in range(at.p):
        stops = stops or (has_kinks(&at.penalty.step) and at.point.scratch[j] != at.point.w[j]
                          and is_held(&at.penalty.step, j, at.point.scratch[j]))
        at.line.slope += slope_of_penalty(at, j, at.point.w[j]) * at.point.d[j]
        at.line.curvature += at.penalty.step.l2_each[j] * at.point.d[j] * at.point.d[j]
    at.line.search.penalty, at.line.search.w, at.line.search.d = &at.penalty.step, at.point.w, at.point.d
    at.line.search.steps, at.line.search.index = at.l1_block.keys, at.l1_block.index
    at.line.search.s_max, at.line.search.tol = 1 if stops else rule.longest, rule.searched
    at.line.search.s_max = min(at.line.search.s_max, longest_within(&at.penalty.step, at.point.w, at.point.d))
    at.line.search.max_trials = 100
    search_begin(&at.line.search)
