"""SLND on the multinomial risk where rows stay in files: batches come out of one window of rows after the other.

A pass reads all rows once, in windows of rows from all over the files (`cmargin.data.files.windows`), the next read
while one is stepped through: its rows are put into a random order, whitened anew in every pass, and go by the kernels
of rows in memory. The rows held out stay in memory. The bits are those of any number of threads, and of any way to lay
the rows out in files whose rows can be read without their neighbours (all but Parquet).
"""

import numpy as np

from cmargin._core.util._arrays import total
from cmargin._core.util._sampling import shuffle
from cmargin.solvers.sgd.elsewhere import MultinomialElsewhere
from cmargin.solvers.sgd.softmax_passes import SoftmaxPasses


class FilePasses:
    """`SoftmaxPasses` over windows, and over the rows held out.

    Parameters
    ----------
    home : FileStochasticRows
    inverse : LowRankInverse
    windows : Windows
    truth, row_weight : of all rows
    held : (n_held,) int64 array
        Rows not stepped through.
    n_classes, batch : int
    """

    def __init__(self, home, inverse, windows, truth, row_weight, held, n_classes, batch):
        self.home, self.inverse, self.windows, self.batch = home, inverse, windows, batch
        self.truth, self.row_weight, self.n_classes = truth, row_weight, n_classes
        self.trained_on = np.ones(len(truth), bool)
        self.trained_on[held] = False
        few = home.few(held)
        self.held = self._passes(few, held, np.arange(len(held)), few.whiten(inverse)) if len(held) else None

    def _passes(self, home, rows, order, Z):
        """Over the rows ``order`` of a home in memory; ``rows``: the place of each of its rows among all."""
        rows = rows[order]
        weight = None if self.row_weight is None else self.row_weight[rows]
        return SoftmaxPasses(home, self.inverse, Z, order, self.truth[rows], weight, self.n_classes, self.batch)

    def run(self, weights, number, step, bias_rate, stream):
        """Pass ``number``; sums over the rows as their batches were met: loss, errors, weight."""
        sums = np.zeros(3)
        for rows, X in self.windows.of_pass(number):
            order = np.flatnonzero(self.trained_on[rows])
            if not len(order):
                continue
            shuffle(order, stream)
            window = self.home.window(X)
            passes = self._passes(window, rows, order, self.home.whitened(window, self.inverse, order))
            starts = np.arange(0, len(order), self.batch)
            passes.run(weights, starts, np.full(len(starts), step), bias_rate, len(order))
            sums += passes.met(len(order))
        return sums

    def scores(self, weights, held, last, mean=None):
        """Of the rows held out."""
        n = len(self.held.order)
        return self.held.scores(weights, np.arange(0, n, self.batch), n, mean)

    def weight_of(self, first, last):
        """Of the rows held out."""
        return total(self.held.weight) if len(self.held.weight) else float(last - first)


class MultinomialOverFiles(MultinomialElsewhere):
    """`MultinomialRun` on `FileStochasticRows`."""

    made_again = (*MultinomialElsewhere.made_again, "windows")

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self.n_read = 0                                      # passes over the files
        self.windows = self.home.windows(self.truth, self.n_classes, self.entropy)

    def _whiten(self, out=None):
        """Rows are whitened as they are read."""

    def _open_passes(self):
        held, batch = self.order[self.home.n_rows - self.n_held:], self._batch()
        self.passes_over = FilePasses(self.home, self.fit.inverse, self.windows, self.truth, self.row_weight, held,
                                      self.n_classes, batch)
        return batch

    def _one_pass(self, step):
        n_train = self.home.n_rows - self.n_held
        self.fit.reads += n_train / self.home.n_rows
        self.n_read += 1
        sums = self.passes_over.run(self.weights, self.n_read, step, self._bias_rate(), self.stream)
        return (*sums, n_train)
