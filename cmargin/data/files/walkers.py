"""The walker over rows in files: from window to window, whose rows are whitened as they are read."""

from functools import partial

from cmargin.data.files.windows import Windows


class FileWalkers:
    """`Walkers` on rows in files: one walker, whose shards are windows, so that there is no mean to be taken.

    Every window is to have each of the ``n_kinds`` ``kinds`` of rows, (n_rows,) int64, in its share. ``work`` has
    ``share_out(share, part)``, and ``walk(window, rows, whitened, inverse, weights, steps)``: sums over the steps
    through a window, `StochasticRows` of which ``rows`` are the places among all, and ``whitened(order=None)`` its rows
    in that order, until the next window is taken. Steps are written to ``weights``.
    """

    def __init__(self, source, kinds, n_kinds, seed, work):
        self.source, self.work, self.windows = source, work, Windows(source.source, kinds, n_kinds, seed)
        self.rows, self.of_shard = [source.n_rows], [0]

    def share_out(self, shares, parts):
        self.work.share_out(shares[0], parts[0])

    def begin(self, inverse, weights):
        self.inverse = inverse

    def walk(self, weights, steps):
        """All windows of the pass."""
        met = 0.0
        for rows, X in self.windows.of_pass(steps.number):
            window = self.source.window(X)
            whitened = partial(self.source.whitened, window, self.inverse)
            met = met + self.work.walk(window, rows, whitened, self.inverse, weights, steps)
        return weights, met
