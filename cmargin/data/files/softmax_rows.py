"""The multinomial objective over rows in files: scores of all rows are in memory, the rows come chunk by chunk."""

import numpy as np

from cmargin.data.memory.softmax_rows import SoftmaxRowPass
from cmargin.data.memory.source import MemorySource
from cmargin.data.softmax_sums import INTERCEPTS, PRODUCTS, SoftmaxSums


class ChunkQuestion:
    """``task(chunk, part)`` of every chunk of a read, which holds the rows ``part``; ``answer``: the sum."""

    wanted, expected = True, 0

    def __init__(self, task):
        self.task, self.answer = task, 0.0

    def begin(self):
        pass

    def over(self, chunk):
        self.answer = self.answer + self.task(chunk, slice(chunk.first, chunk.first + chunk.X.shape[0]))

    def end(self):
        pass


class FileSoftmaxPass(SoftmaxRowPass):
    """`SoftmaxRowPass` over a `FileSource`."""

    @property
    def between_slices(self):
        return self.source.between_chunks        # heard while a disk is waited for, too

    @between_slices.setter
    def between_slices(self, heard):
        self.source.between_chunks = heard

    def rows_of_kernel(self):
        return self.source.no_rows

    def read(self, task):
        return self.source.answer(ChunkQuestion(task))

    def run(self, what, V, scores, probs):
        if what == INTERCEPTS:
            return super().run(what, V, scores, probs)

        def task(chunk, part):
            rows = SoftmaxRowPass(MemorySource(chunk.X), self.labels[part], self.weight[part], self.n_classes,
                                  self.intercept, self.n_threads)
            rows.between_slices = self.between_slices
            return rows.run(what, V, scores[part], probs[part] if what != PRODUCTS else probs)

        return self.read(task)

    def sums_by_class(self):
        return self.read(lambda chunk, part: np.asarray(chunk.X.T @ self.indicator(part), float).ravel())

    go, go_on = SoftmaxSums.go, SoftmaxSums.go_on

    def in_single_precision(self):
        return self.dense_copy_of(slice(None))
