"""Directions for l1 and l2 where more columns are in use than there are rows: in the unknowns of the rows.

With l1 alone hardly more columns are in use than there are rows, and the block of them is small. With l2 beside it
thousands may be: their block costs n m^2 and its factors m^3, where the same model has n unknowns (`_l1_row_model`). A
model that is not minimised so, as where l2 is next to nothing, is the last: from there on steps have a block.
"""

from cmargin._core.newton._point cimport reads_for_products
from cmargin._core.newton._state cimport (
    ASK_EVALUATE, ASK_ROW_MODEL, FOUND, GIVE_UP, MAX_PASSES, action_id, newton_state,
)
from cmargin._core.newton.direction._block cimport choose_columns, model_tol
from cmargin._core.newton.direction._l1_row_model cimport row_model
from cmargin._core.newton.direction._system cimport MODEL_ROUNDS, all_finite
from cmargin._core.penalties._penalties cimport is_held, place_after


cdef bint is_next_in_rows(const newton_state *at) noexcept nogil:
    cdef Py_ssize_t j, used = 0
    if not at.l1_block.rows_serve:
        return False
    for j in range(at.p):
        used += not is_held(&at.penalty.step, j, place_after(&at.penalty.step, j, at.point.w[j], at.point.d[j]))
    return used > at.problem.n_rows


cdef void choose_unknowns(newton_state *at) noexcept nogil:
    at.l1_block.in_rows = is_next_in_rows(at)
    choose_columns(at)


cdef action_id begin_rows(newton_state *at) noexcept nogil:
    cdef row_model *model = &at.l1_block.model
    model.n, model.free = at.problem.n, at.penalty.step.free >= 0
    model.l2, model.l1, model.penalty = at.penalty.step.l2, at.penalty.step.l1, &at.penalty.step
    model.g, model.w, model.d = at.point.g, at.point.w, at.point.d
    model.tol, model.most, model.allowed = model_tol(at), MODEL_ROUNDS, reads_for_products(at)
    if model.allowed < model.free:               # an intercept takes a read to begin with
        at.status = MAX_PASSES
        return GIVE_UP
    return ASK_ROW_MODEL


cdef action_id rows_tell(newton_state *at) noexcept nogil:
    at.counts.passes += at.l1_block.model.reads
    if (not at.l1_block.model.given_up or at.l1_block.model.spent) and all_finite(at.p, at.point.d):
        return FOUND                             # where reads are spent, as far as it is: one is left to evaluate it
    at.l1_block.rows_serve = at.l1_block.in_rows = False
    return ASK_EVALUATE
