"""How wide the hinge is smoothed at the next Newton step; reasons in ``_smoothing.pyx``."""


cdef struct next_width:
    double width
    double decay


cdef struct width_rule:
    double width                 # smoothing now
    double decay                 # by which a good step multiplies it
    double widest                # largest width
    double tol                   # gap wanted
    double last_gap              # of the evaluation before the last
    double now_gap               # of the last evaluation
    double stale_gap             # smallest gap so far; the next says for how many evaluations
    int stale_evaluations
    int times_back               # that it went up again since
    next_width next              # once the step has been taken


cdef double NARROWEST

cdef void begin_rule(width_rule *rule, double width, double widest, double decay, double tol) noexcept nogil

# after a step of that length; error: how much the smoothed objective is too large; objective, gap: the best known
cdef next_width width_after(const width_rule *rule, double step, double error, double objective,
                            double gap) noexcept nogil

# the gap of the evaluation just made: where it no longer falls the width goes up again; whether it did
cdef bint back_up(width_rule *rule, double gap) noexcept nogil
