"""SLND, one-vs-rest, over ranks: the driver on rank 0, `LocalClassPasses` on all of them.

Where ranks differ much in their classes, and all rows are not too large, every rank is given all rows and the classes
are divided: steps are one machine's then. Rows that are too large for that have a thousand means a pass.
"""

import copy

import numpy as np

from cmargin.data.arrays import joined
from cmargin.solvers.sgd.classes_over_places import (
    ClassesOverPlaces,
    LocalClassPasses,
    counted_for,
    shared_out,
)
from cmargin.solvers.sgd.over_ranks import OfRanks

MOST_MEANS = 1000          # of a pass, where classes lie unevenly (doc/lab-notebook)
SHARED = 1 << 28           # and bytes of all rows that every rank is given there


class ClassesOfRank(LocalClassPasses):
    """What a rank does besides."""

    def whiten(self, inverse):
        self.inverse, self.Z = inverse, self.rows.whiten(inverse)

    def start(self, inverse, weights):
        self.inverse, self.weights = inverse, copy.deepcopy(weights)
        if weights.base is not None:
            self.Z = None                        # rows are whitened as they are visited, from here on

    def share_out(self, n_negatives, part):
        """``part``: what this rank counts for in the mean of every class's weights; where that is nothing its list is
        empty."""
        self.Y = self.Y.copy()
        self.Y.data[np.repeat(part == 0, np.diff(self.Y.indptr))] = 0
        self.Y.eliminate_zeros()
        self.part_of_mean = part
        super().share_out(n_negatives)

    def part(self, number, n_parts, step, bias_rate):
        if number == 0:
            self.draw()
        return super().part(number, n_parts, step, bias_rate)

    def packed(self):
        return self.weights.packed(self.part_of_mean)

    def take(self, mean):
        self.weights.take(mean)

    # ------------------------------------------------------------ a checkpoint

    def keep(self, name):
        self.file.kept[name] = {"streams": self.streams}

    def take_back(self, name):
        self.streams[...] = self.file.found.pop(name)["streams"]


def divided(shares):
    """As `shared_out` where every class is one rank's, the longest lists first to whom has least."""
    positives = shares.counts.positives
    lengths, n_ranks = shares.lengths(), len(positives)
    mine, load = np.zeros((n_ranks, len(lengths)), np.int64), np.zeros(n_ranks)
    for c in np.argsort(-lengths, kind="stable"):
        rank = np.argmin(load)
        mine[rank, c] = 1
        load[rank] += lengths[c]
    return mine * positives.sum(axis=0), mine * shares.n_negatives


class ClassesOverRanks(OfRanks, ClassesOverPlaces):
    """`ClassesOverPlaces` on a `RankHome`."""

    made_again = (*ClassesOverPlaces.made_again, "key")

    def _open(self, loss, entropy):
        home, uneven = self.all, self.shares.counts.uneven()
        self.key = home.new_key()
        home.call("begin_work", self.key, ClassesOfRank, loss, entropy)
        self.divided = uneven and home.entries * home.dtype.itemsize <= SHARED
        if uneven and not self.divided:
            self.n_parts = MOST_MEANS

    def _sampled(self, share, share_of_class):
        share = 1.0 if self.divided else share
        parts, positives, weight = zip(*self._ask("sample", share, share_of_class), strict=True)
        if self.divided:
            self._ask("take_rows", joined(parts), joined(positives), np.concatenate(weight))
        positive, negatives = (divided if self.divided else shared_out)(self.shares)
        parts_of_mean, self.longer = counted_for(positive + negatives)
        for rank, part in enumerate(parts_of_mean):
            self.all.call("work_of", self.key, rank, "share_out", negatives[rank], part)
        return parts, positives, weight

    def _spread(self):
        if self.weights.base is None:
            self._ask("whiten", self.fit.inverse)
        self._ask("start", self.fit.inverse, self.weights)

    _put_back = _spread

    def _part(self, number, step):
        sums = sum(self._ask("part", number, self.n_parts, step, self._bias_rate()))
        self.all.average(self.key, 1)
        self.weights = copy.deepcopy(self.all.place.works[self.key].weights)
        return sums

    def undo_divergence(self):
        super().undo_divergence()
        if self.fit.diverged.any():
            self._ask("start", self.fit.inverse, self.weights)
