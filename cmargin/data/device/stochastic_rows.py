"""Rows on a device for methods that go by batches: whitened there; second moments and their inverse in memory."""

import numpy as np

from cmargin.data.remote import FewInMemory


class DeviceStochasticRows(FewInMemory):
    """`StochasticRows` over a `DeviceSource`, without its single rows; ``n_threads``: for what is done in memory."""

    sparse = False

    def __init__(self, source, n_threads):
        self.source, self.n_threads, self.dtype = source, n_threads, source.dtype
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.between_chunks = lambda: None       # called between two batches; may raise

    def whiten(self, inverse, order=None, out=None):
        """A tensor; ``out`` is let go."""
        rows, xp = self.source.rows, self.source.rows.xp
        at, n = rows.at, self.n_rows if order is None else len(order)
        P, factor = at.put(inverse.eigenvectors[0], at.dtype), at.put(inverse.factor[0], at.dtype)
        centre = None if inverse.centre is None else at.put(inverse.centre, at.dtype)
        places, parts = at.put(np.arange(n) if order is None else np.asarray(order, np.int64)), []
        for block in rows.blocks_of(n):
            self.between_chunks()
            X = xp.take(rows.X, places[block], axis=0)
            X = X if centre is None else X - centre
            Z = X @ P * factor
            if inverse.full_width:
                Z = Z @ P.T + float(inverse.tail_root[0]) * X
            parts.append(Z)
        return xp.concat(parts)

    def row_numbers(self, entry_cost):
        return float(max(1, self.n_features))
