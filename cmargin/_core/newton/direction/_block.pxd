"""The curvature block of a Newton step: its columns, and the direction by it."""

from cmargin._core.newton._state cimport newton_state
from cmargin._core.penalties._penalty cimport penalty_t


cdef Py_ssize_t block_work_size(Py_ssize_t order, const penalty_t *penalty) noexcept nogil       # doubles, in `work`

cdef Py_ssize_t WORKING_SET       # most columns that the block has beside those in use

# whether column j is in use, or its gradient near the l1 weight
cdef bint may_be_used(const newton_state *at, Py_ssize_t j) noexcept nogil

# at.active: the block's columns at the next evaluation
cdef void choose_columns(newton_state *at) noexcept nogil

# how well the model of a step with l1 is minimised: `MODEL_TOL`, or what a loss of continuous curvature asks for
cdef double model_tol(const newton_state *at) noexcept nogil

# whether the gradient of a column outside the block would take it from 0
cdef bint columns_wait(const newton_state *at) noexcept nogil

# at.d: the Newton direction, for l1 the minimum of the model with its l1 term; False: the block is not finite
cdef bint solve_block(newton_state *at) noexcept nogil
