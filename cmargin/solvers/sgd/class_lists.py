"""Which rows each one-vs-rest class visits in a pass (SLND section 3.2), and the shares that follow from it."""

from dataclasses import dataclass, replace

import numpy as np


@dataclass
class ClassLists:
    """Positives of every class, and how many negatives it draws a pass."""

    positives: np.ndarray          # (nnz,) int64, rows of class c at ``starts[c]:starts[c + 1]``, ascending
    starts: np.ndarray             # (n_classes + 1,) int64
    n_negatives: np.ndarray        # (n_classes,) int64
    n_rows: int

    @classmethod
    def from_indicator(cls, Y, negatives_per_positive):
        """From ``Y``, an (n_rows, n_classes) CSC indicator of the positives."""
        Y = Y.tocsc()
        Y.sort_indices()
        counts = np.diff(Y.indptr).astype(np.int64)
        wanted = cls.wanted(counts, Y.shape[0] - counts, negatives_per_positive)
        return cls(Y.indices.astype(np.int64), Y.indptr.astype(np.int64), wanted, Y.shape[0])

    @classmethod
    def of_part(cls, Y, shared):
        """Of the rows of one shard, by the `SharedLists` of all shards."""
        lists = cls.from_indicator(Y, None)
        return replace(lists, n_negatives=shared.negatives(lists.n_negatives))

    @staticmethod
    def wanted(positives, others, negatives_per_positive):
        """(n_classes,) negatives a pass, of classes with so many positives and other rows."""
        if negatives_per_positive is None:
            return others
        asked = np.maximum(np.rint(float(negatives_per_positive) * positives), 1)
        wanted = np.minimum(others, asked).astype(np.int64)              # the minimum first: 1e20 is no int64
        wanted[positives == 0] = 0
        return wanted

    @property
    def n_classes(self):
        return len(self.n_negatives)

    @property
    def n_positives(self):
        return np.diff(self.starts)

    @property
    def lengths(self):
        """(n_classes,) visits of every class in one pass."""
        return self.n_positives + self.n_negatives

    def rows_of(self, c):
        """Positives of class ``c``."""
        return self.positives[self.starts[c] : self.starts[c + 1]]

    def shares(self, weight):
        """(n_classes,) arrays: weight of all rows, of the positives of every class, and expected weight of a pass."""
        if weight is None:
            positive, total = self.n_positives.astype(float), np.full(self.n_classes, float(self.n_rows))
        else:
            sums = np.concatenate([[0.0], np.cumsum(weight[self.positives])])
            positive = sums[self.starts[1:]] - sums[self.starts[:-1]]
            total = np.full(self.n_classes, weight.sum())
        others = np.maximum(self.n_rows - self.n_positives, 1)
        return total, positive, positive + (total - positive) * self.n_negatives / others


class SharedLists:
    """Every class's list dealt out to shards, one after the other: each has its own positives, and of all negatives
    that are drawn its share by the other rows it has."""

    def __init__(self, n_negatives, n_others):
        self.share, self.passed = n_negatives / np.maximum(n_others, 1), np.zeros(len(n_negatives), np.int64)

    def negatives(self, others):
        """(n_classes,) negatives that the next shard draws, which has so many ``others``."""
        before = np.rint(self.passed * self.share)
        self.passed = self.passed + others
        return np.minimum(np.rint(self.passed * self.share) - before, others).astype(np.int64)


class ClassShares:
    """Of rows in shards: what each class weighs among so many rows of mean weight 1, and the share of its
    other rows that is drawn in a pass."""

    def __init__(self, positive, n_rows, drawn=1.0):
        self.positive, self.n_rows, self.n_classes, self.drawn = positive, n_rows, len(positive), drawn

    def shares(self, weight):
        """As of `ClassLists`."""
        total = np.full(self.n_classes, float(self.n_rows))
        return total, self.positive, self.positive + (total - self.positive) * self.drawn
