"""Containers of rows as users have them, each made of the same numbers: small and whole, which all of them can hold."""

import atexit
import datetime
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import numpy as np
import scipy.sparse as sp


def as_given(X):
    return X


def as_csr(X):
    return sp.csr_array(X)


@dataclass(frozen=True)
class Container:
    """A kind of container of rows.

    Attributes
    ----------
    make : (n, n_features) float64 array -> the container
    twins : arrays that a fit on the container may be equal to, each made by a function of the same array; none where
        the container holds what is no number, or lacks one, and has to be refused
    bits : whether coefficients are equal to the bit; else predictions are compared alone, as sums are in another order
    needs : the module without which it cannot be made
    """

    make: Callable
    twins: tuple = (as_given,)
    bits: bool = True
    needs: str = "numpy"


@cache
def folder():
    """A folder for memory maps and files, removed at the end."""
    made = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def in_file(name):
    return os.path.join(folder(), f"{os.getpid()}-{name}")


def memory_map(X):
    np.save(in_file("map.npy"), X)
    return np.load(in_file("map.npy"), mmap_mode="r")


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def strided(X):
    wide = np.full((2 * X.shape[0], 2 * X.shape[1]), np.nan)
    wide[::2, ::2] = X
    return wide[::2, ::2]


def single(X):
    return X.astype(np.float32)


def truth(X):
    return (X > 2).astype(float)


def masked(X):
    """-9999 in the place of a missing number, as tables of measurements have it."""
    X, mask = X.copy(), np.zeros(X.shape, bool)
    X[1, 0], mask[1, 0] = -9999, True
    return np.ma.MaskedArray(X, mask)


def long_indices(X):
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def names(X):
    return [f"c{j}" for j in range(X.shape[1])]


def strings(X):
    return [f"v{x:.0f}" for x in X[:, 0]]


def dates(X):
    return [datetime.datetime(2020, 1, 1) + datetime.timedelta(days=float(x)) for x in X[:, 0]]


def with_none(X):
    return [None, *X[1:, 0].tolist()]


def columns(X, first=None):
    """Columns by name, the first of them replaced."""
    out = dict(zip(names(X), X.T, strict=True))
    return out if first is None else {**out, "c0": first}


def frame(X, dtype=None, first=None):
    import pandas

    table = pandas.DataFrame(columns(X, first))
    return table if dtype is None else table.astype(dtype)


def frame_with(X, **changed):
    import pandas

    return frame(X).assign(**{name: pandas.array(values, dtype) for name, (values, dtype) in changed.items()})


def sparse_frame(X):
    import pandas

    return frame(X, pandas.SparseDtype(float, 0.0))


def arrow(X, first=None):
    import pyarrow

    return pyarrow.table(columns(X, first))


def arrow_lists(X):
    import pyarrow

    return pyarrow.table({"rows": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.ravel()), X.shape[1])})


def polars(X, first=None):
    import polars

    return polars.DataFrame(columns(X, first))


def polars_series(X):
    import polars

    return polars.Series("rows", X)


