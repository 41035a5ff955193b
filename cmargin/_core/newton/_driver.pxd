"""Newton's method on a smoothed loss as a machine that asks for sums over the rows and receives them.

A driver as ``_asking.pxd`` has it, which `newton_begin` starts. MEASURE is asked once, after the first evaluation;
after it, and after a PAUSE, `go_on`.
"""

from cmargin._core.newton._state cimport newton_state, phase_id, status_id
from cmargin._core.rows._evaluate cimport move_kind


# ---- for whoever asks
cdef void newton_answers_to(newton_state *at) noexcept nogil        # the functions that receive results
cdef void newton_begin(newton_state *at) noexcept nogil
cdef void newton_settle(newton_state *at) noexcept nogil
cdef void newton_leave(newton_state *at, status_id status) noexcept nogil
cdef void go_on(newton_state *at) noexcept nogil

# ---- for another driver of the same state, `_published`
cdef void settled(newton_state *at) noexcept nogil
cdef void ask_evaluation(newton_state *at, phase_id phase, move_kind move, const double *direction, double step,
                         double width, bint with_hessian) noexcept nogil
