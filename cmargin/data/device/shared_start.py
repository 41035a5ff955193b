"""The cheap linear model of all classes where rows live on a device: made from a sample in memory, judged there."""

from cmargin.data.memory.shared_start import SharedStart


class DeviceStart(SharedStart):
    """`SharedStart` over a `DeviceSource`."""

    def evaluate(self, out_of_time):
        for c, w in enumerate(self.W):
            if out_of_time():
                return
            rows = self.source.row_pass(self.labels.signed_weight(c, self.weights), intercept=self.intercept,
                                        n_threads=1)
            rows.set_loss(self.loss)
            self.risk[c] = rows.objective(w)[0] / self.source.n_rows
