"""SLND, one-vs-rest, over ranks: every rank visits its part of each class's list, and weights are averaged often.

H, the rank and the step are chosen on rank 0, from a sample of all ranks' rows. A class's list is shared out: a rank
visits the positives it has, and of the negatives that one machine would draw its share by the negatives it has. With
v_r visits on rank r and V on all, the mean of the weights counts rank r by v_r / V, and steps are V^2 / sum v_r^2 times
as long, R times on R equal ranks: the mean move is then what one machine would have moved by.

A rank that has all positives of a class but few of its negatives moves far to their side between two means. Where ranks
differ much in their classes, and all rows are not too large, every rank is therefore given all rows and the classes are
divided: steps are one machine's then. Rows that are too large for that have a thousand means a pass.
"""

import copy

import numpy as np

from cmargin._core.stochastic._class_sgd import mean_stride
from cmargin.homes.arrays import joined
from cmargin.homes.open import open_rows
from cmargin.solvers.low_rank.class_lists import ClassLists, ClassShares, SharedLists
from cmargin.solvers.low_rank.class_passes import ClassPasses, class_streams
from cmargin.solvers.low_rank.low_rank import default_samples
from cmargin.solvers.low_rank.low_rank_newton import Run
from cmargin.solvers.low_rank.multinomial_choice import TRIAL_ROWS
from cmargin.solvers.low_rank.over_places import AVERAGES, UNEVEN, OnASample, unevenness
from cmargin.solvers.low_rank.over_ranks import OfRanks

