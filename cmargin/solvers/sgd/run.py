"""SLND on the rows of several shards, ranks or partitions: walkers step through them, and the mean joins their weights.

What is chosen, H, rank and step, is chosen where the driver is, from a sample of all shards' rows, and by it the passes
are judged. A walker takes its part of a pass, a tenth say; then all go on from the mean of their weights. The mean move
is what one machine would have moved by, had it seen their rows at once, if steps are longer:

* multinomial: every walker takes as many batches, and R walkers take R times the step;
* one-vs-rest: a class's list is shared out. A shard visits the positives it has, and of the negatives that one machine
  would draw its share by the negatives it has. With v_r visits by walker r and V in all, the mean of the class's
  weights counts walker r by v_r / V, and steps are V^2 / sum v_r^2 times as long, R times for R equal walkers.

A walker that meets few classes, or all positives of a class and few of its negatives, moves far to their side between
two means. Where classes lie so, a source that can lays the rows out anew (`redistribute`); else the means are as many
as batches, or a thousand, and one-vs-rest rows that are not too large are given to all shards and the classes divided.

The weights are those of a split, not of the data alone; they are the same from run to run, and on every machine.
"""

import numpy as np

from cmargin.data.arrays import joined
from cmargin.solvers import cost
from cmargin.solvers.sgd.class_lists import ClassLists
from cmargin.solvers.sgd.low_rank import default_samples
from cmargin.solvers.sgd.low_rank_newton import Run
from cmargin.solvers.sgd.multinomial import MultinomialRun
from cmargin.solvers.sgd.multinomial_choice import batch_size, trial_rows
from cmargin.solvers.sgd.shard_shares import ShardCounts, counted_for, divided, shared_out
from cmargin.solvers.sgd.step_size import able
from cmargin.solvers.sgd.work import ClassListWork, SoftmaxWork, Steps

# Rows of a walker over partitions whose batches are as large as one machine's.
ENOUGH = max(cost.BATCHES_OF_A_PASS) * cost.DENSE_BATCH


class OverShards:
    """A run whose ``source`` is a sample of all rows that was brought here, and whose passes walkers take.

    To be put first among the bases.
    """

    n_parts = cost.MEANS_OF_A_PASS
    n_passes = 0               # that were begun

    def _open(self, source, counts, work, entropy, *about):
        """Make the walkers over all rows of a data source; its `ShardCounts`, and whether classes lie unevenly."""
        self.all, self.n_rows, uneven = source, source.n_rows, counts.uneven()
        if uneven and source.redistribute is not None:
            source.redistribute(entropy)
            counts, uneven = ShardCounts(source), False
        self.walkers = source.walkers(cost.GROUPS_OF_PARTITIONS, ENOUGH, work, entropy, *about)
        return counts, uneven

    def _wanted(self, settings):
        """Rows behind H."""
        return settings.hessian_samples or default_samples(self.n_rows, self.all.n_features, settings.rank,
                                                           settings.tail)

    def _n_rows(self):
        return self.n_rows

    def _counted(self, work, *arguments):
        """``work``, whose reads of the sample count as those of so few rows."""
        before = self.fit.reads
        found = work(*arguments)
        self.fit.reads = before + (self.fit.reads - before) * self.source.n_rows / self.n_rows
        return found

    def _invert(self, scores_from):
        return self._counted(super()._invert, scores_from)

    def _spread(self):
        """Let every walker begin where the driver is."""
        self.all.between_chunks = self.clock.watch
        self.walkers.begin(self.fit.inverse, self.weights)

    def _walk(self, step, sums):
        """One pass; what was met is added to ``sums``."""
        self.n_passes += 1
        self.walkers.begin_pass(self.n_passes)
        for part in range(self.n_parts):
            steps = Steps(self.n_passes, part, self.n_parts, step, self._bias_rate())
            self.weights, met = self.walkers.walk(self.weights, steps)
            sums += met
            self.clock.watch()
        return sums

    def undo_divergence(self):
        super().undo_divergence()
        if self.fit.diverged.any():
            self.walkers.start(self.fit.inverse, self.weights)

    def snapshot(self):
        return {**super().snapshot(), "walkers": self.walkers.keep()}

    def go_on_from(self, state):
        kept = state.pop("walkers")
        super().go_on_from(state)
        self._spread()
        self.walkers.restore(kept)


