"""Rows in memory: the data source of `RowPass` over a dense array or a CSR matrix, read where it lies."""

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cmargin._core.losses._losses import gains
from cmargin._core.rows._row_pass import ROUNDING, RowBlocks
from cmargin._core.rows._row_sample import chosen, sides_of
from cmargin._core.rows._row_state import kept_of_rows, take_back_rows
from cmargin._runtime.aligned import contiguous
from cmargin.data.working_set import Answered, ChoosesNearest, Nearest

# Entries of X; fewer are summed sooner than a second thread is awake, above all on a busy machine, where each look
# waits for the other thread. 10,000 x 50 to a certified 1e-2: 7.2 ms on one thread, 4.0 ms on two.
SMALL = 250_000


@dataclass
class RowState:
    """A `MemoryRowPass` without its rows, as it may be sent elsewhere or kept."""

    code: np.ndarray
    intercept: bool
    rows: np.ndarray | None
    first: int
    nearest: Nearest | None
    kept: dict
    offset: np.ndarray | None = None

    def with_own_code(self):
        """The same, whose code may be written to."""
        return replace(self, code=self.code.copy())

    @property
    def nbytes(self):
        kept = (part for part in self.kept.values() if isinstance(part, np.ndarray))
        return sum(part.nbytes for part in (self.code, self.offset, self.rows, self.nearest, *kept) if part is not None)


class MemoryRowPass(ChoosesNearest, RowBlocks):
    """`RowPass` over arrays in memory.

    Parameters
    ----------
    X : Rows
        No row of which stores an entry in parts.
    code : (n,) array
        Sample weight with the sign of the class.
    intercept : bool
    n_threads : int
    rows : (n_rows,) intp array, optional
        Subset to read, ascending; ``code`` and ``offset`` then have one entry per chosen row.
    offset : (n,) array, optional
        Of the slacks, see `RowPass`.

    Attributes
    ----------
    first : int
        The place of the first row in the whole data, of which these may be a part.
    """

    first, rounding = 0, ROUNDING

    def __init__(self, X, code, *, intercept, n_threads, rows=None, offset=None):
        self.X, self.rows, self.offset = X, rows, None if offset is None else contiguous(offset, float)
        self.code, self.intercept = contiguous(code, float), intercept
        self.share = 1.0 if rows is None else len(rows) / max(1, self.X.shape[0])
        super().__init__(self.X, self.code, intercept, n_threads, rows, 0, self.offset)

    @cached_property
    def total_weight(self):
        return float(np.abs(self.code).sum())

    def state(self):
        return RowState(self.code, self.intercept, self.rows, self.first, self.nearest, kept_of_rows(self),
                        self.offset)

    @classmethod
    def from_state(cls, X, state, n_threads, reads_only=False):
        """The pass that ``state`` is of, over its rows ``X``, with copies of what looks write to unless it only
        ``reads_only``: `along`, products, evaluations and margins."""
        rows = cls(X, state.code, intercept=state.intercept, n_threads=n_threads, rows=state.rows,
                   offset=state.offset)
        take_back_rows(rows, state.kept, not (reads_only and state.kept["per_row"].flags.writeable))
        rows.first, rows.nearest = state.first, copy(state.nearest)          # whose arrays are never written to
        return rows

    def use_threads(self, n_threads):
        return self.n_rows * self.n_columns >= SMALL and super().use_threads(n_threads)

    def subset(self, rows, weights):
        """Pass over ``rows`` (ascending intp), weights multiplied by ``weights``; X is shared."""
        n_threads = self.n_threads if len(rows) * self.n_columns >= SMALL else 1
        part = MemoryRowPass(self.X, self.code[rows] * weights, intercept=self.intercept, n_threads=n_threads,
                             rows=np.ascontiguousarray(rows, np.intp),
                             offset=None if self.offset is None else self.offset[rows])
        part.between_slices = self.between_slices
        return part

    def sides(self):
        return self.both

    @cached_property
    def both(self):                              # until `weigh_sides`: three steps ask, and a read of the code is 1 ms
        return sides_of(self.code)

    def gather_sample(self, positives, negatives, seed, column_weight=None):
        rows, chance, n_read = chosen(self.X, self.code, positives, negatives, seed, self.first, column_weight,
                                      self.n_threads)
        return self.subset(rows, 1 / chance), self.share * n_read / max(1, self.n_rows)

    def weigh_sides(self, positives, negatives):
        """Multiply the weights of either side; before `start`."""
        self.code *= np.where(self.code > 0, positives, negatives)
        for known in ("total_weight", "both"):
            vars(self).pop(known, None)

    def dual_sums(self, a, loss, must_balance):
        """What a bound is made of, `feasible`, for dual variables ``a`` (n_rows,); a read, two if ``must_balance``.

        Returns
        -------
        vectors : (2, n_columns) array, sums of s a y x over positive and negative rows; all in the first if they need
            not be told apart
        totals : two sums of s a, of positive and of negative rows
        worth : two sums of s G(a), and of s (t - 1) a where rows have offsets t
        """
        worth, positive, c = np.empty(len(a)), (self.code >= 0) == (a >= 0), a * self.code
        gains(loss.id, a, worth, *loss.parameters)
        if self.offset is not None:
            worth += (self.offset - 1) * a
        worth *= np.abs(self.code)
        totals = [c[positive].sum(), -c[~positive].sum()]
        if must_balance and abs(totals[0] - totals[1]) > ROUNDING * totals[0]:
            vectors = [self.combine(np.where(side, c, 0.0)) for side in (positive, ~positive)]
        else:
            vectors, totals = [self.combine(c), np.zeros(self.n_columns)], [totals[0], totals[0]]
        return np.array(vectors), totals, [worth[positive].sum(), worth[~positive].sum()]

    # ------------------------------------------------------------ the rows near the hinge

    @property
    def blocks(self):
        return self

    def nearest_apart(self, share, most, moved, width, sample=None):
        if self.offset is not None:                  # lines that touch the hinge are told without them
            return None
        others, near, distance = self.choose_nearest(share, most, moved)
        if not near or not (others or sample):
            return None
        part, *own = self.beside_lines(width, sample)
        return Answered((part, *own, distance, part.share))

    def beside_lines(self, width, sample):
        """A pass over the near rows, and those of a sample; their sums where the straight lines touch the hinge."""
        sampled = None if sample is None else chosen(None, self.code, *sample, self.first)[:2]
        index, weights = self.nearest.beside(sampled)
        part = self.subset(index, weights)
        return part, *part.lines(self.nearest.u[index], width)

    def kept(self):
        return {**kept_of_rows(self, self.measures_are_wanted), "nearest": self.kept_nearest()}

    def take_back(self, kept):
        take_back_rows(self, kept)
        self.take_back_nearest(kept["nearest"])
