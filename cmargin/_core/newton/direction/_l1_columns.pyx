"""Directions for l1 by reading columns of sparse rows, in place of a factor of the columns in use (`_l1_model`).

The certificate rests on the slopes that the model promises for the end of the step: a column that violates its
condition by a part of the l1 weight costs the bound that part. Every step is judged by itself: one that wants more
reads than the block and its factors cost is the last by columns.
"""

from cmargin._core.newton._state cimport ASK_MODEL, FOUND, action_id, newton_state
from cmargin._core.newton.direction._block cimport WORKING_SET, may_be_used
from cmargin._core.newton.direction._pcg cimport give_hessp_up, without_hessp
from cmargin._core.newton.direction._system cimport all_finite
from cmargin._core.newton.direction._l1_model cimport step_model
from cmargin._core.penalties._elastic_net cimport l1_violation
from cmargin._core.penalties._penalties cimport is_sharp
from cmargin._core.penalties._penalty cimport penalty_t

ENOUGH = 0.25                # of the tolerance: what the last step may leave,
FORCING = 0.3                # and, of what the step began with, any other:
cdef double NEAR_END = 1e-3              # where that is less, the objective is at its rounding long before the bound
cdef double FAR = 1e100                  # an l1 weight so small is none
MOST = 1000                  # reads of a step


cdef action_id begin_columns(newton_state *at) noexcept nogil:
    cdef step_model *model = &at.l1_columns.model
    cdef const penalty_t *penalty = &at.penalty.step
    cdef double worst = 0
    cdef Py_ssize_t j, found = 0
    for j in range(at.p):
        if is_sharp(penalty, j):
            worst = max(worst, l1_violation(at.point.g[j], at.point.w[j], penalty.l1_each[j]) / penalty.l1_each[j])
        if j < at.problem.n_features and may_be_used(at, j):
            at.curvature.active[found] = j
            found += 1
    model.p, model.n, model.l1, model.free = at.p, at.problem.n, at.penalty.user.l1, penalty.free >= 0
    model.intercept = at.problem.n_features if at.p > at.problem.n_features else -1
    model.g, model.w, model.d = at.point.g, at.point.w, at.point.d
    model.l2_each, model.l1_each = penalty.l2_each, penalty.l1_each
    model.listed, model.n_listed, model.used = at.curvature.active, found, at.l1_block.index
    model.enough = ENOUGH * at.stop.tol
    if worst > NEAR_END:
        model.enough = max(model.enough, FORCING * min(worst, FAR))
    # who gives columns up does so for good: few columns on a path of l1 say nothing of the block at its end
    model.block_columns = WORKING_SET if penalty.l1 > at.penalty.user.l1 else min(found, WORKING_SET)
    model.flat = at.l1_columns.flat
    model.block_reads, model.most = at.pcg.products_limit, MOST
    return ASK_MODEL


cdef action_id columns_tell(newton_state *at) noexcept nogil:
    at.counts.passes += at.l1_columns.model.reads
    at.counts.of_columns += at.l1_columns.model.reads
    at.l1_columns.flat = at.l1_columns.model.flat
    if not all_finite(at.p, at.point.d) or (at.l1_columns.model.given_up and nothing_moved(at)):
        return without_hessp(at)
    if at.l1_columns.model.given_up:
        give_hessp_up(at)
    return FOUND


cdef bint nothing_moved(const newton_state *at) noexcept nogil:
    # no row has curvature, say
    cdef Py_ssize_t j
    for j in range(at.p):
        if at.point.d[j] != 0:
            return False
    return True
