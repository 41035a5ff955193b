"""Rows in memory read block by block for many classes at once: scores, sums of losses and gradients.

Blocks are fixed by the shape of the data and folded in order, and BLAS is held to one thread, so that the bits do not
depend on the number of threads. Blocks are read as float64 whatever the data; nothing of size rows x classes is made.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np

from cmargin._core.losses._losses import LOSS_IDS, mean_losses
from cmargin._core.rows._score_blocks import ProblemRows
from cmargin._core.util._arrays import transposed, zeros
from cmargin._runtime.aligned import contiguous
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data.columns import columns_of
from cmargin.data.memory.shared_start import ridge_of_sample, some_places

BLOCK_NUMBERS = 1 << 19      # 4 MB of float64: a block and its scores stay in cache
GROUP_SCORES = 1 << 22       # scores of all rows held at a time: 32 MB
TILE_NUMBERS = 1 << 16       # 512 KB of float64: a tile of rows and its scores
TILE_ROWS, LEAST_TILE = 256, 16
CALL_NUMBERS = 4e9           # multiplications between two checks for Ctrl-C: half a second on one slow core


class ScoreBlocks:
    """Rows with the one-vs-rest problems posed on them, of a `MemorySource` that is never copied whole.

    ``Y`` (n_rows, n_problems): sparse indicator of the positives; ``weight`` (n_rows,) float64 of mean 1, or None for
    ones.
    """

    def __init__(self, source, Y, weight, n_threads):
        self.source, self.Y, self.weight = source, Y.tocsr(), weight
        self.starts, self.labels = self.Y.indptr.astype(np.int64), self.Y.indices.astype(np.int64)
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.n_problems = Y.shape[1]
        self.n_threads = n_threads
        # a sparse block pays for a gradient of n_features x n_problems, however few its rows
        width = source.entries // max(1, self.n_rows)
        step = max(16, BLOCK_NUMBERS // max(1, width + self.n_problems))
        self.blocks = [slice(lo, min(lo + step, self.n_rows)) for lo in range(0, self.n_rows, step)]
        self.bounds = np.append(np.arange(0, self.n_rows, step), self.n_rows).astype(np.int64)

    def reduce(self, columns=False):
        with single_threaded_blas():
            self.reduced = self.source.reduced() if columns else None
        self.by_problem = self.Y.tocsc()
        return 0.0 if self.reduced is None else 1.0

    def row_pass(self, c, intercept, n_threads, w=None):
        """`RowPass` over the rows of problem ``c``, and weights ``w``, intercept last, in its columns."""
        signed_weight = np.full(self.n_rows, -1.0)
        signed_weight[self.by_problem.indices[self.by_problem.indptr[c]:self.by_problem.indptr[c + 1]]] = 1.0
        signed_weight = signed_weight if self.weight is None else signed_weight * self.weight
        if self.reduced is not None:
            with single_threaded_blas():
                start = self.reduced.into(w, intercept) if w is not None else None
            return self.reduced.rows(signed_weight, intercept, n_threads), start
        rows = self.source.row_pass(signed_weight, intercept=intercept, n_threads=n_threads)
        return rows, (w[:rows.n_columns] if w is not None else None)

    def out_of(self, w, intercept):
        with single_threaded_blas():
            return w if self.reduced is None else self.reduced.out_of(w, intercept)

    def units(self, columns, intercept):
        if columns is None or self.reduced is None:
            return columns
        return columns_of(self.reduced.L, intercept, np.float64)

    def ridge_start(self, intercept, l2):
        counts = np.diff(self.Y.indptr)
        if self.n_problems == 1:
            order = np.argsort(counts, kind="stable")
        elif len(counts) and counts.min() == counts.max() == 1:
            order = np.argsort(self.Y.indices, kind="stable")
        else:                                    # rows of several labels, or of none
            order = np.arange(self.n_rows)
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            W = ridge_of_sample(self.source, order, self.n_problems, lambda rows: 2.0 * self.Y[rows].toarray().T - 1.0,
                                self.weight, intercept, l2)
        return W[:, :self.n_features], (W[:, -1] if intercept else np.zeros(len(W)))

    def some_rows(self, size):
        places = some_places(self.n_rows, size)
        weight = np.ones(len(places)) if self.weight is None else self.weight[places]
        return self.source.take(places, np.float64), 2.0 * self.Y[places].toarray().T - 1.0, weight

    def rows(self, block):
        """Rows of one block, float64; dense ones in C order, so that the bits do not depend on the layout of X."""
        return self.only_block if len(self.blocks) == 1 else self.source.take(block, np.float64)

    @cached_property
    def only_block(self):
        """Kept, since it is small: a copy wherever X is no such array itself, which a pass would make twice."""
        return self.source.take(self.blocks[0], np.float64)

    def map(self, function):
        """``function(block)`` of every block, in block order; the next ones are computed meanwhile."""
        if len(self.blocks) == 1:
            with single_threaded_blas():
                return [function(self.blocks[0])]
        return self._map(function)

    def _map(self, function):
        with single_threaded_blas():
            if self.n_threads == 1:
                yield from map(function, self.blocks)
                return
            function = single_threaded_blas()(function)     # some BLAS libraries count for each thread
            with ThreadPoolExecutor(self.n_threads) as pool:
                ahead = 2 * self.n_threads       # so many results wait at most
                waiting = [pool.submit(function, block) for block in self.blocks[:ahead]]
                for k in range(len(self.blocks)):
                    yield waiting.pop(0).result()
                    if k + ahead < len(self.blocks):
                        waiting.append(pool.submit(function, self.blocks[k + ahead]))

    @cached_property
    def kernel(self):
        """The compiled sums, with workspace for every thread."""
        d, K, sparse = self.n_features, self.n_problems, self.source.sparse
        tile = TILE_ROWS if sparse else max(LEAST_TILE, min(TILE_ROWS, TILE_NUMBERS // (d + K)))
        weight = np.zeros(0) if self.weight is None else contiguous(self.weight, float)
        sizes = (0 if sparse else tile * d, tile * K, (2 + d) * K)
        room = [np.empty((self.at_once, size)) for size in sizes]
        return ProblemRows(self.source.rows, self.starts, self.labels, weight, K, tile, *room)

    @property
    def at_once(self):
        return min(self.n_threads, len(self.blocks))

    def sums(self, W, bias, loss):
        """Sums over all rows at W (n_problems, n_features) and bias (n_problems,), float64, the problems apart.

        Returns sum s_i F(z_i), (n_problems,); sum s_i y_i F'(z_i) x_i, (n_problems, n_features); and what the latter is
        for the biases. ``loss``: (id, level, (n_problems,) scales), as `point_loss` in `_core/losses/_losses.pxd` takes
        them.
        """
        return self._sums_over(self.bounds, 1, W, bias, loss)

    def sums_of(self, block, W, bias, loss):
        return self._sums_over(np.array([block.start, block.stop], np.int64), block.step or 1, W, bias, loss)

    def _sums_over(self, bounds, every, W, bias, loss):
        columns, bias = transposed(W), np.ascontiguousarray(bias)
        value, slope, gradient = zeros(len(W)), zeros(len(W)), zeros(columns.shape)
        number, level, scale = loss
        with single_threaded_blas():
            for lo in range(0, len(bounds) - 1, self.at_once):
                self.kernel.sums(columns, bias, number, level, scale, bounds[lo:lo + self.at_once + 1], every, value,
                                 slope, gradient)
        return value, gradient.T, slope

    def margins(self, W, bias):
        """Yield (slice of problems, their margins (n_problems, n_rows)), in groups that are read together."""
        per_group = max(1, GROUP_SCORES // max(1, self.n_rows))
        per_call = max(self.at_once, int(CALL_NUMBERS / (2.0 * BLOCK_NUMBERS * min(per_group, self.n_problems))))
        for lo in range(0, self.n_problems, per_group):
            group = slice(lo, min(lo + per_group, self.n_problems))
            out = np.empty((group.stop - group.start, self.n_rows))
            columns, at = transposed(W[group]), np.ascontiguousarray(bias[group])
            with single_threaded_blas():
                for first in range(0, len(self.blocks), per_call):
                    self.kernel.margins(columns, at, lo, self.bounds[first:first + per_call + 1], self.at_once, out)
            yield group, out

    def row_squares(self):
        out = np.empty(self.n_rows)
        for block in self.blocks:
            X = self.rows(block)
            out[block] = np.asarray(X.multiply(X).sum(axis=1)).ravel() if self.source.sparse else \
                np.einsum("ij,ij->i", X, X)
        return out

    def largest_curvature(self, intercept, n_products=8):
        """Largest eigenvalue of (1/n) sum s_i x_i x_i', from below, by power iteration from a fixed start."""
        v = np.random.default_rng(7).standard_normal(self.n_features + 1)
        v[-1] *= intercept
        found = 0.0
        for _ in range(n_products):
            norm = np.linalg.norm(v)
            if norm == 0:
                break
            v = self.moment_product(v / norm, intercept) / self.n_rows
            found = np.linalg.norm(v)
        return found

    def moment_product(self, v, intercept):
        """sum s_i x_i <x_i, v>, (n_features + 1,), the last of the column of ones."""
        def one(block):
            X = self.rows(block)
            r = X @ v[:-1] + v[-1] * intercept
            r = r if self.weight is None else r * self.weight[block]
            return np.append(X.T @ r, r.sum() * intercept)

        return sum(self.map(one), np.zeros(len(v)))

    def mean_losses(self, W, bias, loss, level, scale):
        """Yield slices of problems and their mean losses, row by row weighted; a read."""
        weight = np.zeros(0) if self.weight is None else self.weight
        for group, margins in self.margins(W, bias):
            value = np.empty(len(margins))
            mean_losses(LOSS_IDS[loss], margins, weight, level, scale[group], value)
            yield group, value
