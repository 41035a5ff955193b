"""How classes lie over the shards of the rows, and which part of every class's list is visited in which shard."""

import numpy as np

from cmargin.solvers import cost
from cmargin.solvers.sgd.class_lists import ClassLists, ClassShares, SharedLists


def unevenness(positives, others):
    """Part of a class's rows that would have to change shards for these to have it in one share, beyond what chance
    would move; over all classes by their rows. Both: (n_shards, n_classes) rows.
    """
    n, there = positives.sum(axis=0), positives.any(axis=0) & others.any(axis=0)
    if not there.any():
        return 0.0
    n, positives, others = n[there], positives[:, there], others[:, there]
    wanted = others / others.sum(axis=0)
    moved = np.abs(positives / n - wanted).sum(axis=0) / 2
    chance = np.sqrt(wanted * (1 - wanted) / (2 * np.pi * n)).sum(axis=0)
    return float((moved - chance) @ n / n.sum())


class ShardCounts:
    """(n_shards, n_problems) positives and other rows of every problem in every shard of a data source."""

    def __init__(self, source):
        rows, self.positives = (np.array(column) for column in zip(*source.call("positives"), strict=True))
        self.others = rows[:, None] - self.positives

    def uneven(self):
        """Whether classes lie too unevenly."""
        return unevenness(self.positives, self.others) > cost.UNEVEN_SHARE


class ShardShares(ClassShares):
    """`ClassShares` of rows whose `ShardCounts` are known."""

    def __init__(self, counts, positive, n_rows, negatives_per_positive):
        self.counts, n_positives, n_others = counts, counts.positives.sum(axis=0), counts.others.sum(axis=0)
        self.n_negatives = ClassLists.wanted(n_positives, n_others, negatives_per_positive)
        super().__init__(positive, n_rows, self.n_negatives / np.maximum(n_others, 1))

    def lengths(self):
        """Visits of every class in a pass, of all shards."""
        return self.counts.positives.sum(axis=0) + self.n_negatives


def shared_out(shares):
    """(n_shards, n_classes) positives, and negatives of each class by those that every shard has."""
    counts = shares.counts
    shared = SharedLists(shares.n_negatives, counts.others.sum(axis=0))
    return counts.positives, np.array([shared.negatives(others) for others in counts.others])


def divided(shares):
    """As `shared_out` where every class is visited in one shard, the longest lists first where there is least to do."""
    positives = shares.counts.positives
    lengths, n_shards = shares.lengths(), len(positives)
    mine, load = np.zeros((n_shards, len(lengths)), np.int64), np.zeros(n_shards)
    for c in np.argsort(-lengths, kind="stable"):
        shard = np.argmin(load)
        mine[shard, c] = 1
        load[shard] += lengths[c]
    return mine * positives.sum(axis=0), mine * shares.n_negatives


def counted_for(visits):
    """What each walker's ``visits``, (n_walkers, n_classes), count for in the mean, and how much longer steps are."""
    visits = visits.astype(float)
    visits[:, visits.sum(axis=0) == 0] = 1.0                        # a class nobody visits
    return visits / visits.sum(axis=0), visits.sum(axis=0)**2 / (visits**2).sum(axis=0)