def dask_array(X):
    import dask.array

    return dask.array.from_array(X, chunks=(len(X) // 2, X.shape[1]))


def dask_frame(X):
    import dask.dataframe

    return dask.dataframe.from_pandas(frame(X), npartitions=2)


def of_numpy():
    plain = {name: Container(make) for name, make in {
        "C order": as_given, "F order": np.asfortranarray, "read-only": read_only, "memory map": memory_map,
        "strided": strided, "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
        "other byte order": lambda X: X.astype(X.dtype.newbyteorder()), "float16": lambda X: X.astype(np.float16),
        "longdouble": lambda X: X.astype(np.longdouble), "int8": lambda X: X.astype(np.int8),
        "uint8": lambda X: X.astype(np.uint8), "int64": lambda X: X.astype(np.int64),
        "object of floats": lambda X: X.astype(object), "list of lists": lambda X: X.tolist(),
        "list of arrays": list, "numpy.matrix": np.asmatrix, "masked array, no mask": np.ma.MaskedArray}.items()}
    return {**plain, "float32": Container(single, (single,)), "bool": Container(lambda X: X > 2, (truth,)),
            "masked array, masked": Container(masked, ()), "object with None": Container(
                lambda X: np.column_stack([np.array(with_none(X), object), X[:, 1:]]), ()),
            "strings": Container(lambda X: X.astype(str), (as_given,)), "complex": Container(lambda X: X + 1j, ())}


def of_pandas():
    either = (as_given, single)
    return {f"pandas, {name}": Container(make, twins, needs="pyarrow" if "Arrow" in name else "pandas")
            for name, (make, twins) in {
        "float64": (frame, (as_given,)), "float32": (lambda X: frame(X, "float32"), either),
        "other index": (lambda X: frame(X).set_index(np.arange(len(X))[::-1]), (as_given,)),
        "int8": (lambda X: frame(X, "int8"), (as_given,)),
        "bool": (lambda X: frame(X > 2), (truth,)), "nullable Float64": (lambda X: frame(X, "Float64"), (as_given,)),
        "nullable Int64": (lambda X: frame(X, "Int64"), (as_given,)),
        "Arrow's double": (lambda X: frame(X, "double[pyarrow]"), (as_given,)),
        "Arrow's int64": (lambda X: frame(X, "int64[pyarrow]"), (as_given,)),
        "sparse columns": (sparse_frame, (as_given, as_csr)),
        "sparse columns, NaN left out": (lambda X: frame(X, "Sparse[float64]"), (as_given, as_csr)),
        "categories of numbers": (lambda X: frame(X, "category"), (as_given,)),
        "object of floats": (lambda X: frame(X, object), (as_given,)),
        "a missing number": (lambda X: frame_with(X, c0=(with_none(X), "Float64")), ()),
        "a category of strings": (lambda X: frame_with(X, c0=(strings(X), "category")), ()),
        "a column of strings": (lambda X: frame(X, first=strings(X)), ()),
        "a column of dates": (lambda X: frame(X, first=dates(X)), ()),
        "a column of time spans": (lambda X: frame_with(X, c0=(X[:, 0].astype(int), "timedelta64[ns]")), ()),
    }.items()}


def of_arrow():
    either = (as_given, single)
    return {f"Arrow table, {name}": Container(make, twins, needs="pyarrow") for name, (make, twins) in {
        "float64": (arrow, (as_given,)), "float32": (lambda X: arrow(single(X)), either),
        "int8": (lambda X: arrow(X.astype(np.int8)), (as_given,)), "a null": (lambda X: arrow(X, with_none(X)), ()),
        "a column of strings": (lambda X: arrow(X, strings(X)), ()), "a column of lists": (arrow_lists, (as_given,)),
        "a column of dates": (lambda X: arrow(X, dates(X)), ())}.items()}


def of_polars():
    either = (as_given, single)
    return {f"polars, {name}": Container(make, twins, needs="polars") for name, (make, twins) in {
        "float64": (polars, (as_given,)), "float32": (lambda X: polars(single(X)), either),
        "int8": (lambda X: polars(X.astype(np.int8)), (as_given,)), "a null": (lambda X: polars(X, with_none(X)), ()),
        "a column of strings": (lambda X: polars(X, strings(X)), ()),
        "a column of dates": (lambda X: polars(X, dates(X)), ()),
        "LazyFrame": (lambda X: polars(X).lazy(), (as_given,)), "Series of rows": (polars_series, (as_given,))}.items()}


def of_scipy():
    kinds = {f"{form}_{what}": getattr(sp, f"{form}_{what}")
             for form in ("csr", "csc", "coo", "dok", "lil", "bsr", "dia") for what in ("array", "matrix")}
    kinds |= {"csr_array, 64-bit indices": long_indices, "csc_array, int8": lambda X: sp.csc_array(X.astype(np.int8)),
              "csr_array, int64": lambda X: sp.csr_array(X.astype(np.int64))}
    return {**{name: Container(make, (make if "bsr" in name else as_csr,)) for name, make in kinds.items()},
            "csr_array, float32": Container(lambda X: sp.csr_array(single(X)), (lambda X: sp.csr_array(single(X)),)),
            "csr_array, bool": Container(lambda X: sp.csr_array(X > 2), (lambda X: sp.csr_array(truth(X)),)),
            "csr_array, NaN": Container(lambda X: sp.csr_array(np.where(X == X.max(), np.nan, X)), ())}


def elsewhere():
    return {"array-api-strict": Container(lambda X: import_module("array_api_strict").asarray(X), bits=False,
                                          needs="array_api_strict"),
            "Dask array": Container(dask_array, bits=False, needs="distributed"),
            "Dask frame": Container(dask_frame, bits=False, needs="distributed")}


CONTAINERS = {**of_numpy(), **of_scipy(), **of_pandas(), **of_arrow(), **of_polars(), **elsewhere()}
