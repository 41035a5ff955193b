"""When a fit is done: what the user chose, the same for every driver."""

cdef struct stop_rule:
    double tol
    double max_passes            # reads of the data; by the gradient, steps
    double deadline              # on the clock of `seconds`
    double width_end             # leave once the smoothing is below: a subset
    bint by_gradient             # no certificate: ``tol`` is of the gradient's norm, relative to that at w = 0


cdef inline int take_rule(stop_rule *rule, settings) except -1:
    # ``settings``: a `Settings`
    rule.tol, rule.max_passes, rule.width_end = settings.tol, settings.max_passes, settings.width_end
    rule.deadline, rule.by_gradient = settings.deadline, False
    return 0


cdef inline bint is_done(const stop_rule *rule, double gap) noexcept nogil:
    # ``gap``: the relative duality gap, or the relative norm; NaN, where there is no bound, is not done
    return gap <= rule.tol
