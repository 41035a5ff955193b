"""The labels of one-vs-rest problems, as codes of -1 and +1 that are made when they are asked for."""

import numpy as np
import scipy.sparse as sp

from cmargin._estimators.validation import indicator_of


class Labels:
    """What y says: the classes, and a column of +1 and -1 for every binary problem, made when asked for."""

    def __init__(self, classes, label=None, indicator=None):
        """``label``: (n,) places in ``classes``; ``indicator``: (n_labels, n) of -1 and 1 instead."""
        self.classes, self.label, self.indicator = classes, label, indicator
        self.multilabel = indicator is not None

    def __len__(self):
        if self.multilabel:
            return len(self.indicator)
        return len(self.classes) if len(self.classes) > 2 else 1

    def of_problem(self, c):
        """The class that is +1 in problem c."""
        return c if len(self) > 1 or self.multilabel else 1

    def __getitem__(self, c):
        if self.multilabel:
            return self.indicator[c].copy()
        return np.where(self.label == self.of_problem(c), 1.0, -1.0)

    def code(self, c, weights):
        """Weights, None for ones, with the signs of problem c."""
        code = self[c]
        if weights is not None:
            code *= weights
        return code

    def sample(self, rows):
        """(n_problems, len(rows))."""
        if self.multilabel:
            return self.indicator[:, rows]
        wanted = np.array([self.of_problem(c) for c in range(len(self))])
        return np.where(self.label[rows] == wanted[:, None], 1.0, -1.0)

    def take(self, rows):
        both = (self.label, self.indicator)
        return Labels(self.classes, *(None if said is None else said[..., rows] for said in both))

    @staticmethod
    def joined(parts):
        """Of rows one behind the other."""
        both = zip(*((one.label, one.indicator) for one in parts), strict=True)
        return Labels(parts[0].classes, *(None if said[0] is None else np.concatenate(said, axis=-1) for said in both))

    def columns(self):
        """(n, n_problems) CSC indicator of the positives."""
        return sp.csc_matrix((self.indicator > 0).T, dtype=np.int8) if self.multilabel else \
            indicator_of(self.label, len(self.classes))

    def order(self):
        """Rows, those of a class together."""
        if self.multilabel:
            return np.arange(self.indicator.shape[1])
        return np.argsort(self.label, kind="stable")
