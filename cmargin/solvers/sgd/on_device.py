"""SLND on the multinomial risk where rows live on a device: batches are products there."""

from cmargin.data.device.softmax_passes import DevicePasses
from cmargin.solvers.sgd.elsewhere import MultinomialElsewhere

MOST, BATCHES = 1024, 256      # rows of a batch: as many, where a pass still has so many batches (doc/lab-notebook)


class MultinomialOnDevice(MultinomialElsewhere):
    """`MultinomialRun` on `DeviceStochasticRows`."""

    passes_of, in_one_memory = DevicePasses, True

    def _batch(self):
        """A batch costs the launches of its operations, whatever its rows."""
        size = super()._batch()
        while size < MOST and self.home.n_rows >= 2 * size * BATCHES:
            size *= 2
        return size
