"""What is the same for rows in memory whether they are dense or CSR, in one place."""

import numpy as np
import scipy.sparse as sp

FULL = 2.5                   # numbers of a dense copy for an entry of CSR rows, at most


def joined(parts):
    """Rows of several arrays or CSR matrices, one below the other."""
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def parts_of(array):
    """The arrays that hold its numbers, those of CSR rows with indices of 64 bits."""
    if sp.issparse(array):
        return [array.indptr.astype(np.int64), array.indices.astype(np.int64), array.data]
    return [np.asarray(array)]


def is_sparse(array):
    """Of what is no X: weights, which `sparsify` makes so, targets, and scores of which a few are stored."""
    return sp.issparse(array)


def stored(array):
    """The numbers that an array, dense or sparse, holds."""
    return array.data if sp.issparse(array) else array


def dense(X):
    """The array that ``X`` is, or that a sparse ``X`` stands for."""
    return X.toarray() if sp.issparse(X) else X


def plain(value):
    """A number or text of NumPy's types as Python's, whose repr, in a message, does not name a type."""
    return value.item() if isinstance(value, np.generic) else value


def squares(X):
    """Of every entry of X, dense or CSR."""
    return X.multiply(X) if sp.issparse(X) else X * X


def scaled_rows(X):
    """Rows times 2^-power, float64, whose stored numbers are at most 1, of which CSR rows may have several to an entry;
    and power, (n, 1)."""
    if not sp.issparse(X):
        rows = np.asarray(X, dtype=np.float64)
        power = exponent(np.abs(rows).max(axis=1, keepdims=True))
        return np.ldexp(rows, -power), power
    row_of, largest = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), np.zeros(X.shape[0])
    np.maximum.at(largest, row_of, np.abs(X.data))
    power = exponent(largest)
    data = np.ldexp(X.data.astype(np.float64), -power[row_of])
    return type(X)((data, X.indices, X.indptr), shape=X.shape), power[:, None]


def top_of(scores, n):
    """(n_rows, n) places of the ``n`` largest scores of each row, largest first; of equal ones the first."""
    least = -np.partition(-scores, n - 1, axis=1)[:, n - 1:n]
    taken = scores >= least
    tied = np.flatnonzero(np.count_nonzero(taken, axis=1) > n)               # rows that have too many
    if len(tied):
        above, equal = scores[tied] > least[tied], scores[tied] == least[tied]
        taken[tied] = above | (equal & (np.cumsum(equal, axis=1) <= n - above.sum(axis=1, keepdims=True)))
    best = np.nonzero(taken)[1].reshape(len(scores), n)
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


def exponent(size):
    """Of 2, the least whose power is larger."""
    return np.frexp(size)[1]
