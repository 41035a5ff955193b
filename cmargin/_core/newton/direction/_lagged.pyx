"""Directions by the Hessian of an earlier point, corrected by the steps since (``_bfgs.pyx``).

An evaluation with curvature takes about 1 + p/15 times one without, and Newton's step gains two digits or more
(doc/lab-notebook): curvature is kept as long as the gradient falls at a better rate for the work.
"""

from libc.math cimport log, sqrt
from libc.math cimport pow as power

from cmargin._core.linalg._blas cimport dot
from cmargin._core.newton._state cimport FAILED, FOUND, action_id, newton_state
from cmargin._core.newton.direction._bfgs cimport bfgs_add, bfgs_factor, bfgs_solve, bfgs_take

cdef double COLUMNS_PER_EVALUATION = 15  # columns whose curvature costs as much as an evaluation without any
cdef double NO_CURVATURE = 1e-6          # mean curvature of a row below which the gradient is a better direction
cdef double GAIN = log(100)              # fall of the log of the gradient's norm in a Newton step


cdef bint is_straight(const newton_state *at) noexcept nogil:
    # every row is on a straight end of the loss
    return not at.curvature.mean > NO_CURVATURE


cdef void steepest_descent(newton_state *at) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(at.p):
        at.point.d[j] = -at.point.g[j]


cdef void lagged_take(newton_state *at) noexcept nogil:
    bfgs_take(&at.lagged.kept, at.curvature.block, at.problem.n, at.penalty.step.l2_each)
    at.curvature.has_block = False               # it is the rows', and overwritten by the next


cdef action_id begin_lagged(newton_state *at) noexcept nogil:
    if not at.lagged.kept.ready:
        at.lagged.n_steps = 0
        if not bfgs_factor(&at.lagged.kept):
            at.ask.out_of_memory = at.lagged.kept.out_of_memory
            at.ask.not_finite = not at.ask.out_of_memory
            return FAILED
    bfgs_solve(&at.lagged.kept, at.point.g, -1, at.point.d, at.point.scratch)
    return FOUND


cdef bint keeps_curvature(const newton_state *at) noexcept nogil:
    return at.lagged.in_use and at.lagged.fall > 1 and log(at.lagged.fall) * (1 + at.p / COLUMNS_PER_EVALUATION) > GAIN


cdef void lagged_step_done(newton_state *at) noexcept nogil:
    cdef double *change = at.lagged.change       # until here the gradient before the step
    cdef double fall = sqrt(dot(at.p, change, change)) / max(sqrt(dot(at.p, at.point.g, at.point.g)), 1e-300)
    cdef Py_ssize_t j
    if not at.lagged.kept.ready:
        at.lagged.fall = fall
        return
    for j in range(at.p):
        change[j] = at.point.g[j] - change[j]
    bfgs_add(&at.lagged.kept, at.point.taken, change)
    at.ask.out_of_memory = at.lagged.kept.out_of_memory
    at.lagged.fall = power(fall * power(at.lagged.fall, at.lagged.n_steps), 1.0 / (at.lagged.n_steps + 1))
    at.lagged.n_steps += 1
