"""Directions by the Hessian of an earlier point; see ``_lagged.pyx``."""

from cmargin._core.newton._state cimport action_id, newton_state


# whether there is no curvature to speak of, nor any direction but that of the gradient; and that
cdef bint is_straight(const newton_state *at) noexcept nogil
cdef void steepest_descent(newton_state *at) noexcept nogil

# `FOUND`, or `FAILED`
cdef action_id begin_lagged(newton_state *at) noexcept nogil

# whether the end of the next step is better evaluated without curvature
cdef bint keeps_curvature(const newton_state *at) noexcept nogil

# an evaluation has summed a block: steps are by it from the next on
cdef void lagged_take(newton_state *at) noexcept nogil

# at the end of a step: how the gradient fell, and a pair to correct the Hessian by
cdef void lagged_step_done(newton_state *at) noexcept nogil
