"""Containers of other libraries made arrays: rows, labels, weights; and what to call where NumPy makes none of them.

Numbers, flags and texts stay what they were given as, or are refused in words.
"""

import numpy as np
import scipy.sparse as sp

from cmargin._core.rows._structure import check_structure
from cmargin.data.places import on_workers

NESTED = (list, tuple, np.ndarray)
# Beginnings of the names of types in pandas, polars and Arrow, in small letters.
TIMES = ("date", "time", "duration", "period", "month")
LISTS = ("list", "large_list", "fixed_size_list", "array(")
LONGEST = 40                   # characters of a text in a message
# columns of frames whose numbers float32 holds, by the names that pandas, polars and Arrow have for their dtypes
SINGLE = {"float32", "float"}
IN_SINGLE = SINGLE | {"float16", "halffloat", "int8", "int16", "uint8", "uint16", "bool", "boolean"}
PLAIN = "biuUS"                # kinds of dtypes whose arrays hold labels as they are, none of them missing
WHOLE = (int, np.integer, np.bool_)
FLAGS = (bool, np.bool_)


def arrays_of(X, y=None, sample_weight=None):
    """Rows, labels and weights in any containers, none of them tensors or files, as `rows_array`, `label_array` and
    `weight_array` make them; Dask's rows stay what they are, and beside them Dask's labels and weights."""
    for a, name in ((y, "y"), (sample_weight, "sample_weight")):
        refuse_other_order(X, a, name)
    if not on_workers(X):
        return rows_array(X), label_array(y), weight_array(sample_weight)
    refuse_types(getattr(X, "_meta", None))
    return X, y if on_workers(y) else label_array(y), \
        sample_weight if on_workers(sample_weight) else weight_array(sample_weight)


def rows_array(X):
    """Rows in any container as what scikit-learn's checks read rightly: an array, a frame or a sparse matrix.

    ``X``: an array, a frame of pandas, polars or Arrow, a sparse matrix, a list of rows, whatever has `__array__`;
    neither tensors nor Dask collections. Raises TypeError for a container that NumPy makes no array of rows of, with
    what to call for one, and ValueError for masked entries, raw texts, and columns of dates or lists.
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


def is_single(X):
    """Whether the columns of a frame promote to float32, as those of NumPy arrays would."""
    columns = getattr(getattr(X, "schema", None), "types", None)         # Arrow's
    if columns is None and hasattr(X, "columns"):
        columns = getattr(X, "dtypes", ())
    names = {str(kind).removesuffix("[pyarrow]").lower() for kind in (() if columns is None else columns)}
    return names <= IN_SINGLE and not names.isdisjoint(SINGLE)


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


# ---------------------------------------------------------------- labels

def label_array(y, name="y"):
    """Labels in any container as an array that holds what was given, or the sparse matrix, CSR if neither CSR nor CSC.

    Whole numbers of a pandas, polars or Arrow column, of a list or of an array of objects are int64 (uint64 where only
    that holds them), flags are bool, texts stay what they are: nothing becomes a float on the way. ``y`` is (n,) labels
    or an (n, n_labels) indicator, and ``name`` what a message calls it. What is no container of labels is returned as
    it is, for others to refuse. Raises ValueError where labels are missing, masked, of several types, or of one that
    classes cannot have.
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


def positives_of(y):
    """CSC indicator of the positives of a label indicator, whose values must be 0 and 1, or -1 and 1."""
    if sp.issparse(y) and not y.has_canonical_format:    # an entry that is there twice counts as their sum
        y = y.copy()
        y.sum_duplicates()
    values = y.data if sp.issparse(y) else np.asarray(y)
    wrong = values[~np.isin(values, (-1, 0, 1))]
    if wrong.size:
        raise ValueError("Unknown label type: a label indicator must hold 0 and 1, or -1 and 1, got "
                         f"{wrong.flat[0]!s}; sklearn.preprocessing.MultiLabelBinarizer makes one of lists of labels.")
    positives = sp.csc_matrix(y > 0, dtype=np.int8)
    positives.eliminate_zeros()
    return positives


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
    if types & {list, tuple, set, frozenset, np.ndarray}:                    # in scikit-learn's words
        raise ValueError("You appear to be using a legacy multi-label data representation. Sequence of sequences are "
                         "no longer supported; use a binary array or sparse matrix instead - the MultiLabelBinarizer "
                         "transformer can convert to this format.")
    found = ", ".join(sorted(kind.__name__ for kind in types))
    raise ValueError(f"{name} holds labels of type {found}; classes are of one type, whole numbers, booleans or texts, "
                     "one a row, and a label indicator is an array of two dimensions.")


# ---------------------------------------------------------------- rows that an index names

def index_of(a):
    """The index of a frame or column of pandas or Dask; None of what has none."""
    index = getattr(a, "index", None)
    return index if hasattr(type(index), "is_monotonic_increasing") else None


def refuse_other_order(X, a, name):
    """Raise ValueError where one of ``X`` and ``a``, its labels or weights, is in memory, the other on Dask's workers,
    and their indexes differ.

    Rows are paired by their places, and `dask.dataframe.from_pandas` sorts rows by their index. Two Dask collections
    are paired as they are: their indexes would be a read of both.
    """
    ours, theirs = index_of(X), index_of(a)
    if ours is None or theirs is None or on_workers(ours) == on_workers(theirs):
        return
    if not computed(ours).equals(computed(theirs)):
        raise ValueError(f"X and {name} have different indexes, and rows are paired by their places; one of the two is "
                         "a Dask collection, whose rows dask.dataframe.from_pandas sorts by their index. Give "
                         f"{name} as a column of the same Dask dataframe, or as an array in the order of X.")
