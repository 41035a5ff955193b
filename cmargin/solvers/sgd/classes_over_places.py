"""SLND, one-vs-rest, over places: every place visits its part of each class's list, and weights are averaged often.

H, the rank and the step are chosen where the driver is, from a sample of all places' rows. A class's list is shared
out: a place visits the positives it has, and of the negatives that one machine would draw its share by the negatives it
has. With v_r visits in place r and V in all, the mean of the weights counts place r by v_r / V, and steps are
V^2 / sum v_r^2 times as long, R times over R equal places: the mean move is then what one machine would have moved by.

A place that has all positives of a class but few of its negatives moves far to their side between two means: rows that
lie so are laid out anew first, or given to all (`classes_over_ranks`, `over_workers`).
"""

from dataclasses import replace

import numpy as np

from cmargin.data.arrays import joined
from cmargin.data.open import open_rows
from cmargin.solvers.per_class import class_streams
from cmargin.solvers.sgd.class_lists import ClassLists, ClassShares, SharedLists
from cmargin.solvers.sgd.class_passes import ClassPasses
from cmargin.solvers.sgd.low_rank import default_samples
from cmargin.solvers.sgd.low_rank_newton import Run
from cmargin.solvers.sgd.multinomial_choice import TRIAL_ROWS
from cmargin.solvers.sgd.over_places import AVERAGES, OnASample
from cmargin.solvers.sgd.step_size import TRIAL_CLASSES, TRIAL_POSITIVES, able


class SampleLists(ClassLists):
    """Lists of a few rows that know the shares and lengths of all rows."""

    def of_all(self, shares, lengths):
        self.all_shares, self.all_lengths = shares, lengths
        return self

    @property
    def lengths(self):
        return self.all_lengths

    def shares(self, weight):
        return self.all_shares


class LocalClassPasses:
    """What a place keeps of a one-vs-rest fit, and does when asked.

    Parameters
    ----------
    place : Place
    loss : str
    entropy : int
    """

    def __init__(self, place, loss, entropy):
        # not the place itself, which has this object
        self.home, self.number, self.n_threads, self.file = place.home, place.number, place.n_threads, place.file
        self.loss, self.entropy, self.weights, self.Z = loss, entropy, None, None
        self.rows = place.home.stochastic_rows(place.n_threads)
        self.rows.between_chunks = place.break_off or self.rows.between_chunks
        self.Y, self.row_weight = place.labels.columns(), place.weights
        self.streams = class_streams([entropy, 4, place.number], self.Y.shape[1])

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
        return self.home.take(chosen, self.rows.dtype), self.Y.tocsr()[chosen], self.row_weight[chosen]

    def take_rows(self, X, Y, row_weight):
        """All rows of all places, in place of these."""
        heard, self.Y, self.row_weight = self.rows.between_chunks, Y.tocsc(), row_weight
        self.rows = open_rows(X).stochastic_rows(self.n_threads)
        self.rows.between_chunks = heard

    def share_out(self, n_negatives):
        """How many negatives every class draws here."""
        self.lists = replace(ClassLists.from_indicator(self.Y, None), n_negatives=n_negatives)
        self.runner = ClassPasses(self.rows, self.lists, self.row_weight, self.loss, self.streams)
        self.ends = np.concatenate([[0], np.cumsum(self.lists.lengths)])

    def draw(self):
        """The visits of a pass."""
        self.visits = self.runner.drawn(0, self.ends)
        return self.visits

    def part(self, number, n_parts, step, bias_rate):
        """Steps through one of so many parts of the pass that was drawn; sums as of `ClassPasses`."""
        lengths = self.lists.lengths
        lo, hi = (self.ends[:-1] + lengths * n // n_parts for n in (number, number + 1))
        if (hi == lo).all():
            return np.zeros((len(lengths), 3))
        visits = np.concatenate([self.visits[a:b] for a, b in zip(lo.tolist(), hi.tolist(), strict=True)])
        lists = np.concatenate([[0], np.cumsum(hi - lo)]), visits
        if self.weights.base is not None:
            return self.runner.refreshed(self.inverse, self.weights, step, bias_rate, lists)
        return self.runner.plain(self.Z, self.inverse, self.weights, step, bias_rate, lists)


class PlaceShares(ClassShares):
    """`ClassShares` of rows whose `PlaceCounts` are known."""

    def __init__(self, counts, positive, n_rows, negatives_per_positive):
        self.counts, n_positives, n_others = counts, counts.positives.sum(axis=0), counts.others.sum(axis=0)
        self.n_negatives = ClassLists.wanted(n_positives, n_others, negatives_per_positive)
        super().__init__(positive, n_rows, self.n_negatives / np.maximum(n_others, 1))

    def lengths(self):
        """Visits of every class in a pass, of all places."""
        return self.counts.positives.sum(axis=0) + self.n_negatives


def shared_out(shares):
    """(n_places, n_classes) positives, and negatives of each class by those that every place has."""
    counts = shares.counts
    shared = SharedLists(shares.n_negatives, counts.others.sum(axis=0))
    return counts.positives, np.array([shared.negatives(others) for others in counts.others])


def counted_for(visits):
    """What each place's ``visits``, (n_places, n_classes), count for in the mean, and how much longer steps are."""
    visits = visits.astype(float)
    visits[:, visits.sum(axis=0) == 0] = 1.0                        # a class nobody visits
    return visits / visits.sum(axis=0), visits.sum(axis=0)**2 / (visits**2).sum(axis=0)


class ClassesOverPlaces(OnASample, Run):
    """`Run` whose own rows are a sample that was brought here; its passes are those of all places.

    A subclass has `_open`, `_sampled`, `_spread`, which sends inverse and weights, and `_part`, after which
    ``weights`` are the mean; and sets ``longer``, by how much steps are.

    Parameters
    ----------
    there : PlacesRows
    shares : PlaceShares
    others : as of `Run`
    negatives_per_positive : float or None
    """

    made_again = (*Run.made_again, "all", "shares", "tried")
    n_parts = AVERAGES

    def __init__(self, there, shares, row_weight, settings, entropy, start, negatives_per_positive):
        home = there.home
        self.all, self.n_rows, self.shares = home, home.n_rows, shares
        self._open(settings.loss, entropy)
        wanted = settings.hessian_samples or default_samples(self.n_rows, home.n_features, settings.rank, settings.tail)
        parts, positives, weight = self._sampled(min(1.0, max(TRIAL_ROWS, wanted) / self.n_rows), self._try(entropy))
        lists = SampleLists.from_indicator(joined(positives).tocsc(), negatives_per_positive)
        lists.of_all(shares.shares(None), shares.lengths())
        super().__init__(there.brought(parts), lists, np.concatenate(weight), settings, entropy, start)

    def _try(self, entropy):
        """Choose the classes that the step is tried on; the share of each class's positives that takes."""
        n_positives, share = self.shares.counts.positives.sum(axis=0), np.zeros(self.shares.n_classes)
        there = able(n_positives, self.shares.n_negatives)
        self.tried = np.random.default_rng([entropy, 5]).permutation(there)[:TRIAL_CLASSES]
        share[self.tried] = np.minimum(1.0, TRIAL_POSITIVES / n_positives[self.tried])
        return share

    def prepare(self):
        super().prepare()
        self._spread()

    def _refresh(self):
        super()._refresh()
        self._spread()

    def _one_pass(self, step):
        sums = np.zeros((self.lists.n_classes, 3))
        for number in range(self.n_parts):
            sums += self._part(number, step * self.longer)
            self.clock.watch()
        return sums
