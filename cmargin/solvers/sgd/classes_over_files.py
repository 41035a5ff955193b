"""SLND, one-vs-rest, where rows stay in files: every class visits its part of one window of rows after the other.

A class visits the positives that a window has, and draws of its negatives the window's share by the rows of other
classes there; so after a pass it has visited what it visits in memory, in another order. H and the step are chosen as
in memory, from copies of the same rows. The bits are those of any number of threads, and of any way to lay the rows
out in files whose rows can be read without their neighbours (all but Parquet).
"""

import numpy as np

from cmargin.solvers.sgd.class_lists import ClassLists, SharedLists
from cmargin.solvers.sgd.class_passes import ClassPasses
from cmargin.solvers.sgd.low_rank_newton import Run
from cmargin.solvers.sgd.step_size import by_place


def kinds_of(lists):
    """What a window should have of everything: (n_rows,) the rarest class of a row, or the number of classes."""
    found = np.full(lists.n_rows, lists.n_classes)
    for c in np.argsort(-lists.n_positives, kind="stable"):
        found[lists.rows_of(c)] = c
    return found


class ClassesOverFiles(Run):
    """`Run` on `FileStochasticRows`.

    Parameters
    ----------
    as of `Run`
    Y : (n_rows, n_classes) indicator of the positives
    """

    made_again = (*Run.made_again, "windows", "Y")

    def __init__(self, home, lists, row_weight, settings, entropy, start, Y):
        super().__init__(home, lists, row_weight, settings, entropy, start)
        self.n_read, self.Y = 0, Y.tocsr()                   # passes over the files
        self.windows = home.windows(kinds_of(lists), lists.n_classes + 1, entropy)

    def _whiten(self):
        """Rows are whitened as they are read."""

    def _passes(self, rows, home, lists):
        """Over a home in memory; ``rows``: the place of each of its rows among all."""
        weight = None if self.row_weight is None else self.row_weight[rows]
        return ClassPasses(home, lists, weight, self.settings.loss, self.fit.streams)

    def _trial(self, _, __, drawn, rng):
        rows, drawn = by_place(drawn)
        home = self.home.few(rows)
        self.fit.reads += len(rows) / self.home.n_rows
        return super()._trial(self._passes(rows, home, self.lists), home.whiten(self.fit.inverse), drawn, rng)

    def _one_pass(self, step):
        self.n_read += 1
        inverse, weights, rate = self.fit.inverse, self.weights, self._bias_rate()
        shared = SharedLists(self.lists.n_negatives, self.lists.n_rows - self.lists.n_positives)
        sums = np.zeros((self.lists.n_classes, 3))
        for rows, X in self.windows.of_pass(self.n_read):
            window = self.home.window(X)
            passes = self._passes(rows, window, ClassLists.of_part(self.Y[rows], shared))
            if weights.base is not None:
                sums += passes.refreshed(inverse, weights, step, rate)
            else:
                sums += passes.plain(self.home.whitened(window, inverse), inverse, weights, step, rate)
        return sums

    def _read_in_a_pass(self):
        return 1.0
