"""Containers of other libraries: those NumPy reads, and what to call where it does not, or reads something else."""

import numpy as np
import scipy.sparse as sp

NESTED = (list, tuple, np.ndarray)
# Beginnings of the names of types in pandas, polars and Arrow, in small letters.
TIMES = ("date", "time", "duration", "period", "month")
LISTS = ("list", "large_list", "fixed_size_list", "array(")
LONGEST = 40                   # characters of a text in a message


def rows_array(X):
    """Rows in any container as what scikit-learn's checks read rightly: an array, a frame or a sparse matrix.

    Parameters
    ----------
    X : (n, n_features) array, frame of pandas, polars or Arrow, sparse matrix, list of rows; whatever has `__array__`
        Neither files, nor tensors, nor Dask collections.

    Returns
    -------
    X, where it is an array, a frame, a sparse matrix or a list; or the array that it gives

    Raises
    ------
    TypeError
        For a container that NumPy makes no array of rows of, with what to call for one.
    ValueError
        For masked entries, raw texts, and columns of dates or lists.
    """
    if X is None or sp.issparse(X) or (type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub"):
        return X
    refuse_container(X, "X")
    X = unmasked(X, "X")
    refuse_types(X)
    if _column_types(X) or not hasattr(X, "__array__"):
        return X
    rows = X if isinstance(X, np.ndarray) else np.asarray(X)
    refuse_types(rows)
    if rows.ndim == 1 and len(rows):
        _refuse_column(X, rows)
    return X if hasattr(X, "iloc") else rows            # scikit-learn has words for a pandas Series


def weight_array(sample_weight):
    """Sample weights in any container as an array; None, and a number for all rows, as they are."""
    if sample_weight is None or type(sample_weight) is np.ndarray or np.isscalar(sample_weight):
        return sample_weight
    refuse_container(sample_weight, "sample_weight")
    return np.asarray(unmasked(computed(sample_weight), "sample_weight"))


def on_workers(X):
    """Whether ``X`` is a Dask collection. Nothing is imported to know it."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def computed(a):
    """What a Dask collection comes to, beside rows in memory; anything else as it is."""
    return a.compute() if hasattr(type(a), "compute") else a


def unmasked(a, name):
    """``a`` without its mask, where nothing is masked; ValueError where something is.

    NumPy's own functions drop a mask in silence, and what lies under it, -9999 say, would be trained on.
    """
    if not isinstance(a, np.ma.MaskedArray):
        return a
    if np.ma.is_masked(a):
        n = int(np.ma.count_masked(a))
        raise ValueError(f"{name} is a masked array, {n} of whose entries {'are' if n > 1 else 'is'} masked; leave "
                         f"such rows out, or fill them in, as {name}.filled(...) does.")
    return np.asarray(a.data)


def refuse_container(a, name):
    """Raise TypeError for what holds rows or labels but is no array of them, and say what to call for one."""
    call = _call_for(a, name)
    if call is not None:
        kind = type(a).__name__
        article = "an" if kind.lstrip("_")[0] in "AEIOUaeiou" else "a"
        raise TypeError(f"{name} is {article} {kind}, of which NumPy makes no array; give {call}.")


def _call_for(a, name):
    """What gives an array of ``a``, in words; None where nothing need be called. Known by the methods it has."""
    def has(*methods):
        return all(hasattr(type(a), method) for method in methods)

    if has("to_scipy_sparse"):                           # arrays of the library sparse
        return f"{name}.to_scipy_sparse()"
    if has("to_coo", "nnz"):
        return f"{name}.to_coo().to_scipy_sparse()"
    if has("collect") and not has("__array__"):          # a lazy frame of polars, which has no rows yet
        return f"{name}.collect()"
    if has("to_memory", "obs"):                          # AnnData
        return f"{name}.to_memory().X" if a.isbacked else f"{name}.X"
    if has("to_memory") and not has("__array__"):        # a sparse matrix of AnnData that is in its file
        return f"{name}.to_memory()"
    if has("todense", "nse"):                            # BCOO and BCSR of JAX
        return f"{name}.todense(), or a scipy.sparse matrix of its data and indices"
    return None


def refuse_types(X):
    """Raise ValueError where an array, or a column of a frame, holds dates or lists, which are no numbers.

    NumPy makes numbers of dates, those since 1970 in the unit of the column, and libraries differ in when they let it.
    """
    columns = _column_types(X)
    for dtype in {dtype for _, dtype in columns}:
        text = str(dtype).lower()
        if not text.startswith((*TIMES, *LISTS)):
            continue
        name = next(name for name, other in columns if other == dtype)
        if text.startswith(TIMES):
            _refuse_times(f"Column {name!r} of X", dtype)
        _refuse_lists(f"Column {name!r} of X", f"X[{name!r}]", hasattr(X, "to_pylist"))
    if hasattr(X, "iloc") and len(X):                    # of pandas, lists may be in columns of objects
        for j, (name, dtype) in enumerate(columns):
            if dtype == np.dtype(object) and isinstance(X.iloc[0, j], NESTED):
                _refuse_lists(f"Column {name!r} of X", f"X[{name!r}]")
    if not columns and getattr(getattr(X, "dtype", None), "kind", "") in ("m", "M"):
        _refuse_times("X", X.dtype)


def _column_types(X):
    """(name, type) of the columns of a frame of pandas, polars or Arrow, or of Dask's; none of what has no columns."""
    if hasattr(X, "dtypes") and hasattr(X, "columns"):   # pandas, polars
        return list(zip(X.columns, X.dtypes, strict=True))
    schema = getattr(X, "schema", None)
    if hasattr(schema, "types"):                         # Arrow
        return list(zip(schema.names, schema.types, strict=True))
    return []


def _refuse_column(X, rows):
    """Raise ValueError for one column, not rows: of texts or of lists. ``rows``: its array."""
    if rows.dtype.kind in "UST" or isinstance(rows[0], (str, bytes)):
        refuse_texts(rows)
    if isinstance(rows[0], NESTED):
        _refuse_lists("X", "X", hasattr(X, "to_pylist"))


def refuse_texts(texts):
    """Raise ValueError for documents in place of rows."""
    first = str(texts[0])
    first = first if len(first) <= LONGEST else f"{first[:LONGEST - 3]}..."
    raise ValueError(f"X holds {len(texts)} texts, {first!r} the first, and none of them names a file. Rows are "
                     "numbers: a vectoriser is missing, as sklearn.feature_extraction.text.TfidfVectorizer().")


def _refuse_times(what, dtype):
    raise ValueError(f"{what} holds {dtype}, and rows are numbers; make days or seconds since some day of it, as "
                     "floats, or leave it out.")


def _refuse_lists(what, column, is_arrow=False):
    raise ValueError(f"{what} holds lists, and rows have one number a column; give "
                     f"np.array({column}.{'to_pylist' if is_arrow else 'to_list'}()).")
