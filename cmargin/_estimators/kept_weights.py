"""``coef_`` and ``intercept_`` while they are filled, problem by problem: as they will be stored, and nothing else."""

import numpy as np
import scipy.sparse as sp


class KeptWeights:
    """Weights of the problems of a fit, a row each, of all of which there is never a second copy.

    ``columns``: those of X that the weights given are of, ascending; None: all. ``sparse``: zeros are not stored.
    """

    def __init__(self, n_problems, n_columns, columns, dtype, sparse):
        self.shape, self.columns, self.dtype, self.sparse = (n_problems, n_columns), columns, np.dtype(dtype), sparse
        self.kept: set[int] = set()              # problems that are at their end
        self.bias = np.zeros(n_problems)
        self.rows: list = [(np.empty(0, np.int32), np.empty(0, self.dtype))] * n_problems if sparse else []
        self.coef = None
        self.is_out = False                      # with a caller, so that it is not to be written to

    def keep(self, c, w, b):
        """Weights (n_columns,) and intercept of problem ``c``, which is at its end."""
        self._write(c, w, b)
        self.kept.add(c)

    def of(self, c):
        """What was kept of it."""
        if not self.sparse:
            return self.coef[c] if self.columns is None else self.coef[c, self.columns], self.bias[c]
        places, values = self.rows[c]
        w = np.zeros(self.shape[1] if self.columns is None else len(self.columns), self.dtype)
        w[places] = values
        return w, self.bias[c]

    def joined(self, others):
        """``coef_``, an array in C order or CSC, and ``intercept_``; ``others``: {problem: (w, b)} of those not kept,
        which goes for now."""
        for c, (w, b) in others.items():
            self._write(c, w, b)
        self.is_out = True
        return (self._matrix() if self.sparse else self._array()), self.bias

    def _array(self):
        if self.coef is None:
            self.coef = np.zeros(self.shape, self.dtype)
        return self.coef

    def _write(self, c, w, b):
        if self.is_out:
            self.coef, self.bias = None if self.coef is None else self.coef.copy(), self.bias.copy()
            self.is_out = False
        self.bias[c] = b
        if self.sparse:
            places = np.flatnonzero(w).astype(np.int32)
            self.rows[c] = places, w[places].astype(self.dtype)
        else:
            self._array()[c, slice(None) if self.columns is None else self.columns] = w

    def _matrix(self):
        places, values = (np.concatenate(parts) for parts in zip(*self.rows, strict=True))
        places = places if self.columns is None else self.columns[places]
        starts = np.cumsum([0, *(len(found) for found, _ in self.rows)])
        return sp.csr_matrix((values, places, starts), shape=self.shape).tocsc()