class MultinomialOverShards(OverShards, MultinomialRun):
    """`MultinomialRun` on the rows of shards.

    ``there`` has ``source``, a `ShardedSource`, and ``brought(parts)``, `StochasticRows` of rows that shards have sent;
    of ``lists`` the number of problems is used.
    """

    made_again = (*MultinomialRun.made_again, "all", "walkers")
    may_walk = in_one_memory = False

    def __init__(self, there, lists, row_weight, settings, entropy, start, n_classes):
        source = there.source
        _, self.uneven = self._open(source, ShardCounts(source), SoftmaxWork, entropy, source.n_rows, n_classes)
        self.shares = self.all.agreed.class_weights
        share = min(1.0, max(trial_rows(n_classes), self._wanted(settings)) / self.n_rows)
        parts, truth, weight, counts = zip(*self.walkers.ask("sample", share), strict=True)
        # Rows held out come last, as in an order of all rows.
        held = np.concatenate([np.repeat([False, True], pair) for pair in counts])
        self.sample_order, self.n_held_there = np.argsort(held, kind="stable").astype(np.int64), int(held.sum())
        sample = there.brought(parts)
        super().__init__(sample, lists, np.concatenate(weight), settings, entropy, start, np.concatenate(truth),
                         n_classes)
        self.trial_batch = batch_size(max(self.walkers.rows), sample.sparse)

    @property
    def _few_in_memory(self):
        return self.source.n_rows == self.n_rows           # few rows are all in the sample

    def _log_shares(self):
        if not self.settings.fit_intercept:
            return np.zeros(self.n_classes)
        return np.log(np.maximum(self.shares / self.shares.sum(), 0.5 / self.n_rows))

    def _split(self):
        n_held = self.n_held_there if self.n_held_there >= cost.HELD_LEAST else 0
        return self.sample_order, n_held

    def _choose(self, problem, inverses, n_held):
        inverse, found = self._counted(super()._choose, problem, inverses, n_held)
        if problem.step is None:                         # chosen for as many rows as the sample has
            found *= ((self.source.n_rows - n_held) / (self.n_rows - n_held)) ** 0.25
        return inverse, found

    def _begin(self, W, bias):
        """Here what judges held-out rows, everywhere what takes the steps."""
        super()._begin(W, bias)
        self._spread()

    def _spread(self):
        """Every walker takes as many batches of a pass, and each of its shards takes its part of them by its rows."""
        rows = self.walkers.rows
        n_batches = int(-(-max(rows) // self.trial_batch))
        self.n_parts = n_batches if n_batches <= min(cost.BATCHES_OF_A_PASS) or self.uneven else cost.MEANS_OF_A_PASS
        shares = [(max(1, round(n_batches * n / rows[walker])) if n else n_batches, bool(self.n_held))
                  for n, walker in zip(self.all.sizes, self.walkers.of_shard, strict=True)]
        self.walkers.share_out(shares, [float(n > 0) for n in rows])
        super()._spread()

    def _one_pass(self, step):
        loss, wrong, weight, n = self._walk(step * np.count_nonzero(self.walkers.rows), np.zeros(4))
        self.fit.reads += n / self.n_rows
        return loss, wrong, weight, int(n)


class ClassesOverShards(OverShards, Run):
    """`Run` on the rows of shards; ``there``: as of `MultinomialOverShards`, ``shares``: a `ShardShares`."""

    made_again = (*Run.made_again, "all", "shares", "tried", "walkers")

    def __init__(self, there, shares, row_weight, settings, entropy, start, negatives_per_positive):
        self.shares, source = shares, there.source
        shares.counts, uneven = self._open(source, shares.counts, ClassListWork, entropy, settings.loss)
        divide = uneven and source.entries * source.dtype.itemsize <= cost.SHARED_BYTES
        if uneven and not divide:
            self.n_parts = cost.MEANS_OF_AN_UNEVEN_PASS
        share = 1.0 if divide else min(1.0, max(cost.TRIAL_ROWS, self._wanted(settings)) / self.n_rows)
        parts, positives, weight = zip(*self.walkers.ask("sample", share, self._try(entropy)), strict=True)
        if divide:
            self.walkers.ask("take_rows", joined(parts), joined(positives), np.concatenate(weight))
        self._share_out(*(divided if divide else shared_out)(shares))
        lists = SampleLists.from_indicator(joined(positives).tocsc(), negatives_per_positive)
        lists.all_shares, lists.all_lengths = shares.shares(None), shares.lengths()
        super().__init__(there.brought(parts), lists, np.concatenate(weight), settings, entropy, start)

    def _try(self, entropy):
        """Choose the classes that the step is tried on; the share of each class's positives that takes."""
        n_positives, share = self.shares.counts.positives.sum(axis=0), np.zeros(self.shares.n_classes)
        there = able(n_positives, self.shares.n_negatives)
        self.tried = np.random.default_rng([entropy, 5]).permutation(there)[:cost.TRIAL_CLASSES]
        share[self.tried] = np.minimum(1.0, cost.TRIAL_POSITIVES / n_positives[self.tried])
        return share

    def _share_out(self, positives, negatives):
        """What is visited in every shard, and what each walker's weights count for."""
        of_shard, visits = np.array(self.walkers.of_shard), positives + negatives
        parts, self.longer = counted_for(np.array([visits[of_shard == walker].sum(axis=0)
                                                   for walker in range(len(self.walkers.rows))]))
        self.walkers.share_out(list(negatives), list(parts))

    def prepare(self):
        super().prepare()
        self._spread()

    def _refresh(self):
        super()._refresh()
        self._spread()

    def _one_pass(self, step):
        return self._walk(step * self.longer, np.zeros((self.lists.n_classes, 3)))


class SampleLists(ClassLists):
    """Lists of a few rows that know the shares and lengths of all rows."""

    @property
    def lengths(self):
        return self.all_lengths

    def shares(self, weight):
        return self.all_shares
