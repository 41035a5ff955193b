"""What rows keep of one binary problem between two looks, for a checkpoint: to be written, and to be taken back."""

import numpy as np

from cmargin._core.rows._row_pass cimport RowBlocks
from cmargin._core.small._shapes cimport must_fit


def kept_of_rows(RowBlocks blocks):
    """A dictionary; its arrays are those that the next look overwrites."""
    cdef double[:, ::1] duals = blocks.duals
    cdef bint second = duals is not None and blocks.rows.job.dual_next != &duals[0, 0] + blocks.rows.first
    return {
        "per_row": blocks.per_row, "duals": blocks.duals, "second": second,        # duals of the last look
        "exact": None if blocks.keep[3] is None else np.asarray(blocks.keep[3]),
        "pending": blocks.rows.job.pending, "primal": blocks.rows.job.at.primal,
        "begun": blocks.rows.begun, "fresh": blocks.rows.fresh, "forgets": blocks.rows.forgets,
        "loss": blocks.rows.job.loss, "level": blocks.rows.job.level, "scale": blocks.rows.job.scale,
    }


def take_back_rows(RowBlocks blocks, dict kept):
    """What `kept_of_rows` had of the same problem on the same rows, all of which are at hand."""
    cdef double[:, ::1] duals
    cdef Py_ssize_t after = 1 if kept["second"] else 0
    must_fit(kept["per_row"].shape == blocks.per_row.shape and blocks.rows.first == 0, "take_back_rows")
    blocks.per_row[...] = kept["per_row"]
    blocks.rows.job.loss = kept["loss"]
    blocks.rows.job.level, blocks.rows.job.scale = kept["level"], kept["scale"]
    if kept["duals"] is not None and blocks.n_rows > 0:
        blocks.make_room(0)
        blocks.duals[...] = kept["duals"]
        duals = blocks.duals
        blocks.rows.job.dual_next = &duals[after, 0]
        blocks.rows.job.dual = &duals[1 - after, 0]
    blocks.set_exact(kept["exact"])
    blocks.rows.job.pending, blocks.rows.job.at.primal = kept["pending"], kept["primal"]
    blocks.rows.begun, blocks.rows.fresh, blocks.rows.forgets = kept["begun"], kept["fresh"], kept["forgets"]
