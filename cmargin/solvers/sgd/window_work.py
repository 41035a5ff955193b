"""What is kept of an SLND fit on rows in files, and done with one window of them after the other (`FileWalkers`)."""

import numpy as np

from cmargin._core.util._sampling import shuffle
from cmargin.solvers.sgd.class_lists import ClassLists, SharedLists
from cmargin.solvers.sgd.class_passes import ClassPasses
from cmargin.solvers.sgd.softmax_passes import SoftmaxPasses


class SoftmaxWindows:
    """Batches of the multinomial risk, in a random order of the rows of a window.

    ``truth`` (n_rows,) int64 and ``row_weight`` (n_rows,) float64, or None, are of all rows.
    """

    def __init__(self, truth, row_weight, n_classes):
        self.truth, self.row_weight, self.n_classes = truth, row_weight, n_classes

    def share_out(self, share, part):
        """``share``: rows of a batch, rows held out, and the stream of the order, which goes on."""
        self.batch, held, self.stream = share
        self.trained_on = np.ones(len(self.truth), bool)
        self.trained_on[held] = False

    def passes(self, kind, source, rows, order, inverse, Z):
        """``kind`` of `SoftmaxPasses` over rows ``order`` of a few in memory, whose places among all are ``rows``."""
        there = rows[order]
        weight = None if self.row_weight is None else self.row_weight[there]
        return kind(source, inverse, Z, order, self.truth[there], weight, self.n_classes, self.batch)

    def walk(self, window, rows, whitened, inverse, weights, steps):
        """Sums over the rows as their batches were met: loss, errors, weight."""
        order = np.flatnonzero(self.trained_on[rows])
        if not len(order):
            return np.zeros(3)
        shuffle(order, self.stream)
        passes = self.passes(SoftmaxPasses, window, rows, order, inverse, whitened(order))
        starts = np.arange(0, len(order), self.batch)
        passes.run(weights, starts, np.full(len(starts), steps.step), steps.bias_rate, len(order))
        return np.array(passes.met(len(order)))


class ClassListWindows:
    """A class's visits to the positives of a window, and to its share of negatives by the rows of other classes there.

    ``lists``, ``Y``, the (n_rows, n_classes) sparse indicator of the positives, and ``row_weight`` are of all rows.
    """

    def __init__(self, lists, Y, row_weight, loss):
        self.lists, self.Y, self.row_weight, self.loss = lists, Y.tocsr(), row_weight, loss

    def share_out(self, share, part):
        """Before every pass; ``share``: the streams of all classes, which go on."""
        self.streams = share
        self.shared = SharedLists(self.lists.n_negatives, self.lists.n_rows - self.lists.n_positives)

    def passes(self, source, rows, lists):
        """Over a few rows in memory, whose places among all are ``rows``."""
        weight = None if self.row_weight is None else self.row_weight[rows]
        return ClassPasses(source, lists, weight, self.loss, self.streams)

    def walk(self, window, rows, whitened, inverse, weights, steps):
        """Sums as of `ClassPasses`."""
        passes = self.passes(window, rows, ClassLists.of_part(self.Y[rows], self.shared))
        if weights.base is not None:
            return passes.refreshed(inverse, weights, steps.step, steps.bias_rate)
        return passes.plain(whitened(), inverse, weights, steps.step, steps.bias_rate)
