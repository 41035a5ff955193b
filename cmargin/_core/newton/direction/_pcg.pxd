"""Directions by conjugate gradients, from products of the Hessian with vectors; see ``_pcg.pyx``."""

from cmargin._core.newton._state cimport action_id, newton_state


# of a sample: what curvature there will be at the first evaluation, what an evaluation is asked,
# and how many rows it then had
cdef void foresee_curvature(newton_state *at) noexcept nogil
cdef void ask_for_sample(newton_state *at) noexcept nogil
cdef void count_sample(newton_state *at) noexcept nogil

# A step by conjugate gradients, preconditioned by the curvature of a sample of the rows,
# or by nothing but the diagonal.
cdef action_id begin_preconditioned(newton_state *at) noexcept nogil
cdef action_id begin_hessp(newton_state *at) noexcept nogil
cdef action_id hessp_tell(newton_state *at, const double *product, double share) noexcept nogil

# The step that is found is the last of its kind; or there is none: from the next evaluation on, by a factor.
cdef void give_hessp_up(newton_state *at) noexcept nogil
cdef bint products_stall(const newton_state *at) noexcept nogil
cdef action_id without_hessp(newton_state *at) noexcept nogil
