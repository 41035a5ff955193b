"""What rows keep of one binary problem between two evaluations: to be stored, or sent, and taken back."""

import numpy as np

from cmargin._core.rows._row_pass cimport RowBlocks
from cmargin._core.rows._row_blocks cimport pass_job
from cmargin._core.util._shapes cimport must_fit


def kept_of_rows(RowBlocks blocks, bint measures=True):
    """A dictionary of arrays, those that the next evaluation overwrites, and numbers; the active columns are not in it.

    ``measures``: with what `measure_rows` asked for, unless `mean_measure` has let it go.
    """
    cdef pass_job *job = &blocks.rows.job
    cdef double[:, ::1] duals = blocks.duals
    return {"per_row": blocks.per_row, "duals": blocks.duals,
            "norms": blocks.norms_ if measures else None,
            "norm_weight": np.asarray(blocks.keep[3]) if measures and job.norms != NULL else None,
            "turned": duals is not None and blocks.n_rows > 0 and job.dual != &duals[0, 0],
            "at": (job.loss.id, job.loss.a, job.loss.b, job.pending, job.at.step, job.at.line_width, job.at.primal,
                   blocks.rows.begun, blocks.rows.fresh, blocks.rows.forgets)}


def take_back_rows(RowBlocks blocks, dict kept, bint copy=True):
    """Let a new pass go on where another over the same rows, all of which are at hand, was `kept_of_rows`.

    Without ``copy`` it goes on with the very arrays.
    """
    cdef pass_job *job = &blocks.rows.job
    cdef double[:, ::1] per_row, duals
    cdef Py_ssize_t turned = kept["turned"]
    must_fit(kept["per_row"].shape == blocks.per_row.shape and blocks.rows.first == 0
             and (kept["duals"] is None or kept["duals"].shape == blocks.per_row.shape), "take_back_rows")
    if not copy:
        blocks.per_row, blocks.duals = kept["per_row"], kept["duals"]
    else:
        blocks.per_row[...] = kept["per_row"]
        blocks.duals = None if kept["duals"] is None else kept["duals"].copy()
    if blocks.n_rows > 0:
        per_row, duals = blocks.per_row, blocks.duals
        job.slack, job.change = &per_row[0, 0], &per_row[1, 0]
        if duals is not None:
            job.dual, job.dual_next = &duals[turned, 0], &duals[1 - turned, 0]
    (job.loss.id, job.loss.a, job.loss.b, job.pending, job.at.step, job.at.line_width, job.at.primal,
     blocks.rows.begun, blocks.rows.fresh, blocks.rows.forgets) = kept["at"]
    if kept["norm_weight"] is not None:
        blocks.measure_rows(kept["norm_weight"])
    elif kept["norms"] is not None:
        blocks.norms_ = kept["norms"]
