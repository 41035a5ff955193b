"""The path of penalties on which a smooth loss goes on where Newton steps become short; reasons in ``_l2_path.pyx``."""

from cmargin._core.newton._newton cimport newton_state


# what the l2 penalty at w is more than the user's
cdef double penalty_of_path(const newton_state *at) noexcept nogil

# after a step: begin the path, or go on along it; False: the next step is for the same objective as this one
cdef bint follow_path(newton_state *at) noexcept nogil

# the user's l2 once more
cdef void leave_path(newton_state *at) noexcept nogil
