"""The one place where labels become an array: numbers, flags and texts as they were given, or a refusal in words."""

import numpy as np
import scipy.sparse as sp

from cmargin._core.rows._structure import check_structure
from cmargin.data.containers import computed, refuse_container, unmasked

PLAIN = "biuUS"                # kinds of dtypes whose arrays hold labels as they are, none of them missing
WHOLE = (int, np.integer, np.bool_)
FLAGS = (bool, np.bool_)


def label_array(y, name="y"):
    """Labels in any container as an array that holds what was given.

    Whole numbers of a pandas, polars or Arrow column, of a list or of an array of objects are int64 (uint64 where only
    that holds them), flags are bool, texts stay what they are: nothing becomes a float on the way.

    Parameters
    ----------
    y : array, list, pandas Series, Index or DataFrame, polars or Arrow column or table, Dask collection, sparse matrix
        (n,) labels or (n, n_labels) indicator. What is no container of labels is returned as it is, for others to
        refuse.
    name : str
        What a message calls it.

    Returns
    -------
    array, or the sparse matrix given, CSR in place of any format but CSR and CSC

    Raises
    ------
    ValueError
        Where labels are missing, masked, of several types, or of one that classes cannot have.
    """
    if type(y) is np.ndarray and y.dtype.kind in PLAIN:
        return y
    if y is None or isinstance(y, (str, np.matrix)):
        return y
    if sp.issparse(y):
        check_structure(y, name)
        return y if y.format in ("csr", "csc") else y.tocsr()
    refuse_container(y, name)
    a = _array_of(unmasked(computed(y), name))
    refuse_missing(a, name)
    if a.dtype.kind == "T":
        return a.astype(object)                          # which scikit-learn's checks know
    if a.dtype.kind == "V":
        return _numbers_of(a, name)
    return _one_type(a, name) if a.dtype.kind == "O" and a.size else a


def missing(a):
    """Flags (n,) or (n, n_labels) of the labels of an array that are missing: NaN, NaT, None and pandas' NA."""
    if a.dtype.kind in "fc":
        return np.isnan(a)
    if a.dtype.kind in "mM":
        return np.isnat(a)
    if a.dtype.kind in "OT" and not _types(a) <= {str, int, bool}:
        return np.array([_is_missing(label) for label in a.ravel().tolist()], bool).reshape(a.shape)
    return np.zeros(a.shape, bool)


def refuse_missing(a, name):
    """Raise ValueError where a label is `missing`."""
    if a.dtype.kind in PLAIN or a.ndim == 0 or not a.size:
        return
    rows = np.flatnonzero(missing(a).reshape(len(a), -1).any(axis=1))
    if len(rows):
        more = f" and those of {len(rows) - 1} more rows are" if len(rows) > 1 else " is"
        raise ValueError(f"Input {name} contains NaN: {name}[{rows[0]}]{more} missing; leave such rows out of X and "
                         f"{name}.")


def _is_missing(label):
    if label is None:
        return True
    try:
        return bool(label != label)
    except TypeError:                                    # pandas' NA is neither equal to itself nor different
        return True
    except ValueError:                                   # an array in place of a label
        return False


def _array_of(y):
    """NumPy's array of a container; of objects where it would make texts, or rounded numbers, of others in a list."""
    if not isinstance(y, (list, tuple)):
        return np.asarray(y)
    try:
        a = np.asarray(y)
    except ValueError:                                   # a list of lists of several lengths
        return _objects(y)
    if a.ndim != 1 or a.dtype.kind not in "USf":
        return a
    types = set(map(type, y))
    if a.dtype.kind == "f":                              # of whole numbers, some of which no int64 holds
        return _objects(y) if all(issubclass(kind, WHOLE) for kind in types) else a
    return a if all(issubclass(kind, str if a.dtype.kind == "U" else bytes) for kind in types) else _objects(y)


def _objects(y):
    a = np.empty(len(y), object)
    a[:] = y
    return a


def _types(a):
    return set(map(type, a.ravel().tolist()))


def _numbers_of(a, name):
    """Floats that NumPy itself does not have, bfloat16 say, as those it has."""
    if a.dtype.names is not None:
        raise ValueError(f"{name} is a structured array, of fields {', '.join(a.dtype.names)}; give one of them, "
                         f"{name}[{a.dtype.names[0]!r}] say.")
    return a.astype(np.float32)


def _one_type(a, name):
    """An array of objects as one of their type; texts stay objects."""
    types = _types(a)
    if all(issubclass(kind, str) for kind in types):
        return a
    if all(issubclass(kind, FLAGS) for kind in types):
        return a.astype(bool)
    if all(issubclass(kind, WHOLE) for kind in types):
        for dtype in (np.int64, np.uint64):
            try:
                return a.astype(dtype)
            except OverflowError:
                pass
        raise ValueError(f"{name} holds whole numbers beyond 64 bits; give them as texts.")
    if all(issubclass(kind, (float, np.floating)) for kind in types):
        return a.astype(np.float64)
    if types == {bytes}:
        return a.astype(np.bytes_)
    found = ", ".join(sorted(kind.__name__ for kind in types))
    raise ValueError(f"{name} holds labels of type {found}; classes are of one type, whole numbers, booleans or texts, "
                     "one a row, and a label indicator is an array of two dimensions.")
