"""What one shard of the rows keeps of an SLND fit, and does when a walker asks it to (`Walkers` in `data/source.py`).

A rank makes its work once: its random streams go on from pass to pass. A task on a worker makes it anew, and starts the
streams of its pass, so that a task that is repeated takes the same steps. Shards are given the class of a work and what
it is made of; the data sources that do so import nothing from here.
"""

import copy
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from cmargin._core.util._sampling import shuffle
from cmargin.data.open import open_rows
from cmargin.solvers.per_class import class_streams
from cmargin.solvers.sgd.class_lists import ClassLists
from cmargin.solvers.sgd.class_passes import ClassPasses
from cmargin.solvers.sgd.multinomial_choice import split_order
from cmargin.solvers.sgd.softmax_passes import SoftmaxPasses


@dataclass
class Steps:
    """One of ``n_parts`` parts of a pass, and the size of its steps."""

    number: int                # of the pass
    part: int
    n_parts: int
    step: float | np.ndarray
    bias_rate: float | np.ndarray


class Work:
    """What the works of both methods have in common. ``shard`` is not kept, because it keeps this object."""

    streams_go_on = False                # whether this object lives as long as the fit
    keeps_drawn = False                  # whether what a pass draws is sent to the tasks of all its parts
    checkpointed: tuple[str, ...] = ()   # arrays that are written to
    weights = Z = drawn = None

    def __init__(self, shard, entropy):
        self.source, self.number, self.n_threads = shard.source, shard.number, shard.n_threads
        self.row_weight, self.file, self.entropy = shard.weights, shard.file, entropy
        self.rows = shard.source.stochastic_rows(shard.n_threads)
        self.rows.between_chunks = shard.break_off or self.rows.between_chunks

    def share_out(self, share, part):
        """Learn this shard's ``share`` of a pass, and the ``part`` of its walker's weights in the mean."""
        self.part = part

    # ------------------------------------------------------------ on a rank

    def share_out_all(self, shares):
        """`share_out` by the list of all ranks."""
        self.share_out(*shares[self.number])

    def begin(self, inverse, weights):
        """Make ready for passes from these weights, in the coordinates of ``inverse``."""
        self.streams_go_on = True
        self.open(inverse, self.whiten((inverse, weights.base)))
        self.start(weights)

    def start(self, weights):
        """Go on from other weights in the same coordinates."""
        self.weights = copy.deepcopy(weights)

    def keep(self, name):
        self.file.kept[name] = {what: getattr(self, what) for what in self.checkpointed}

    def restore(self, name):
        """After `begin`: take back what was kept under that name."""
        for what, kept in self.file.found.pop(name).items():
            getattr(self, what)[...] = kept

    # ------------------------------------------------------------ the mean of weights

    def packed(self):
        return self.weights.packed(self.part)

    def take(self, total):
        """Go on from the mean, which all `packed` weights add up to."""
        self.weights.take(total)

    @staticmethod
    def mean_of(every, parts):
        """The weights that ``every`` walker's parts add up to, in their order."""
        found = copy.deepcopy(every[0])
        found.take(reduce(add, [weights.packed(part) for weights, part in zip(every, parts, strict=True)]))
        return found