MOST_MEANS = 1000          # of a pass, where classes lie unevenly (doc/decisions.md)
SHARED = 1 << 28           # and bytes of all rows that every rank is given there


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
    """What every rank keeps of a one-vs-rest fit, and does when asked.

    Parameters
    ----------
    place : Place
    loss : str
    entropy : int
    """

    def __init__(self, place, loss, entropy):
        self.place, self.loss, self.entropy, self.weights = place, loss, entropy, None
        self.rows = place.home.stochastic_rows(place.n_threads)
        self.rows.between_chunks = place.break_off or self.rows.between_chunks
        self.Y, self.row_weight = place.labels.columns(), place.weights
        self.streams = class_streams([entropy, 4, place.number], self.Y.shape[1])

    def sample(self, share):
        """This share of the rows: rows, positives, weights."""
        n, rng = self.Y.shape[0], np.random.default_rng([self.entropy, 3, self.place.number])
        chosen = np.sort(rng.permutation(n)[:int(np.ceil(share * n))])
        return self.place.home.take(chosen, self.rows.dtype), self.Y.tocsr()[chosen], self.place.weights[chosen]

    def take_rows(self, X, Y, row_weight):
        """All rows of all ranks, in place of this one's."""
        heard, self.Y, self.row_weight = self.rows.between_chunks, Y.tocsc(), row_weight
        self.rows = open_rows(X).stochastic_rows(self.place.n_threads)
        self.rows.between_chunks = heard

    def share_out(self, n_negatives, part):
        """How many negatives every class draws here, and what this rank counts for in the mean of its weights: where
        that is nothing its list is empty."""
        Y = self.Y.copy()
        Y.data[np.repeat(part == 0, np.diff(Y.indptr))] = 0
        Y.eliminate_zeros()
        lists = ClassLists.from_indicator(Y, None)
        self.lists = ClassLists(lists.positives, lists.starts, n_negatives, lists.n_rows)
        self.runner = ClassPasses(self.rows, self.lists, self.row_weight, self.loss, self.streams)
        self.part_of_mean, self.ends = part, np.concatenate([[0], np.cumsum(self.lists.lengths)])

    def whiten(self, inverse):
        self.inverse, self.Z = inverse, self.rows.whiten(inverse)

    def start(self, weights):
        self.weights = copy.deepcopy(weights)

    def part(self, number, n_parts, step, bias_rate):
        """Steps through one of so many parts of a pass, which is drawn before the first; sums as of `ClassPasses`."""
        if number == 0:
            self.visits = self.runner.drawn(0, self.ends)
        lengths = self.lists.lengths
        lo, hi = (self.ends[:-1] + lengths * n // n_parts for n in (number, number + 1))
        if (hi == lo).all():
            return np.zeros((len(lengths), 3))
        visits = np.concatenate([self.visits[a:b] for a, b in zip(lo.tolist(), hi.tolist(), strict=True)])
        offsets = np.concatenate([[0], np.cumsum(hi - lo)])
        return self.runner.plain(self.Z, self.inverse, self.weights, step, bias_rate, (offsets, visits))

    # ------------------------------------------------------------ weights

    def packed(self):
        """This rank's part of the mean of all weights, in one array; the lag as what it takes from the mean iterate."""
        w, share = self.weights, self.part_of_mean[:, None]
        parts = [share * part for part in (w.U, w.U_mean, w.V, w.bias, w.n_steps[:, None]) if len(part)]
        if len(w.V_lag):
            parts.append(share * _lag(w.n_steps)[:, None] * w.V_lag)
        return np.concatenate([part.ravel() for part in parts])

    def take(self, mean):
        w, at = self.weights, 0
        for part in (w.U, w.U_mean, w.V, w.bias, w.n_steps[:, None], w.V_lag):
            if not len(part):
                continue
            found = mean[at:at + part.size].reshape(part.shape)
            if part.dtype == np.int64:
                found = np.rint(found)
            elif part is w.V_lag:
                lag = _lag(w.n_steps)[:, None]
                found = np.divide(found, lag, out=np.zeros_like(found), where=lag > 0)
            part[...] = found
            at += part.size

    # ------------------------------------------------------------ a checkpoint

    def keep(self, name):
        self.place.file.kept[name] = {"streams": self.streams}

    def take_back(self, name):
        self.streams[...] = self.place.file.found.pop(name)["streams"]


def _lag(n_steps):
    """What `ClassWeights.linear` takes ``V_lag`` times."""
    samples = (n_steps // mean_stride).astype(float)
    return np.divide(2.0, samples * (samples + 1), out=np.zeros(len(samples)), where=samples > 0)


class RankShares(ClassShares):
    """`ClassShares`, and how many rows and positives of every class each rank has."""

    def __init__(self, home, positive, negatives_per_positive):
        rows, self.positives = (np.array(column) for column in zip(*home.call("positives"), strict=True))
        self.others = rows[:, None] - self.positives
        n_others = self.others.sum(axis=0)
        self.n_negatives = ClassLists.wanted(self.positives.sum(axis=0), n_others, negatives_per_positive)
        super().__init__(positive, home.n_rows, self.n_negatives / np.maximum(n_others, 1))

    def uneven(self):
        """Whether classes lie too unevenly; rows are half of what is counted, since one problem has but one class."""
        rows = (self.positives + self.others)[:, :1]
        return unevenness(np.hstack([self.positives, rows])) > UNEVEN / 2

    def lengths(self):
        """Visits of every class in a pass, of all ranks."""
        return self.positives.sum(axis=0) + self.n_negatives


def shared_out(shares):
    """(n_ranks, n_classes) positives, and negatives of each class by those that every rank has."""
    shared = SharedLists(shares.n_negatives, shares.others.sum(axis=0))
    return shares.positives, np.array([shared.negatives(others) for others in shares.others])


def divided(shares):
    """The same where every class is one rank's, the longest lists first to whom has least."""
    lengths, n_ranks = shares.lengths(), len(shares.positives)
    mine, load = np.zeros((n_ranks, len(lengths)), np.int64), np.zeros(n_ranks)
    for c in np.argsort(-lengths, kind="stable"):
        rank = np.argmin(load)
        mine[rank, c] = 1
        load[rank] += lengths[c]
    return mine * shares.positives.sum(axis=0), mine * shares.n_negatives


class ClassesOverRanks(OfRanks, OnASample, Run):
    """`Run` whose own rows are a sample on rank 0; its passes are those of all ranks.

    Parameters
    ----------
    there : PlacesRows
    shares : RankShares
    others : as of `Run`
    negatives_per_positive : float or None
    """

    made_again = (*Run.made_again, "all", "key")

    def __init__(self, there, shares, row_weight, settings, entropy, start, negatives_per_positive):
        home = there.home
        self.all, self.n_rows, self.key = home, home.n_rows, home.new_key()
        home.call("begin_work", self.key, LocalClassPasses, settings.loss, entropy)
        wanted = settings.hessian_samples or default_samples(self.n_rows, home.n_features, settings.rank, settings.tail)
        uneven = shares.uneven()
        self.divided = uneven and home.entries * home.dtype.itemsize <= SHARED
        share = 1.0 if self.divided else min(1.0, max(TRIAL_ROWS, wanted) / self.n_rows)
        parts, positives, weight = zip(*self._ask("sample", share), strict=True)
        Y, weight = joined(positives), np.concatenate(weight)
        if self.divided:
            self._ask("take_rows", joined(parts), Y, weight)
        self._share_out(*(divided if self.divided else shared_out)(shares))
        self.n_parts = MOST_MEANS if uneven and not self.divided else AVERAGES
        lists = SampleLists.from_indicator(Y.tocsc(), negatives_per_positive)
        lists.of_all(shares.shares(None), shares.lengths())
        super().__init__(there.brought(parts), lists, weight, settings, entropy, start)

    def _share_out(self, positives, negatives):
        """Every rank's part of each class's list: (n_ranks, n_classes) of its visits."""
        visits = (positives + negatives).astype(float)
        visits[:, visits.sum(axis=0) == 0] = 1.0                        # a class nobody visits
        self.longer = visits.sum(axis=0)**2 / (visits**2).sum(axis=0)
        for rank, part in enumerate(visits / visits.sum(axis=0)):
            self.all.call("work_of", self.key, rank, "share_out", negatives[rank], part)

    # ---- passes

    def prepare(self):
        super().prepare()
        if self.weights.base is not None:
            raise ValueError("comm= cannot go on from weights outside the new preconditioner's span; fit without "
                             "warm_start, or keep rank and tail.")
        self._spread()

    def _spread(self):
        self._ask("whiten", self.fit.inverse)
        self._ask("start", self.weights)

    _put_back = _spread

    def _one_pass(self, step):
        sums = np.zeros((self.lists.n_classes, 3))
        for number in range(self.n_parts):
            sums += sum(self._ask("part", number, self.n_parts, step * self.longer, self._bias_rate()))
            self.all.average(self.key, 1)
            self.weights = copy.deepcopy(self.all.place.works[self.key].weights)
            self._watch_time()
        return sums

    def undo_divergence(self):
        super().undo_divergence()
        if self.fit.diverged.any():
            self._ask("start", self.weights)
