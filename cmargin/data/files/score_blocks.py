"""One-vs-rest problems on rows in files: the sums of their chunks, each in memory while it is summed."""

import numpy as np

from cmargin.data.memory.score_blocks import GROUP_SCORES, ScoreBlocks
from cmargin.data.memory.source import MemorySource


class FileScoreBlocks(ScoreBlocks):
    """`ScoreBlocks` over a `FileSource`."""

    def parts(self, group=slice(None)):
        """Rows (lo, hi) and the problems of ``group`` on them, chunk by chunk."""
        for lo, hi in self.source.chunks:
            rows = MemorySource(self.source.take(slice(lo, hi), self.source.dtype))
            weight = None if self.weight is None else self.weight[lo:hi]
            yield lo, hi, ScoreBlocks(rows, self.Y[lo:hi][:, group], weight, self.n_threads)

    def sums(self, W, bias, loss):
        return tuple(map(sum, zip(*(part.sums(W, bias, loss) for _, _, part in self.parts()), strict=True)))

    def margins(self, W, bias):
        per_group = max(1, GROUP_SCORES // self.n_rows)
        for first in range(0, self.n_problems, per_group):
            group = slice(first, min(first + per_group, self.n_problems))
            out = np.empty((group.stop - group.start, self.n_rows))
            for lo, hi, part in self.parts(group):
                for some, margins in part.margins(W[group], bias[group]):
                    out[some, lo:hi] = margins
            yield group, out
