"""What is the same for rows in memory whether they are dense or CSR, in one place."""

import numpy as np
import scipy.sparse as sp


def joined(parts):
    """Rows of several arrays or CSR matrices, one below the other."""
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def parts_of(array):
    """The arrays that hold its numbers, those of CSR rows with indices of 64 bits."""
    if sp.issparse(array):
        return [array.indptr.astype(np.int64), array.indices.astype(np.int64), array.data]
    return [np.asarray(array)]


def stored(array):
    """The numbers that an array, dense or sparse, holds."""
    return array.data if sp.issparse(array) else array


def dense(X):
    """The array that ``X`` is, or that a sparse ``X`` stands for."""
    return X.toarray() if sp.issparse(X) else X
