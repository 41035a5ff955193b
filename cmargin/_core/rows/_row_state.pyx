"""What rows keep of one binary problem between two looks, for a checkpoint: to be written, and to be taken back."""

from cmargin._core.rows._row_pass cimport RowBlocks
from cmargin._core.small._shapes cimport must_fit


def kept_of_rows(RowBlocks blocks):
    """Their `row_state`, whose arrays the next look overwrites, but for what `gather_heavy` alone asks for."""
    return blocks.row_state | {"norms": None, "norm_weight": None}


def take_back_rows(RowBlocks blocks, dict kept):
    """What `kept_of_rows` had of the same problem on the same rows, all of which are at hand."""
    must_fit(kept["per_row"].shape == blocks.per_row.shape and blocks.rows.first == 0, "take_back_rows")
    blocks.per_row[...] = kept["per_row"]
    blocks.take(kept | {"duals": None if kept["duals"] is None else kept["duals"].copy()})
