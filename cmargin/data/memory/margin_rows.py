"""Rows times their label, with the intercept's 1, whose products with the weights are margins: float64, by blocks."""

import numpy as np

BLOCK_NUMBERS = 1 << 20          # numbers of a block that is made dense or converted: 8 MB


class MarginRows:
    """y_i (x_i, 1) of all rows of X, dense or CSR in memory, of which no copy is kept."""

    def __init__(self, X, y, intercept):
        """``y``: (n,) of -1 and 1; ``intercept``: whether a column of ones follows those of X."""
        self.X, self.y, self.intercept = X, y, bool(intercept)
        self.n_rows, self.n_features = X.shape
        self.n_columns = self.n_features + self.intercept
        self.sparse = not isinstance(X, np.ndarray)
        self.block = max(1, BLOCK_NUMBERS // max(1, self.n_columns))

    def margins(self, v):
        """(n,) margins of the weights v, (n_columns,)."""
        w, z = v[:self.n_features], np.empty(self.n_rows)
        if self.sparse:
            z[:] = self.X @ w
        else:
            for lo in range(0, self.n_rows, self.block):
                np.dot(np.asarray(self.X[lo:lo + self.block], float), w, out=z[lo:lo + self.block])
        if self.intercept:
            z += v[-1]
        z *= self.y
        return z

    def sums(self, c):
        """(n_columns,) the sum of the rows times c, (n,)."""
        signed, total = c * self.y, np.zeros(self.n_columns)
        if self.sparse:
            total[:self.n_features] = self.X.T @ signed
        else:
            for lo in range(0, self.n_rows, self.block):
                total[:self.n_features] += signed[lo:lo + self.block] @ np.asarray(self.X[lo:lo + self.block], float)
        if self.intercept:
            total[-1] = signed.sum()
        return total

    def take(self, rows):
        """(len(rows), n_columns) dense; ``rows``: places or a slice."""
        X, y = self.X[rows], self.y[rows]
        taken = np.ones((len(y), self.n_columns))
        taken[:, :self.n_features] = X.toarray() if self.sparse else X
        taken *= y[:, None]
        return taken

    def blocks(self, rows):
        """Yield places out of ``rows``, and the rows there, a block at a time."""
        for lo in range(0, len(rows), self.block):
            some = rows[lo:lo + self.block]
            yield some, self.take(some)
