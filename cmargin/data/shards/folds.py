"""Folds of a search over shards: of every row its shard knows in which folds it is trained on, and held out."""

import numpy as np

HELD_OUT = 128                 # in a row's mark, beside how often the fold is trained on it


class FoldOfShards:
    """One fold: ``marks`` (n_rows,) of all rows, or a shard's, uint8; ``factors`` (n_classes,) that the weights of
    their rows are multiplied by; ``positives``: of every binary problem the class that is +1."""

    def __init__(self, marks, factors, positives):
        self.marks, self.factors, self.positives = marks, factors, positives

    @classmethod
    def of(cls, train, test, n_rows, factors, positives):
        """``train``, ``test``: places of rows, of which some may be trained on several times."""
        marks = np.bincount(train, minlength=n_rows)
        if marks.max(initial=0) >= HELD_OUT:
            raise ValueError(f"cv trains a fold on a row {marks.max()} times; over several places {HELD_OUT - 1} are "
                             "the most.")
        marks = marks.astype(np.uint8)
        marks[test] |= HELD_OUT
        return cls(marks, factors, positives)

    def part(self, first, n):
        return FoldOfShards(self.marks[first:first + n], self.factors, self.positives)


class FoldLabels:
    """Labels of a shard for the problems of all ``folds``, numbered fold after fold; ``labels``: `Labels`, one a row.
    """

    def __init__(self, labels, folds):
        self.label, self.folds = labels.label, folds
        self.problems = [(fold, positive) for fold in folds for positive in fold.positives]

    def signed_weight(self, k, weights):
        fold, positive = self.problems[k]
        return np.where(self.label == positive, 1.0, -1.0) * weights * (fold.marks % HELD_OUT) \
            * fold.factors[self.label]

    def held_out(self, number):
        """Places of the rows that a fold holds out."""
        return np.flatnonzero(self.folds[number].marks >= HELD_OUT)
