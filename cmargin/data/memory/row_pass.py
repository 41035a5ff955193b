"""`RowPass` over rows in memory, a dense array or a CSR matrix, read where it lies."""

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cmargin._core.losses._losses import gains
from cmargin._core.rows._row_pass import ROUNDING, RowBlocks
from cmargin._core.rows._row_sample import chosen, sides_of
from cmargin._core.rows._row_state import kept_of_rows, take_back_rows
from cmargin._runtime.aligned import contiguous
from cmargin.data.working_set import Answered, ChoosesWorkingSet, WorkingSet

# Entries of X; fewer are summed sooner than a second thread is awake, above all on a busy machine, where each
# evaluation waits for the other thread. 10,000 x 50 to a certified 1e-2: 7.2 ms on one thread, 4.0 ms on two.
SMALL = 250_000


@dataclass
class RowState:
    """A `MemoryRowPass` without its rows, as it may be sent elsewhere or kept."""

    signed_weight: np.ndarray
    intercept: bool
    rows: np.ndarray | None
    first: int
    working_set: WorkingSet | None
    kept: dict
    offset: np.ndarray | None = None

    def with_own_weights(self):
        """The same, whose signed weights may be written to."""
        return replace(self, signed_weight=self.signed_weight.copy())

    @property
    def nbytes(self):
        kept = (part for part in self.kept.values() if isinstance(part, np.ndarray))
        return sum(part.nbytes for part in (self.signed_weight, self.offset, self.rows, self.working_set, *kept)
                   if part is not None)


class MemoryRowPass(ChoosesWorkingSet, RowBlocks):
    """`RowPass` over arrays in memory, `Rows` none of which stores an entry in parts.

    ``rows``: subset to read, (n_rows,) intp, ascending; ``signed_weight`` and ``offset`` then have an entry for each.
    """

    first = 0                   # place of the first row in the whole data, of which these may be a part
    rounding = ROUNDING

    def __init__(self, X, signed_weight, *, intercept, n_threads, rows=None, offset=None):
        self.X, self.rows, self.offset = X, rows, None if offset is None else contiguous(offset, float)
        self.signed_weight, self.intercept = contiguous(signed_weight, float), intercept
        self.share = 1.0 if rows is None else len(rows) / max(1, self.X.shape[0])
        super().__init__(self.X, self.signed_weight, intercept, n_threads, rows, 0, self.offset)

    @cached_property
    def total_weight(self):
        return float(np.abs(self.signed_weight).sum())

    def state(self):
        return RowState(self.signed_weight, self.intercept, self.rows, self.first, self.working_set, kept_of_rows(self),
                        self.offset)

    @classmethod
    def from_state(cls, X, state, n_threads, reads_only=False):
        """The pass that ``state`` is of, over its rows ``X``, with copies of what evaluations write to unless it only
        ``reads_only``: `line`, products, objectives and margins."""
        rows = cls(X, state.signed_weight, intercept=state.intercept, n_threads=n_threads, rows=state.rows,
                   offset=state.offset)
        take_back_rows(rows, state.kept, not (reads_only and state.kept["per_row"].flags.writeable))
        rows.first, rows.working_set = state.first, copy(state.working_set)  # whose arrays are never written to
        return rows

    def use_threads(self, n_threads):
        return self.n_rows * self.n_columns >= SMALL and super().use_threads(n_threads)

    def subset(self, rows, weights):
        """Pass over ``rows`` (ascending intp), weights multiplied by ``weights``; X is shared."""
        n_threads = self.n_threads if len(rows) * self.n_columns >= SMALL else 1
        part = MemoryRowPass(self.X, self.signed_weight[rows] * weights, intercept=self.intercept, n_threads=n_threads,
                             rows=np.ascontiguousarray(rows, np.intp),
                             offset=None if self.offset is None else self.offset[rows])
        part.between_slices = self.between_slices
        return part

    def sides(self):
        return self.both

    @cached_property
    def both(self):                              # until `weigh_sides`: three steps ask, and the sums take 1 ms
        return sides_of(self.signed_weight)

    def gather_sample(self, positives, negatives, seed, column_weight=None):
        rows, chance, n_read = chosen(self.X, self.signed_weight, positives, negatives, seed, self.first, column_weight,
                                      self.n_threads)
        return self.subset(rows, 1 / chance), self.share * n_read / max(1, self.n_rows)

    def weigh_sides(self, positives, negatives):
        """Multiply the weights of either side; before `start`."""
        self.signed_weight *= np.where(self.signed_weight > 0, positives, negatives)
        for known in ("total_weight", "both"):
            vars(self).pop(known, None)

    def dual_sums(self, a, loss, must_balance):
        """What a bound is made of, `feasible`, for dual variables ``a`` (n_rows,), in a read.

        ``must_balance``: those of the heavier side are shrunk first, for sum s a y = 0. Returns sums of s a y x, (2,
        n_columns), all in the first, as they need not be told apart any more; the lighter side's sum of s a, for either
        side; and sums of s G(a) over positive and negative rows, to which rows with offsets t add s (t - 1) a.
        """
        positive = (self.signed_weight >= 0) == (a >= 0)
        c = a * self.signed_weight
        sums = c[positive].sum(), -c[~positive].sum()
        if must_balance and sums[0] != sums[1]:
            a = np.where(positive == (sums[0] > sums[1]), a * (min(sums) / max(sums)), a)
            c = a * self.signed_weight
        gain = np.empty(len(a))
        gains(loss.id, a, gain, *loss.parameters)
        if self.offset is not None:
            gain += (self.offset - 1) * a
        gain *= np.abs(self.signed_weight)
        return np.array([self.combine(c), np.zeros(self.n_columns)]), [min(sums)] * 2, \
            [gain[positive].sum(), gain[~positive].sum()]

    # ------------------------------------------------------------ the rows near the hinge

    @property
    def blocks(self):
        return self

    def gather_working_set(self, share, most, moved, width, sample=None):
        if self.offset is not None:                  # straight lines are summed without offsets
            return None
        others, n_members, distance = self.choose_working_set(share, most, moved)
        if not n_members or not (others or sample):
            return None
        part, *own = self.beside_lines(width, sample)
        return Answered((part, *own, distance, part.share))

    def beside_lines(self, width, sample):
        """A pass over the working set and the rows of a sample, and the sums of the straight lines of these rows."""
        sampled = None if sample is None else chosen(None, self.signed_weight, *sample, self.first)[:2]
        index, weights = self.working_set.beside(sampled)
        part = self.subset(index, weights)
        return part, *part.lines(self.working_set.u[index], width)

    def kept(self):
        return {**kept_of_rows(self, self.measures_are_wanted), "working_set": self.kept_working_set()}

    def take_back(self, kept):
        take_back_rows(self, kept)
        self.take_back_working_set(kept["working_set"])
