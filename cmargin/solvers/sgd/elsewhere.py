"""SLND on the multinomial risk where rows are not in memory: what is chosen is chosen on copies of a few of them.

H, rank and step come from the rows that one machine would have taken, by the same steps.
"""

import numpy as np

from cmargin.solvers.sgd.multinomial import MultinomialRun
from cmargin.solvers.sgd.multinomial_choice import batch_size, trial_rows


class MultinomialElsewhere(MultinomialRun):
    """`MultinomialRun` on rows that have ``few``."""

    in_one_memory = False

    def _trial(self, home, truth, row_weight, order, n_held):
        """On rows in memory: those that a trial on all rows takes."""
        self.trial_batch, n_train = batch_size(home.n_rows, home.sparse), len(order) - n_held
        rows = np.concatenate([order[:min(trial_rows(self.n_classes), n_train)], order[n_train:]])
        weight = None if row_weight is None else row_weight[rows]
        trial = super()._trial(home.few(rows), truth[rows], weight, np.arange(len(rows)), n_held)
        trial.n_all = n_train
        return trial

    def _whiten_few(self):
        return self.home.few(self.order).whiten(self.fit.inverse, np.arange(len(self.order)))

    def _choose(self, inverses, n_held, step):
        before, n = self.fit.reads, self.home.n_rows
        found = super()._choose(inverses, n_held, step)
        self.fit.reads = before + (self.fit.reads - before) * min(n, trial_rows(self.n_classes) + n_held) / n
        return found
