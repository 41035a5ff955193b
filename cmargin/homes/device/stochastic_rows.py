"""Rows on a device for methods that go by batches: whitened there; second moments and their inverse in memory."""

import numpy as np

from cmargin.homes.memory import MemoryHome


class DeviceStochasticRows:
    """`StochasticRows` over a `DeviceHome`, without its single rows.

    What is made of a few rows, the second moment behind an inverse above all, is made in memory from a copy of them.

    Parameters
    ----------
    home : DeviceHome
    n_threads : int
        For what is done in memory.
    """

    by_batches, sparse = True, False

    def __init__(self, home, n_threads):
        self.home, self.n_threads, self.dtype = home, n_threads, home.dtype
        self.n_rows, self.n_features = home.n_rows, home.n_features
        self.between_chunks = lambda: None       # called between two batches; may raise
        self._few = None, None

    @property
    def rows(self):
        """Of compiled steps that read one row at a time."""
        self.home.refuse("A stochastic method, which reads one row at a time,")

    def few(self, subset):
        """`StochasticRows` in memory over the rows of ``subset``, in its order; the last ones are kept."""
        if self._few[0] is not subset:
            rows = MemoryHome(self.home.take(subset, self.dtype)).stochastic_rows(self.n_threads)
            self._few = subset, rows
        return self._few[1]

    def scores(self, W, bias, subset):
        return self.few(subset).scores(W, bias, np.arange(len(subset)))

    def mean_row(self, subset, weight):
        return self.few(subset).mean_row(np.arange(len(subset)), weight)

    def leading_pairs(self, subset, curvature, k, n_values, centre=None):
        return self.few(subset).leading_pairs(np.arange(len(subset)), curvature, k, n_values, centre)

    def mean_square(self, inverse, subset, weight=None):
        return self.few(subset).mean_square(inverse, np.arange(len(subset)), weight)

    def whiten(self, inverse, order=None, out=None):
        """A tensor; ``out`` is let go."""
        rows, xp = self.home.rows, self.home.rows.xp
        at, n = rows.at, self.n_rows if order is None else len(order)
        P, factor = at.put(inverse.eigenvectors[0], at.dtype), at.put(inverse.factor[0], at.dtype)
        centre = None if inverse.centre is None else at.put(inverse.centre, at.dtype)
        places, parts = at.put(np.arange(n) if order is None else np.asarray(order, np.int64)), []
        for block in rows.blocks_of(n):
            self.between_chunks()
            X = xp.take(rows.X, places[block], axis=0)
            X = X if centre is None else X - centre
            Z = xp.matmul(X, P) * factor
            if inverse.full_width:
                Z = xp.matmul(Z, P.T) + float(inverse.tail_root[0]) * X
            parts.append(Z)
        return xp.concat(parts)

    def as_they_are(self):
        return self.rows

    def row_numbers(self, entry_cost):
        return float(max(1, self.n_features))

    def column_scale(self, weight):
        self.home.refuse("Scaling of columns")

    def over_columns(self, scale):
        self.home.refuse("Scaling of columns")
