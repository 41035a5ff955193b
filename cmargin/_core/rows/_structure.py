"""Whether the arrays of a SciPy sparse matrix fit together, read off the arrays themselves.

SciPy checks them when a matrix is built, not when its arrays are changed afterwards, and its own methods follow what
they find: an index out of range is read and written there, a huge row pointer is counted up to. So nothing here calls
a method of the matrix. The cost is one read of the indices, without a copy.
"""

from itertools import chain

import numpy as np
import scipy.sparse as sp

INDEX_DTYPES = (np.dtype(np.int32), np.dtype(np.int64))


def check_structure(X, name="X"):
    """Raise ValueError unless the arrays of the sparse ``X`` describe a matrix of its shape; dense ``X`` passes.

    ``name`` is what the message calls the matrix.
    """
    if not sp.issparse(X):
        return
    if len(X.shape) != 2:
        raise ValueError(f"Expected 2D sparse {name}, got {len(X.shape)} dimensions; reshape it to (n_samples, "
                         "n_features).")
    _CHECKS[X.format](X, f"sparse {name} in {X.format.upper()} format")


def _check_compressed(X, name):
    values = _array(X.data, "data", name, 3 if X.format == "bsr" else 1)
    rows, columns = X.shape[::-1] if X.format == "csc" else X.shape
    if X.format == "bsr":
        height, width = values.shape[1:]
        if min(height, width) < 1 or rows % height or columns % width:
            _refuse(name, f"blocks of {height} x {width} do not fill the shape {X.shape}")
        rows, columns = rows // height, columns // width
    indptr, indices = _indices(X.indptr, "indptr", name), _indices(X.indices, "indices", name)
    if len(indptr) != rows + 1:
        _refuse(name, f"indptr has {len(indptr)} entries where the shape {X.shape} needs {rows + 1}")
    if indptr[0] != 0:
        _refuse(name, f"indptr begins with {indptr[0]}, not with 0")
    descents = indptr[1:] < indptr[:-1]                 # a difference could overflow
    if descents.any():
        at = int(descents.argmax())
        _refuse(name, f"indptr descends from {indptr[at]} to {indptr[at + 1]} at entry {at + 1}")
    if len(indices) != len(values):
        _refuse(name, f"indices has {len(indices)} entries, data has {len(values)}")
    if indptr[-1] > len(indices):
        _refuse(name, f"indptr ends with {indptr[-1]}, but there are {len(indices)} indices")
    _check_range(indices, columns, "indices", name)


def _check_coordinates(X, name):
    values = _array(X.data, "data", name, 1)
    if len(X.coords) != 2:
        _refuse(name, f"it has {len(X.coords)} coordinate arrays, not 2")
    for what, places, size in zip(("row", "col"), X.coords, X.shape, strict=True):
        if len(_indices(places, what, name)) != len(values):
            _refuse(name, f"{what} has {len(places)} entries, data has {len(values)}")
        _check_range(places, size, what, name)


def _check_diagonals(X, name):
    values, offsets = _array(X.data, "data", name, 2), _indices(X.offsets, "offsets", name)
    if len(values) != len(offsets):
        _refuse(name, f"there are {len(offsets)} offsets, data has {len(values)} diagonals")
    if len(np.unique(offsets)) != len(offsets):
        _refuse(name, "an offset occurs twice")


def _check_lists(X, name):
    rows, values = _array(X.rows, "rows", name, 1), _array(X.data, "data", name, 1)
    if not len(rows) == len(values) == X.shape[0]:
        _refuse(name, f"it has {len(rows)} lists of columns and {len(values)} of values for {X.shape[0]} rows")
    for i, (columns, entries) in enumerate(zip(rows, values, strict=True)):
        if not (isinstance(columns, list) and isinstance(entries, list) and len(columns) == len(entries)):
            _refuse(name, f"the columns and values of row {i} are not two lists of one length")
    _check_range(_keys(chain.from_iterable(rows), name), X.shape[1], "rows", name)


def _check_dictionary(X, name):
    keys = list(X.keys())
    if not all(isinstance(key, tuple) and len(key) == 2 for key in keys):
        _refuse(name, "a key is no pair (row, column)")
    for axis, what in enumerate(("row", "column")):
        _check_range(_keys((key[axis] for key in keys), name), X.shape[axis], what, name)


_CHECKS = {"csr": _check_compressed, "csc": _check_compressed, "bsr": _check_compressed, "coo": _check_coordinates,
           "dia": _check_diagonals, "lil": _check_lists, "dok": _check_dictionary}


def _array(values, what, name, n_dims):
    if not isinstance(values, np.ndarray) or values.ndim != n_dims:
        _refuse(name, f"{what} is not a NumPy array of {n_dims} dimension{'s' * (n_dims > 1)}")
    return values


def _indices(values, what, name):
    if _array(values, what, name, 1).dtype not in INDEX_DTYPES:
        _refuse(name, f"{what} is of dtype {values.dtype}, not int32 or int64")
    return values


def _keys(keys, name):
    """The Python numbers of a LIL or DOK matrix as an array."""
    try:
        return np.fromiter(keys, np.int64)
    except (TypeError, ValueError, OverflowError):
        _refuse(name, "an index is no whole number of 64 bits")


def _check_range(indices, size, what, name):
    if not len(indices):
        return
    unsigned = indices.view(f"u{indices.itemsize}")     # one read: a negative number is a huge one here
    if int(unsigned.max()) >= size:
        at = int(unsigned.argmax())
        _refuse(name, f"{what} holds {indices[at]} at entry {at}, outside 0 .. {size - 1}")


def _refuse(name, why):
    raise ValueError(f"The {name} is broken: {why}. Its arrays must have been changed by hand; build it anew.")
