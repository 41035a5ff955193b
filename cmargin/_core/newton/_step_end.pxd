"""The end of a step of full length, `scratch` = w + d, after the evaluation there; reasons in ``_step_end.pyx``."""

from cmargin._core.newton._state cimport newton_state


cdef struct line_rule:           # what a step must reach
    double slope_kept            # a full step is kept if the slope at its end is at most this part of the first
    double longest               # a step is at most so many Newton steps long
    double searched              # part of the first slope that a search may leave
    double read_gain             # part of the first slope that a searched length has to win, or it is not read for
    double vanishing             # decrease over the value that no sum can show


cdef line_rule rule_of(const newton_state *at) noexcept nogil


# whether it is a poor place to stay: value and slope there are among the sums
cdef bint is_poor(const newton_state *at) noexcept nogil

# whether it is one to stay at all the same, where the minimum of the line is at ``step``
cdef bint is_good_enough(const newton_state *at, double step) noexcept nogil

# whether the evaluation there certifies it
cdef bint is_certified(newton_state *at) noexcept nogil

# the line to search for a better length; `line.s` is the first trial
cdef void begin_line(newton_state *at) noexcept nogil
