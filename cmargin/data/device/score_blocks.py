"""One-vs-rest problems on rows on a device: sums and margins of all problems together, block by block."""

import numpy as np

from cmargin._core.losses._losses import LOSS_IDS
from cmargin.data.device.arrays import to_host
from cmargin.data.device.losses import LOSSES
from cmargin.data.memory.score_blocks import GROUP_SCORES, ScoreBlocks

NAMES = {number: name for name, number in LOSS_IDS.items()}


def parameters_of(name, level, scale):
    """Of a loss in `LOSSES`, from what `point_loss` takes."""
    return {"margin_pursuit": (level, scale), "smoothed_hinge": (level,)}.get(name, ())


class DeviceScoreBlocks(ScoreBlocks):
    """`ScoreBlocks` over a `DeviceSource`, without its single rows."""

    def __init__(self, source, Y, weight, n_threads):
        super().__init__(source, Y, weight, n_threads)
        at, self.on_device = source.rows.at, source.rows.blocks
        self.row_weight = at.put(np.ones(self.n_rows) if weight is None else np.asarray(weight, float))
        counts, self.label = np.diff(self.Y.indptr), None
        if counts.max(initial=0) <= 1:               # the column a row is positive in, -1: in none
            label = np.full(self.n_rows, -1, np.int64)
            label[counts == 1] = self.Y.indices
            self.label = at.put(label)

    def reduce(self, columns=False):
        self.reduced, self.by_problem = None, self.Y.tocsc()
        return 0.0

    def signs(self, block, group):
        """(n, n_problems) of -1 and 1, of a block of rows and a slice of problems."""
        rows, xp = self.source.rows, self.source.rows.xp
        if self.label is None:
            return rows.at.put(2.0 * self.Y[block][:, group].toarray() - 1.0)
        columns = rows.at.put(np.arange(group.start, group.stop))
        there = self.label[block][:, None] == columns[None, :]
        return xp.where(there, 1.0, -xp.ones(there.shape, dtype=rows.at.wide, device=rows.at.device))

    def margins_of(self, block, W, bias, group):
        """Margins (n, n_problems), signs, and the rows in the precision of sums."""
        X, y = self.source.rows.wide(block), self.signs(block, group)
        return y * (X @ W + bias), y, X

    def sums(self, W, bias, loss):
        rows, (K, m) = self.source.rows, W.shape
        xp, at, name = rows.xp, rows.at, NAMES[loss[0]]
        columns, b = at.put(W.T.astype(float)), at.put(np.asarray(bias, float))
        asked = parameters_of(name, loss[1], at.put(np.asarray(loss[2], float)))

        def packs():
            for block in self.on_device:
                z, y, X = self.margins_of(block, columns, b, slice(0, K))
                found, s = LOSSES[name](xp, z, *asked), self.row_weight[block][:, None]
                R = s * y * found.slope
                yield xp.concat([xp.sum(s * found.value, axis=0), xp.sum(R, axis=0),
                                 xp.reshape(rows.sums_of(X, R), (-1,))])

        totals = rows.folded(packs())
        return totals[:K], totals[2 * K:].reshape(K, m), totals[K:2 * K]

    def margins(self, W, bias):
        at, per_group = self.source.rows.at, max(1, GROUP_SCORES // max(1, self.n_rows))
        for lo in range(0, self.n_problems, per_group):
            group = slice(lo, min(lo + per_group, self.n_problems))
            columns, b = at.put(W[group].T.astype(float)), at.put(np.asarray(bias[group], float))
            out = np.empty((group.stop - lo, self.n_rows))
            for block in self.on_device:
                out[:, block] = to_host(self.margins_of(block, columns, b, group)[0]).T
            yield group, out

    def moment_product(self, v, intercept):
        rows, xp = self.source.rows, self.source.rows.xp
        w = rows.of_columns(v)

        def packs():
            for block in self.on_device:
                X = rows.wide(block)
                r = ((X @ w[0] + w[1] * intercept) * self.row_weight[block])[:, None]
                yield xp.concat([rows.sums_of(X, r)[0, :], xp.sum(r, axis=0) * float(intercept)])

        return rows.folded(packs())

    def rows(self, block):
        self.source.refuse("This solver")

    def row_squares(self):
        self.source.refuse("A stochastic method, which reads one row at a time,")

    def sums_of(self, block, W, bias, loss):
        self.source.refuse("Training on batches of rows")
