"""SLND on the multinomial risk over places: each steps through its own rows, and weights are averaged often.

What is chosen, H, rank and step, is chosen where the driver is, from a sample of all places' rows; by it the passes are
judged. Every place whitens its rows by the same inverse and takes a tenth of its pass, in as many batches as every
other; then all go on from the mean of their weights. R places take R times the step: the mean of their moves is then
what one machine would have moved by, had it seen their rows at once. A place that has met few classes alone for a tenth
of a pass moves far to their side: where the places' classes differ much, the mean is taken after every batch.

The weights are those of a split, not of the data alone; they are the same from run to run, and everywhere.
"""

import numpy as np

from cmargin._core.util._sampling import shuffle
from cmargin.solvers.per_class import class_streams
from cmargin.solvers.sgd.low_rank import default_samples
from cmargin.solvers.sgd.multinomial import MultinomialRun
from cmargin.solvers.sgd.multinomial_choice import (
    HELD_LEAST,
    MEAN_STRIDE,
    batch_size,
    split_order,
    trial_rows,
)
from cmargin.solvers.sgd.softmax_passes import SoftmaxPasses
from cmargin.solvers.sgd.softmax_weights import SoftmaxWeights

AVERAGES = 10              # of a pass,
FEW = 64                   # or one after every batch where a pass of a place has no more of them than this,
UNEVEN = 0.2               # or where `unevenness` is more than this
MOVED = "U", "U_mean", "V", "V_lag", "shift", "bias"                # of `SoftmaxWeights`, by steps


def unevenness(positives, others):
    """Part of a class's rows that would have to change places for these to have it in one share, beyond what chance
    would move; over all classes by their rows. Both: (n_places, n_classes) rows.
    """
    n, there = positives.sum(axis=0), positives.any(axis=0) & others.any(axis=0)
    if not there.any():
        return 0.0
    n, positives, others = n[there], positives[:, there], others[:, there]
    wanted = others / others.sum(axis=0)
    moved = np.abs(positives / n - wanted).sum(axis=0) / 2
    chance = np.sqrt(wanted * (1 - wanted) / (2 * np.pi * n)).sum(axis=0)
    return float((moved - chance) @ n / n.sum())


class PlaceCounts:
    """How many positives and other rows of every problem each place has."""

    def __init__(self, home):
        rows, self.positives = (np.array(column) for column in zip(*home.call("positives"), strict=True))
        self.others = rows[:, None] - self.positives

    def uneven(self):
        """Whether classes lie too unevenly."""
        return unevenness(self.positives, self.others) > UNEVEN


