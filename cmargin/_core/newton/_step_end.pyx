"""The end of a step of full length: whether it is a place to stay, and where it is not, the line to search.

Value and slope along the line are exact there, from the look; a better length is found on numbers kept per row.
"""

from libc.math cimport fabs

from cmargin._core.newton._bound cimport relative_gap
from cmargin._core.newton._penalty_path cimport penalty_of_path
from cmargin._core.newton._line cimport ARMIJO, l1_slope, search_begin
from cmargin._core.newton._driver cimport n_kinks, penalty_of, slope_of_penalty

cdef double SLOPE_KEPT = 0.5             # a full step is kept if the slope at its end is at most this part of the first
cdef double FIRST_SLOPE_KEPT = 0.1       # and the first step from w = 0 of a smooth loss, see `leaves_zero`
cdef double LONGEST = 16                 # a step is at most so many Newton steps long
cdef double SEARCHED = 1e-4              # part of the first slope that a search may leave
cdef double WORTH_A_READ = 0.2           # of the first slope: what a length that was searched for has to win


cdef double slope_at_end(const newton_state *at) noexcept nogil:
    cdef double last = at.sums[1] + l1_slope(n_kinks(at), at.w, at.d, at.l1_each, 1, -1)
    cdef Py_ssize_t j
    for j in range(at.p):
        last += slope_of_penalty(at, j, at.scratch[j]) * at.d[j]
    return last


cdef bint descends(const newton_state *at) noexcept nogil:
    return at.sums[0] + penalty_of(at, at.scratch) <= at.value + ARMIJO * at.first


cdef bint is_poor(const newton_state *at) noexcept nogil:
    cdef double kept = FIRST_SLOPE_KEPT if at.leaves else SLOPE_KEPT
    if at.near:                                  # there is no curvature in these steps, and slopes leap at the hinge
        return not descends(at)
    return not descends(at) or not fabs(slope_at_end(at)) <= kept * -at.first


cdef bint is_good_enough(const newton_state *at, double step) noexcept nogil:
    # beside the minimum, at ``step``: by convexity it is lower by the slope at the end times the way there at most
    return descends(at) and fabs(slope_at_end(at) * (step - 1)) <= WORTH_A_READ * -at.first


cdef bint is_certified(newton_state *at) noexcept nogil:
    return relative_gap(at.sums[2] + penalty_of(at, at.scratch) - penalty_of_path(at), at.dual) <= at.tol


cdef void begin_line(newton_state *at) noexcept nogil:
    cdef Py_ssize_t j
    cdef bint stops = False                      # where a component comes to 0: its kink is the end
    at.line_slope = at.line_curvature = 0
    for j in range(at.p):
        stops = stops or (at.scratch[j] == 0 and at.w[j] != 0 and at.l1 > 0)
        at.line_slope += slope_of_penalty(at, j, at.w[j]) * at.d[j]
        at.line_curvature += at.l2_each[j] * at.d[j] * at.d[j]
    at.line.n, at.line.w, at.line.d, at.line.weight = n_kinks(at), at.w, at.d, at.l1_each
    at.line.steps, at.line.index = at.keys, at.index
    at.line.s_max, at.line.tol, at.line.max_trials = 1 if stops else LONGEST, SEARCHED, 100
    search_begin(&at.line)
