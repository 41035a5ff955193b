"""Rows in memory that are copied before they can be multiplied, block by block instead of as a whole: for predictions.

Whole numbers, half precision, the other byte order and rows cut out of a larger array become float64, eight times the
memory of bytes; nearly all frames are copied on their way into an array.
"""

import numpy as np
import scipy.sparse as sp

AT_ONCE = 1 << 22              # bytes of a block when it is converted; larger ones are no faster
FLOATS = (np.float32, np.float64)


class ConvertedRows:
    """Rows (n, n_features) whose slices are arrays or CSR matrices of float32 or float64.

    ``converted(block)``, of rows of the kind of X, array, CSR matrix or DataFrame, checks them and gives such a slice.
    """

    def __init__(self, X, converted):
        self.X, self.converted, self.shape = getattr(X, "iloc", X), converted, X.shape
        self.at_once = rows_of_a_block(X)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        return self.converted(self.X[rows])


def rows_of_a_block(X):
    """Rows that take `AT_ONCE` bytes as float64, on average."""
    entries, each = (X.nnz, 12) if sp.issparse(X) else (X.shape[0] * X.shape[1], 8)
    return max(1, AT_ONCE * X.shape[0] // (each * max(1, entries)))


def batches(X, most):
    """Slices of at most ``most`` rows, fewer where a slice is a copy: of a sparse array, or read or converted."""
    at_once = rows_of_a_block(X) if sp.issparse(X) else getattr(X, "at_once", most)
    size = min(most, at_once)
    return [slice(lo, lo + size) for lo in range(0, X.shape[0], size)]


def is_read_in_place(X):
    """Whether kernels read blocks of ``X`` where they lie: of arrays and CSR matrices in memory."""
    return isinstance(X, np.ndarray) or sp.issparse(X)


def is_copied(X):
    """Whether predictions can have ``X`` converted by blocks, and would copy it as a whole."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return len(X) > 0 and X.shape[1] > 0
    if sp.issparse(X):
        return X.format == "csr" and X.ndim == 2 and X.nnz > 0 and X.dtype not in FLOATS and X.dtype.kind in "biuf"
    if not isinstance(X, np.ndarray) or isinstance(X, (np.matrix, np.ma.MaskedArray)) or X.ndim != 2 or X.size == 0:
        return False
    if X.dtype not in FLOATS or not X.dtype.isnative or not X.flags.aligned:
        return X.dtype.kind in "biuf"
    return not any(X.strides[k] == X.itemsize and X.strides[1 - k] >= X.shape[k] * X.itemsize for k in (0, 1))
