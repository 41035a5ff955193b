"""The paths of penalties that lead to the user's, for a smooth loss; reasons in ``_penalty_path.pyx``."""

from cmargin._core.newton._state cimport newton_state


# at w = 0, its slopes known: the first l1 of the path, where there is one
cdef void begin_l1_path(newton_state *at) noexcept nogil

# after a step: begin the path of l2, or go on along either; False: the next step is for the same objective as this one
cdef bint follow_path(newton_state *at) noexcept nogil

# the user's penalty once more
cdef void leave_path(newton_state *at) noexcept nogil
