"""Directions for l1 from the model of a step, minimised by rows that have columns."""

from cmargin._core.newton._state cimport action_id, newton_state

# how well a step's model is minimised, and for how many reads at most
cdef double ENOUGH, FORCING, MOST


# The model of the step, which is to be minimised; and what its minimum says.
cdef action_id begin_columns(newton_state *at) noexcept nogil
cdef action_id columns_tell(newton_state *at) noexcept nogil
