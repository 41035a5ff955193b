"""SLND on the multinomial risk where rows live on a device: batches are products there."""

import numpy as np

from cmargin.homes.device.softmax_passes import DevicePasses
from cmargin.solvers.low_rank.elsewhere import MultinomialElsewhere
from cmargin.solvers.low_rank.softmax_passes import SoftmaxPasses

MOST, BATCHES = 1024, 256      # rows of a batch: as many, where a pass still has so many batches (doc/decisions.md)


class MultinomialOnDevice(MultinomialElsewhere):
    """`MultinomialRun` on `DeviceStochasticRows`."""

    passes_of, in_one_memory = DevicePasses, True

    def _batch(self):
        """A batch costs the launches of its operations, whatever its rows."""
        size = super()._batch()
        while size < MOST and self.home.n_rows >= 2 * size * BATCHES:
            size *= 2
        return size

    def _passes_in_memory(self):
        """Over a copy of the rows: the penalised end is for fits of few numbers, of no use to a device."""
        rows = self.home.few(self.order)
        weight = None if self.row_weight is None else self.row_weight[self.order]
        return SoftmaxPasses(rows, self.fit.inverse, rows.whiten(self.fit.inverse), np.arange(len(self.order)),
                             self.truth[self.order], weight, self.n_classes, self.passes_over.batch)
