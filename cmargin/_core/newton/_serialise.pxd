"""What a checkpoint holds of a driver between two steps, its vectors apart: the plain numbers of every component."""

from cmargin._core.newton._state cimport newton_state
from cmargin._core.util._serialise cimport numbers_between, span


cdef enum:
    N_SPANS = 16


cdef inline void newton_spans(newton_state *at, span *out) noexcept nogil:
    # out (N_SPANS,): a component up to its first pointer
    out[0] = numbers_between(&at.status, &at.status + 1)
    out[1] = numbers_between(&at.penalty, &at.penalty.step.l2_each)
    out[2] = numbers_between(&at.point, &at.point.w)
    out[3] = numbers_between(&at.smoothing, &at.smoothing + 1)
    out[4] = numbers_between(&at.bound, &at.bound.last)
    out[5] = numbers_between(&at.bound.last.total, &at.bound.last.total + 1)
    out[6] = numbers_between(&at.bound.best.total, &at.bound.best.total + 1)
    out[7] = numbers_between(&at.curvature, &at.curvature.block)
    out[8] = numbers_between(&at.cholesky, &at.cholesky + 1)
    out[9] = numbers_between(&at.pcg, &at.pcg.asked)
    out[10] = numbers_between(&at.sampled, &at.sampled.column_weight)
    out[11] = numbers_between(&at.l1_block, &at.l1_block.model)
    out[12] = numbers_between(&at.l1_columns, &at.l1_columns.model)
    out[13] = numbers_between(&at.working_set, &at.working_set + 1)
    out[14] = numbers_between(&at.counts, &at.counts + 1)
    out[15] = numbers_between(&at.lagged, &at.lagged.kept.matrix)
