"""Minimum of a convex function along a line with the kinks of a penalty inside.

Along w + s d an l1 penalty has kinks where a component vanishes. The index of the breakpoint on which the
minimum falls is returned, because w_j + s d_j need not evaluate to zero there (SmSVM, section 2.2). The slope only
grows along the line: it is bracketed, bisected over the breakpoints, and between two of them found by Newton's method.
"""

import numpy as np

from libc.math cimport fabs

from cmargin._core.penalties._penalties cimport is_grouped, penalty_bend, penalty_kinks, penalty_slope
from cmargin._core.penalties._penalty cimport kinks_of, penalty_t
from cmargin._core.util._shapes cimport must_fit
from cmargin._core.util._sorting cimport sort_with_index

ARMIJO = 1e-4
cdef int MAX_DOUBLINGS = 60


cdef inline double slope_of_kinks(const line_search *line, int side) noexcept nogil:
    return penalty_slope(line.penalty, line.w, line.d, line.s, side)


cdef void find_breakpoints(line_search *line, double s_max) noexcept nogil:
    cdef Py_ssize_t found = penalty_kinks(line.penalty, line.w, line.d, s_max, line.steps, line.index)
    sort_with_index(found, line.steps, line.index)
    line.a, line.b = 0, found


cdef void search_begin(line_search *line) noexcept nogil:
    line.s, line.hit, line.phase, line.trials, line.lo = 0, -1, AT_START, 0, 0


cdef bint end_at(line_search *line, double s) noexcept nogil:
    line.s = s
    return False


cdef bint next_inside(line_search *line) noexcept nogil:
    # the breakpoint in the middle of those left, or where none is left, a first trial between the last two
    if line.a < line.b:
        line.phase, line.s = BREAKPOINTS, line.steps[(line.a + line.b) // 2]
    else:
        line.phase, line.trials, line.s = NEWTON, 0, (line.lo + line.hi) / 2
        line.right = slope_of_kinks(line, 1)          # constant between two breakpoints, unless the penalty bends
    return True


cdef bint tell_bracket(line_search *line, double slope) noexcept nogil:
    if slope + slope_of_kinks(line, -1) >= 0:
        find_breakpoints(line, line.hi * (1 + 1e-15))
        return next_inside(line)
    if line.hi >= line.s_max:
        return end_at(line, line.s_max)
    line.lo, line.hi = line.hi, min(2 * line.hi, line.s_max)
    line.trials += 1
    if line.trials == MAX_DOUBLINGS:               # falls for ever: the caller sees no decrease below rounding
        return end_at(line, line.lo)
    line.s = line.hi
    return True


cdef bint tell_breakpoint(line_search *line, double slope) noexcept nogil:
    # the first breakpoint whose right slope is not negative is looked for
    cdef Py_ssize_t middle = (line.a + line.b) // 2
    if slope + slope_of_kinks(line, 1) < 0:
        line.lo = max(line.lo, line.s)
        line.a = middle + 1
        return next_inside(line)
    if slope + slope_of_kinks(line, -1) <= 0:
        line.hit = line.index[middle]
        return False
    line.hi = min(line.hi, line.s)
    line.b = middle
    return next_inside(line)


cdef inline bint is_beyond(const line_search *line, double slope, double curvature) noexcept nogil:
    # a slope that rises, however little, and hardly bends: the minimum is nearer to the start than to here. A class of
    # little weight is all that rises so far out
    return line.lo == 0 and slope > curvature * line.s


cdef bint tell_inside(line_search *line, double slope, double curvature) noexcept nogil:
    # Newton, bisection where it leaves the bracket
    cdef double step
    if is_grouped(line.penalty):
        slope += slope_of_kinks(line, 1)
        curvature += penalty_bend(line.penalty, line.w, line.d, line.s)
    else:
        slope += line.right
    line.trials += 1
    if (fabs(slope) <= line.tol * fabs(line.first) and not is_beyond(line, slope, curvature)) \
            or line.hi - line.lo <= 1e-14 * line.hi:
        return False
    if slope < 0:
        line.lo = line.s
    else:
        line.hi = line.s
    step = line.s - slope / curvature if curvature > 0 else line.lo - 1
    line.s = step if line.lo < step < line.hi else (line.lo + line.hi) / 2
    if line.lo == 0 and line.trials >= MAX_DOUBLINGS // 2:
        line.s = line.hi * line.tol                # no halves come back from there; what is then too far rises by less
    return line.trials < line.max_trials


cdef bint search_tell(line_search *line, double slope, double curvature) noexcept nogil:
    if line.phase == AT_START:
        line.first = slope + slope_of_kinks(line, 1)
        if not line.first < 0:
            return False
        line.phase, line.s = BRACKET, min(1.0, line.s_max)
        line.hi = line.s
        return True
    if line.phase == BRACKET:
        return tell_bracket(line, slope)
    if line.phase == BREAKPOINTS:
        return tell_breakpoint(line, slope)
    return tell_inside(line, slope, curvature)


def exact_step(phi, const double[::1] w, const double[::1] d, const double[::1] weight, double s_max,
               double tol=1e-8, int max_trials=100):
    """argmin over 0 <= s <= s_max, which may be infinite, of a smooth convex function plus sum weight_j |w_j + s d_j|.

    ``phi(s)``: (slope, curvature) of the smooth part. Ends when the slope is below ``tol`` times its value at 0.
    Returns s and the index of the component that vanishes there, or -1.
    """
    must_fit(w.shape[0] == d.shape[0] == weight.shape[0], "exact_step")
    cdef line_search line
    cdef Py_ssize_t n = w.shape[0]
    cdef penalty_t penalty = kinks_of(n, &weight[0] if n > 0 else NULL)
    cdef double[::1] steps = np.empty(n)
    cdef Py_ssize_t[::1] index = np.empty(n, np.intp)
    line.penalty, line.s_max, line.tol, line.max_trials = &penalty, s_max, tol, max_trials
    if n > 0:
        line.w, line.d, line.steps, line.index = &w[0], &d[0], &steps[0], &index[0]
    search_begin(&line)
    slope, curvature = phi(0.0)
    while search_tell(&line, slope, curvature):
        slope, curvature = phi(line.s)
    return line.s, line.hit