class SoftmaxWork(Work):
    """Batches of the multinomial risk, over one shard's rows; ``n_rows`` and ``n_classes``: of all shards."""

    checkpointed = "stream", "drawn"

    def __init__(self, shard, entropy, n_rows, n_classes):
        super().__init__(shard, entropy)
        self.n_classes, self.truth = n_classes, shard.labels.label.astype(np.int64)
        rng = np.random.default_rng([entropy, 3, self.number])
        self.order, self.n_held = split_order(self.truth, n_classes, rng, n_rows)
        self.stream = class_streams([entropy, 4, self.number], 1)[0]

    def sample(self, share):
        """This share of the rows not held out, and those that are: rows, classes, weights, how many of each."""
        n = len(self.order) - self.n_held
        chosen = np.concatenate([self.order[:int(np.ceil(share * n))], self.order[n:]])
        return (self.source.take(chosen, self.rows.dtype), self.truth[chosen], self.row_weight[chosen],
                (len(chosen) - self.n_held, self.n_held))

    def share_out(self, share, part):
        """``share``: batches of a pass, and whether the rows that the driver judges by are left out."""
        super().share_out(share, part)
        self.n_batches, holds_out = share
        self.n_train = len(self.order) - (self.n_held if holds_out else 0)

    def whiten(self, fixed):
        """``fixed``: the inverse, and what weights start from where the basis lacks them."""
        return self.rows.whiten(fixed[0], self.order) if len(self.order) else None

    def open(self, inverse, Z):
        self.passes = None                               # let go of before others are made
        if Z is not None:
            self.passes = SoftmaxPasses(self.rows, inverse, Z, self.order, self.truth[self.order],
                                        self.row_weight[self.order], self.n_classes, -(-self.n_train // self.n_batches))
        self.drawn = np.arange(self.n_batches, dtype=np.int64) * self.n_train // self.n_batches

    def draw(self, number=None):
        """Shuffle the batches; ``number``: of the pass whose stream is to be started."""
        if number is not None:
            self.stream = class_streams([self.entropy, 4, self.number, number], 1)[0]
        shuffle(self.drawn, self.stream)

    def walk(self, steps):
        """Take a part of a pass; sums over the rows as they were met: loss, errors, weight, number."""
        n, part, n_parts = self.n_batches, steps.part, steps.n_parts
        if self.streams_go_on:
            first, last = (n // n_parts * k + min(n % n_parts, k) for k in (part, part + 1))
        else:
            first, last = (n * k // n_parts for k in (part, part + 1))
        if self.passes is None:
            self.weights.n_done += last - first
            return np.zeros(4)
        if self.streams_go_on and part == 0:
            self.draw()
        self.passes.run(self.weights, self.drawn[first:last], np.full(last - first, steps.step), steps.bias_rate,
                        self.n_train)
        if not self.streams_go_on:
            return self.met_in(first, last)
        return np.array([*self.passes.met(self.n_train), self.n_train]) if part == n_parts - 1 else np.zeros(4)

    def met_in(self, first, last):
        """Of the rows of these batches."""
        starts = np.sort(self.drawn)
        end_of = dict(zip(starts.tolist(), [*starts[1:].tolist(), self.n_train], strict=True))
        rows = np.concatenate([np.arange(lo, end_of[lo]) for lo in self.drawn[first:last].tolist()] or [self.order[:0]])
        weight = self.passes.weight[rows].sum() if len(self.passes.weight) else float(len(rows))
        return np.array([self.passes.loss[rows].sum(), self.passes.wrong[rows].sum(), weight, len(rows)])

    @staticmethod
    def mean_of(every, parts):
        found = Work.mean_of(every, parts)
        found.n_done = max(weights.n_done for weights in every)
        return found


class ClassListWork(Work):
    """The visits of every one-vs-rest class, over one shard's rows."""

    keeps_drawn = True
    checkpointed = ("streams",)

    def __init__(self, shard, entropy, loss):
        super().__init__(shard, entropy)
        self.loss, self.Y = loss, shard.labels.columns()
        self.streams = class_streams([entropy, 4, self.number], self.Y.shape[1])

    def sample(self, share, share_of_class):
        """This share of the rows, and of every class's positives at least its own: rows, positives, weights."""
        n, rng = self.Y.shape[0], np.random.default_rng([self.entropy, 3, self.number])
        chosen = np.zeros(n, bool)
        chosen[rng.permutation(n)[:int(np.ceil(share * n))]] = True
        for c in np.flatnonzero(share_of_class > share):
            rows = self.Y.indices[self.Y.indptr[c]:self.Y.indptr[c + 1]]
            more = int(np.ceil(share_of_class[c] * len(rows))) - np.count_nonzero(chosen[rows])
            chosen[rng.permutation(rows[~chosen[rows]])[:max(0, more)]] = True
        chosen = np.flatnonzero(chosen)
        return self.source.take(chosen, self.rows.dtype), self.Y.tocsr()[chosen], self.row_weight[chosen]

    def take_rows(self, X, Y, row_weight):
        """Walk all rows of all shards, in place of these."""
        heard, self.Y, self.row_weight = self.rows.between_chunks, Y.tocsc(), row_weight
        self.rows = open_rows(X).stochastic_rows(self.n_threads)
        self.rows.between_chunks = heard

    def share_out(self, share, part):
        """``share``: (n_classes,) negatives that each class draws. A class whose ``part`` is 0 has no visits here."""
        super().share_out(share, part)
        if (part == 0).any():
            self.Y = self.Y.copy()
            self.Y.data[np.repeat(part == 0, np.diff(self.Y.indptr))] = 0
            self.Y.eliminate_zeros()
        self.lists = replace(ClassLists.from_indicator(self.Y, None), n_negatives=share)
        self.runner = ClassPasses(self.rows, self.lists, self.row_weight, self.loss, self.streams)
        self.ends = np.concatenate([[0], np.cumsum(self.lists.lengths)])

    def whiten(self, fixed):
        """None where weights start from others, ``fixed[1]``: rows are then whitened as they are visited."""
        return self.rows.whiten(fixed[0]) if fixed[1] is None else None

    def open(self, inverse, Z):
        self.inverse, self.Z = inverse, Z

    def draw(self, number=None):
        """Draw the visits of a pass; ``number``: of the pass whose streams are to be started."""
        if number is not None:
            self.streams = self.runner.streams = class_streams([self.entropy, 4, self.number, number], self.Y.shape[1])
        self.drawn = self.runner.drawn(0, self.ends)
        return self.drawn

    def walk(self, steps):
        """Take a part of the pass that was drawn; sums as of `ClassPasses`."""
        if self.streams_go_on and steps.part == 0:
            self.draw()
        lengths = self.lists.lengths
        lo, hi = (self.ends[:-1] + lengths * k // steps.n_parts for k in (steps.part, steps.part + 1))
        if (hi == lo).all():
            return np.zeros((len(lengths), 3))
        visits = np.concatenate([self.drawn[a:b] for a, b in zip(lo.tolist(), hi.tolist(), strict=True)])
        lists = np.concatenate([[0], np.cumsum(hi - lo)]), visits
        if self.Z is None:
            return self.runner.refreshed(self.inverse, self.weights, steps.step, steps.bias_rate, lists)
        return self.runner.plain(self.Z, self.inverse, self.weights, steps.step, steps.bias_rate, lists)
