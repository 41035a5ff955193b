"""SLND on rows in files or on a device: what is chosen is chosen on copies of a few rows, by the steps of memory.

In files a pass reads all rows once, in windows of rows from all over the files, the next read while one is stepped
through. The rows held out stay in memory. After a one-vs-rest pass a class has visited what it visits in memory, in
another order. The bits are those of any number of threads, and of any way to lay the rows out in files whose rows can
be read without their neighbours (all but Parquet).

On a device batches are products there.
"""

import numpy as np

from cmargin.data.device.softmax_passes import DevicePasses
from cmargin.solvers import cost
from cmargin.solvers.sgd.low_rank_newton import Run
from cmargin.solvers.sgd.multinomial import MultinomialRun
from cmargin.solvers.sgd.multinomial_choice import batch_size, trial_rows
from cmargin.solvers.sgd.softmax_passes import SoftmaxPasses
from cmargin.solvers.sgd.step_size import by_place
from cmargin.solvers.sgd.window_work import ClassListWindows, SoftmaxWindows
from cmargin.solvers.sgd.work import Steps


class MultinomialRemote(MultinomialRun):
    """`MultinomialRun` on rows that have ``few``."""

    may_walk = in_one_memory = False

    def _trial(self, source, truth, row_weight, order, n_held):
        """On rows in memory: those that a trial on all rows takes."""
        self.trial_batch, n_train = batch_size(source.n_rows, source.sparse), len(order) - n_held
        rows = np.concatenate([order[:min(trial_rows(self.n_classes), n_train)], order[n_train:]])
        weight = None if row_weight is None else row_weight[rows]
        trial = super()._trial(source.few(rows), truth[rows], weight, np.arange(len(rows)), n_held)
        trial.n_all = n_train
        return trial

    def _whiten_few(self):
        return self.source.few(self.order).whiten(self.fit.inverse, np.arange(len(self.order)))

    def _choose(self, problem, inverses, n_held):
        before, n = self.fit.reads, self.source.n_rows
        found = super()._choose(problem, inverses, n_held)
        self.fit.reads = before + (self.fit.reads - before) * min(n, trial_rows(self.n_classes) + n_held) / n
        return found


class MultinomialOnDevice(MultinomialRemote):
    """`MultinomialRun` on `DeviceStochasticRows`."""

    passes_of, in_one_memory = DevicePasses, True

    def _batch(self):
        """A batch costs the launches of its operations, whatever its rows."""
        size = super()._batch()
        largest, n_batches = cost.DEVICE_BATCH
        while size < largest and self.source.n_rows >= 2 * size * n_batches:
            size *= 2
        return size


class HeldOutPasses(SoftmaxPasses):
    """Passes over the rows held out alone, whatever their places among all."""

    def scores(self, weights, held, last, mean=None):
        n = len(self.order)
        return super().scores(weights, np.arange(0, n, self.batch), n, mean)

    def weight_of(self, first, last):
        return super().weight_of(0, last - first)


class MultinomialOverFiles(MultinomialRemote):
    """`MultinomialRun` on `FileStochasticRows`."""

    made_again = (*MultinomialRemote.made_again, "walkers", "work")
    n_read = 0                                               # passes over the files

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self.work = SoftmaxWindows(self.truth, self.row_weight, self.n_classes)
        self.walkers = self.source.walkers(self.truth, self.n_classes, self.entropy, self.work)

    def _whiten(self, out=None):
        """Rows are whitened as they are read."""

    def _open_passes(self):
        held, batch = self.order[self.source.n_rows - self.n_held:], self._batch()
        self.walkers.share_out([(batch, held, self.stream)], [1.0])
        self.walkers.begin(self.fit.inverse, self.weights)
        self.passes_over = None
        if len(held):
            few = self.source.few(held)
            self.passes_over = self.work.passes(HeldOutPasses, few, held, np.arange(len(held)), self.fit.inverse,
                                                few.whiten(self.fit.inverse))
        return batch

    def _one_pass(self, step):
        n_train = self.source.n_rows - self.n_held
        self.fit.reads += n_train / self.source.n_rows
        self.n_read += 1
        _, sums = self.walkers.walk(self.weights, Steps(self.n_read, 0, 1, step, self._bias_rate()))
        return (*sums, n_train)


def kinds_of(lists):
    """What a window should have of everything: (n_rows,) the rarest class of a row, or the number of classes."""
    found = np.full(lists.n_rows, lists.n_classes)
    for c in np.argsort(-lists.n_positives, kind="stable"):
        found[lists.rows_of(c)] = c
    return found


class ClassesOverFiles(Run):
    """`Run` on `FileStochasticRows`; ``Y``: (n_rows, n_classes) indicator of the positives."""

    made_again = (*Run.made_again, "walkers", "work")
    n_read = 0                                               # passes over the files

    def __init__(self, source, lists, row_weight, settings, entropy, start, Y):
        super().__init__(source, lists, row_weight, settings, entropy, start)
        self.work = ClassListWindows(lists, Y, row_weight, settings.loss)
        self.walkers = source.walkers(kinds_of(lists), lists.n_classes + 1, entropy, self.work)

    def _whiten(self):
        """Rows are whitened as they are read."""

    def _share_out(self):
        self.walkers.share_out([self.fit.streams], [1.0])

    def _trial(self, _, __, drawn, rng):
        rows, drawn = by_place(drawn)
        source = self.source.few(rows)
        self.fit.reads += len(rows) / self.source.n_rows
        self._share_out()
        return super()._trial(self.work.passes(source, rows, self.lists), source.whiten(self.fit.inverse), drawn, rng)

    def _one_pass(self, step):
        self.n_read += 1
        self._share_out()
        self.walkers.begin(self.fit.inverse, self.weights)
        return self.walkers.walk(self.weights, Steps(self.n_read, 0, 1, step, self._bias_rate()))[1]

    def _read_in_a_pass(self):
        return 1.0
