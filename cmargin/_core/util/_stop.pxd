"""When a fit is done: what the user chose, the same for every driver that has a certificate."""

cdef struct stop_rule:
    double tol
    double max_passes
    double deadline              # on the clock of `seconds`
    double width_end             # leave once the smoothing is below: a subset


cdef inline int take_rule(stop_rule *rule, settings) except -1:
    # ``settings``: a `Settings`
    rule.tol, rule.max_passes, rule.width_end = settings.tol, settings.max_passes, settings.width_end
    rule.deadline = settings.deadline
    return 0


cdef inline bint is_done(const stop_rule *rule, double gap) noexcept nogil:
    # ``gap``: the relative duality gap; NaN, where there is no bound, is not done
    return gap <= rule.tol