class LocalPasses:
    """What a place keeps of a multinomial fit, and does when asked: its order, whitened rows and weights.

    Parameters
    ----------
    place : Place
    n_rows, n_classes : int
        Of all places.
    entropy : int
    """

    def __init__(self, place, n_rows, n_classes, entropy):
        # not the place itself, which has this object
        self.home, self.row_weight, self.file = place.home, place.weights, place.file
        self.n_classes, self.weights = n_classes, None
        self.rows = place.home.stochastic_rows(place.n_threads)
        self.rows.between_chunks = place.break_off or self.rows.between_chunks
        self.truth = place.labels.label.astype(np.int64)
        rng = np.random.default_rng([entropy, 3, place.number])
        self.order, self.n_held = split_order(self.truth, n_classes, rng, n_rows)
        self.stream = class_streams([entropy, 4, place.number], 1)[0]

    def sample(self, share):
        """This share of the rows not held out, and those that are: rows, classes, weights, how many of each."""
        n = len(self.order) - self.n_held
        chosen = np.concatenate([self.order[:int(np.ceil(share * n))], self.order[n:]])
        return (self.home.take(chosen, self.rows.dtype), self.truth[chosen], self.row_weight[chosen],
                (len(chosen) - self.n_held, self.n_held))

    def start(self, inverse, W, bias, average):
        """Begin, or go on, at these weights."""
        self.weights = SoftmaxWeights.start(inverse, W, bias, average, MEAN_STRIDE)

    def hold_out(self, holds_out):
        """Pass over all rows, or leave out those that the driver judges by."""
        self.n_train = len(self.order) - (self.n_held if holds_out else 0)

    def whiten(self, inverse, holds_out, n_batches):
        """Make ready for passes of so many batches."""
        self.hold_out(holds_out)
        if self.n_train:
            self.open(inverse, self.rows.whiten(inverse, self.order), n_batches)

    def open(self, inverse, Z, n_batches):
        """Passes over whitened rows ``Z``, in this place's order."""
        size = -(-self.n_train // n_batches)
        self.starts = np.arange(n_batches, dtype=np.int64) * self.n_train // n_batches
        self.passes = SoftmaxPasses(self.rows, inverse, Z, self.order, self.truth[self.order],
                                    self.row_weight[self.order], self.n_classes, size)

    def part(self, first, last, step, bias_rate, begins=True):
        """Steps through some of the batches of a pass, which ``begins`` anew at the first."""
        if not self.n_train:
            return
        if begins and not first:
            shuffle(self.starts, self.stream)
        self.passes.run(self.weights, self.starts[first:last], np.full(last - first, step), bias_rate, self.n_train)

    def met(self):
        """Sums over the rows as their batches were last met: loss, errors, weight; and how many rows."""
        return (*self.passes.met(self.n_train), self.n_train) if self.n_train else (0.0, 0.0, 0.0, 0)

    def met_in(self, first, last):
        """The same over the rows of some of the batches."""
        ends = np.append(np.sort(self.starts)[1:], self.n_train)
        of_batch = zip(np.sort(self.starts).tolist(), ends.tolist(), strict=True)
        there = dict(of_batch)
        rows = np.concatenate([np.arange(lo, there[lo]) for lo in self.starts[first:last].tolist()] or [self.order[:0]])
        weight = self.passes.weight[rows].sum() if len(self.passes.weight) else float(len(rows))
        return np.array([self.passes.loss[rows].sum(), self.passes.wrong[rows].sum(), weight, len(rows)])

    # ------------------------------------------------------------ a checkpoint

    def keep(self, name):
        self.file.kept[name] = {"weights": self.weights, "stream": self.stream,
                                "starts": self.starts if self.n_train else None}

    def take_back(self, name):
        """After `whiten`: what was kept under that name, of the same order of the rows."""
        vars(self).update(self.file.found.pop(name))

    # ------------------------------------------------------------ weights

    def moved(self):
        return [getattr(self.weights, name) for name in MOVED]

    def packed(self):
        """The weights in one array; zeros where there are no rows to have moved them."""
        out = np.concatenate([np.ravel(part).astype(float) for part in self.moved()])
        return out if self.n_train else np.zeros(len(out))

    def take(self, mean, n_done):
        at = 0
        for part in self.moved():
            part[...] = mean[at:at + part.size].reshape(part.shape)
            at += part.size
        self.weights.n_done = n_done


class OnASample:
    """A run whose `home` is a sample of ``n_rows`` rows; to be put before it among the bases."""

    def _n_rows(self):
        return self.n_rows

    def _counted(self, work, *arguments):
        """``work``, whose reads of the sample count as those of so few rows."""
        before = self.fit.reads
        found = work(*arguments)
        self.fit.reads = before + (self.fit.reads - before) * self.home.n_rows / self.n_rows
        return found

    def _invert(self, scores_from):
        return self._counted(super()._invert, scores_from)


class MultinomialOverPlaces(OnASample, MultinomialRun):
    """`MultinomialRun` whose own rows are a sample that was brought here; its passes are those of all places.

    A subclass has `_open`, `_sampled`, `_spread` and `_part`, and sets ``largest``, the most rows that one place steps
    through, ``n_places``, and ``uneven`` where classes lie so with the places.

    Parameters
    ----------
    there : object
        With ``home``, a `PlacesHome`, and ``brought(parts)``, `StochasticRows` of rows that places have sent.
    lists : object with ``n_classes``, problems
    others : as of `MultinomialRun`
    """

    made_again = (*MultinomialRun.made_again, "all")
    uneven = False
    in_one_memory = False

    def __init__(self, there, lists, row_weight, settings, entropy, start, n_classes):
        home = there.home
        self.all, self.n_rows, self.shares = home, home.n_rows, home.agreed.class_weights
        self._open(n_classes, entropy)
        wanted = settings.hessian_samples or default_samples(self.n_rows, home.n_features, settings.rank, settings.tail)
        share = min(1.0, max(trial_rows(n_classes), wanted) / self.n_rows)
        parts, truth, weight, counts = zip(*self._sampled(share), strict=True)
        # those held out last, as in an order of all rows
        held = np.concatenate([np.repeat([False, True], pair) for pair in counts])
        self.sample_order, self.n_held_there = np.argsort(held, kind="stable").astype(np.int64), int(held.sum())
        sample = there.brought(parts)
        super().__init__(sample, lists, np.concatenate(weight), settings, entropy, start, np.concatenate(truth),
                         n_classes)
        self.trial_batch, self.n_done = batch_size(self.largest, sample.sparse), 0

    @property
    def _few_in_memory(self):
        return self.home.n_rows == self.n_rows           # few rows are all in the sample

    def _log_shares(self):
        if not self.settings.fit_intercept:
            return np.zeros(self.n_classes)
        return np.log(np.maximum(self.shares / self.shares.sum(), 0.5 / self.n_rows))

    def _split(self):
        n_held = self.n_held_there if self.n_held_there >= HELD_LEAST else 0
        return self.sample_order, n_held

    def _choose(self, inverses, n_held, step):
        inverse, found = self._counted(super()._choose, inverses, n_held, step)
        if step is None:                         # chosen for as many rows as the sample has
            found *= ((self.home.n_rows - n_held) / (self.n_rows - n_held)) ** 0.25
        return inverse, found

    # ---- passes

    def _begin(self, W, bias):
        """Here what judges held-out rows, everywhere what takes the steps."""
        super()._begin(W, bias)
        self.n_batches, self.n_done = -(-self.largest // self.trial_batch), 0
        self._spread(W, bias)

    def _n_parts(self):
        """So often the mean is taken in a pass."""
        return self.n_batches if self.n_batches <= FEW or self.uneven else AVERAGES
