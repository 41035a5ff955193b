"""Directions for l1 in the unknowns of the rows; see ``_l1_rows.pyx``."""

from cmargin._core.newton._state cimport action_id, newton_state


# Whether the step after the one that is found has the rows' unknowns, and the columns of a block else.
cdef void choose_unknowns(newton_state *at) noexcept nogil

# A step by them, and what follows once its model is minimised.
cdef action_id begin_rows(newton_state *at) noexcept nogil
cdef action_id rows_tell(newton_state *at) noexcept nogil
