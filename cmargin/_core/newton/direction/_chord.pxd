"""Newton steps of a smooth loss by a factor that is kept; reasons in ``_chord.pyx``."""

from cmargin._core.newton._state cimport newton_state


# the Newton direction by the factor of an earlier evaluation
cdef void chord_direction(newton_state *at) noexcept nogil

# whether the evaluation after the step found may go without curvature
cdef bint may_be_the_last(const newton_state *at) noexcept nogil

# whether the step found leaves w = 0 and is likely to be too short: its length is then found without curvature
cdef bint leaves_zero(const newton_state *at) noexcept nogil

# whether a subset's curvature, at its end, is to serve the first step on all rows
cdef bint serves_all_rows(const newton_state *at) noexcept nogil
