"""What a Newton driver asks of all shards, and what their rows add up to, as numbers: the one place that packs them.

A question is a kind and a dictionary, as `Driver.ask` gives it. Ranks are sent it as a buffer of one size for all
questions; what a shard answers is an array of sums, and the sum of all shards' arrays answers the driver.

    request   8 numbers, a vector of n_features + 1, a mask of as many bits for the columns of the curvature block
    sums      of an evaluation 16, 3 n_columns and the upper triangle of the block; 3 along the line; n_columns + 1 of a
              product or an objective
"""

import numpy as np

from cmargin.data.moves import evaluate_as_asked
from cmargin.data.source import SINGLE_BLOCK

KINDS = "end", "call", "average", "total", "evaluate", "line", "hessp", "objective"
OF_AN_EVALUATION = "move", "primal", "active", "step", "line_width", "width", "curvature_floor", "with_hessian"
NUMBERS = "step", "line_width", "width", "curvature_floor"                # of a question, after kind, key and flags
PRIMAL, SQUARES, VECTOR, ACTIVE = (1 << bit for bit in range(4))
MOVE, BLOCK = 1 << 4, 1 << 6   # what flags hold of ``move`` and of ``with_hessian``, so many times
N_SUMS = 16                    # of an evaluation, before its gradients


class Request:
    """A question as a buffer; `write` is done by rank 0, `read` by all ranks."""

    def __init__(self, n_features):
        self.n_columns = n_features + 1
        n_bytes = 8 * (4 + len(NUMBERS) + self.n_columns)
        self.buffer = np.zeros(n_bytes + -(-self.n_columns // 8), np.uint8)
        self.numbers = self.buffer[:8 * (4 + len(NUMBERS))].view(float)
        self.vector = self.buffer[8 * (4 + len(NUMBERS)):n_bytes].view(float)
        self.mask = self.buffer[n_bytes:]

    @property
    def kind(self):
        return KINDS[int(self.numbers[0])]

    def write(self, kind, key=-1, gone=-1, asked=None):
        """``gone``: key of a pass that nobody asks for any more, or -1."""
        asked = {} if asked is None else asked
        vector, active = asked.get("direction", asked.get("x")), asked.get("active")
        flags = MOVE * asked.get("move", 0) | PRIMAL * bool(asked.get("primal"))
        flags |= SQUARES * bool(asked.get("squares")) | BLOCK * int(asked.get("with_hessian", 0))
        if vector is not None:
            self.vector[:len(vector)], flags = vector, flags | VECTOR
        if active is not None:
            used = np.zeros(self.n_columns, bool)
            used[active] = True
            self.mask[:], flags = np.packbits(used), flags | ACTIVE
        self.numbers[:] = KINDS.index(kind), key, gone, flags, *(asked.get(name, 0.0) for name in NUMBERS)

    def read(self):
        """Kind, key, key of a pass that is gone, and what is asked."""
        key, gone, flags = (int(number) for number in self.numbers[1:4])
        vector = self.vector.copy() if flags & VECTOR else None
        active = np.flatnonzero(np.unpackbits(self.mask, count=self.n_columns)) if flags & ACTIVE else None
        asked = {"direction": vector, "x": vector, "active": active, "move": flags % BLOCK // MOVE,
                 "primal": bool(flags & PRIMAL), "squares": bool(flags & SQUARES), "with_hessian": flags // BLOCK,
                 **dict(zip(NUMBERS, self.numbers[4:].tolist(), strict=True))}
        return self.kind, key, gone, asked


def n_sums(kind, asked, n_columns):
    """Length of the sums of a pass over so many columns."""
    if kind == "evaluate":
        order = n_columns if asked["active"] is None else len(asked["active"])
        has_block = asked["with_hessian"] in (True, SINGLE_BLOCK)
        return N_SUMS + 3 * n_columns + (order * (order + 1) // 2 if has_block else 0)
    return 3 if kind == "line" else n_columns + 1


def add_up(kind, asked, rows, out):
    """Write the sums of a shard's `RowPass` to ``out``."""
    p = rows.n_columns
    if kind == "evaluate":
        sums, gradient, block = evaluate_as_asked(rows, direction=_first(asked["direction"], p),
                                                  **{name: asked[name] for name in OF_AN_EVALUATION})
        out[:N_SUMS], out[N_SUMS:N_SUMS + 3 * p] = sums, gradient.reshape(-1)
        if block is not None:
            for row, part in _triangle(block, out[N_SUMS + 3 * p:]):
                part[:] = row
    elif kind == "line":
        out[:] = rows.line(asked["step"], asked["width"])
    elif kind == "hessp":
        out[:-1], share = rows.hessp(_first(asked["x"], p), asked["width"], asked["curvature_floor"])
        out[-1] = share * rows.n_rows
    else:
        out[-1], squares = rows.objective(_first(asked["x"], p), asked["squares"])
        out[:-1] = 0.0 if squares is None else squares


def answer_of(kind, asked, total, rows):
    """What the ``total`` of all shards' sums answers, for a `ShardedPass`, which has ``block``, its last one."""
    if kind == "evaluate":
        at = N_SUMS + 3 * rows.n_columns
        if len(total) == at:
            return total[:N_SUMS], total[N_SUMS:].reshape(3, -1), None
        order = rows.n_columns if asked["active"] is None else len(asked["active"])
        if rows.block is None or len(rows.block) != order:
            rows.block = np.zeros((order, order))
        for row, part in _triangle(rows.block, total[at:]):
            row[:] = part
        return total[:N_SUMS], total[N_SUMS:at].reshape(3, -1), rows.block
    if kind == "line":
        return tuple(total)
    if kind == "hessp":
        return total[:-1], total[-1] / max(1, rows.n_rows)
    return total[-1], total[:-1] if asked["squares"] else None


def _first(vector, n):
    return None if vector is None else vector[:n]


def _triangle(block, packed):
    """Pairs of what stands in the upper triangle of a block, row by row, and where that is packed."""
    at = 0
    for i, row in enumerate(block):
        yield row[i:], packed[at:at + len(row) - i]
        at += len(row) - i
