"""The smoothing width of SmSVM: as fast to zero as the Newton steps can follow, and no further than the gap asks.

After full steps, which follow the path of its minima, the width falls faster and faster. After shorter ones, where the
model was not true that far, it stays or falls little, and after very short ones it goes up. Longer ones count as short,
unless the gap has ceased to fall, as the width then keeps it open. Where smoothing costs little beside the gap the
width does not keep it open: it waits, and goes up if that lasts (doc/lab-notebook).
"""

from libc.math cimport INFINITY, fabs, sqrt

NARROWEST = 1e-10
cdef double FULL = 0.7                   # a Newton step is full from this length on, up to 1 / FULL
cdef double SHORT = 0.5
cdef double VERY_SHORT = 0.25
cdef double QUICKEST = 0.25              # decay of the width after full steps, at least
cdef double ANEW = 0.6                   # decay once the width went up again
cdef double ENOUGH = 0.5                 # smoothing error, in tolerances, that is small enough: the width stays there
cdef int HELD = 3                        # evaluations without a smaller gap after which any gap may hold the width
cdef double AHEAD = 0.3                  # smoothing error over the open gap below which the width waits for the gap
cdef double FALLING = 0.8                # part of the smallest gap so far that a gap must reach to count as smaller
cdef int PATIENCE = 8                    # evaluations without a smaller gap before the width goes up again
cdef double NEAR = 0.5                   # gap below which the width may wait at once
cdef int MOST_BACK = 50                  # times that a gap that does not fall sends the width up; then it runs to zero


cdef void begin_rule(width_rule *rule, double width, double widest, double decay, double tol) noexcept nogil:
    rule.width, rule.widest, rule.decay, rule.tol = width, widest, decay, tol
    rule.last_gap = rule.now_gap = 1
    rule.stale_gap, rule.stale_evaluations, rule.times_back = INFINITY, 0, 0


cdef bint is_ahead(const width_rule *rule, double error, double objective, double gap) noexcept nogil:
    # the width is not what keeps the gap open: shrinking it would only make the steps harder. First gaps are wide as
    # the bound is poor, and most fall by themselves
    return 0.5 * rule.last_gap < gap and (gap < NEAR or rule.stale_evaluations >= HELD) \
        and error < AHEAD * gap * objective and rule.times_back < MOST_BACK


cdef next_width width_after(const width_rule *rule, double step, double error, double objective,
                            double gap) noexcept nogil:
    cdef next_width to
    cdef double need, by
    to.width, to.decay = rule.width, rule.decay
    if FULL <= step and (step <= 1 / FULL or rule.stale_evaluations > 0):
        if is_ahead(rule, error, objective, gap):
            return to
        to.decay = by = max(0.8 * rule.decay, QUICKEST)
        if error > 0:                    # no further than the tolerance needs: the error falls with the width's square
            need = ENOUGH * rule.tol * fabs(objective) if rule.stale_evaluations < HELD else 0
            by = max(by, min(1.0, sqrt(need / error)))
        to.width = max(rule.width * by, NARROWEST)
    elif step < VERY_SHORT:
        to.width, to.decay = min(2 * rule.width, rule.widest), ANEW
    else:
        to.decay = sqrt(rule.decay)
        if step > SHORT:
            to.width = max(rule.width * to.decay, NARROWEST)
    return to


cdef bint back_up(width_rule *rule, double gap) noexcept nogil:
    cdef double before = rule.width
    rule.last_gap, rule.now_gap = rule.now_gap, gap
    if not gap > FALLING * rule.stale_gap:
        rule.stale_gap, rule.stale_evaluations = gap, 0
        return False
    rule.stale_evaluations += 1
    if rule.stale_evaluations < PATIENCE or rule.times_back == MOST_BACK:
        return False
    rule.width, rule.decay = min(2 * before, rule.widest), ANEW
    rule.stale_gap, rule.stale_evaluations, rule.times_back = gap, 0, rule.times_back + 1
    return rule.width > before


def widths(steps, errors, gaps, double width=1.0, double decay=0.5, double tol=1e-4):
    """The widths that steps of these lengths lead to, with smoothing errors and the evaluations' gaps; for tests."""
    cdef width_rule rule
    cdef next_width to
    begin_rule(&rule, width, 1.0, decay, tol)
    found = []
    for step, error, gap in zip(steps, errors, gaps, strict=True):
        to = width_after(&rule, step, error, 1.0, gap)
        rule.width, rule.decay = to.width, to.decay
        back_up(&rule, gap)
        found.append(rule.width)
    return found
