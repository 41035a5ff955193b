"""Dask collections as partitions of rows: known sizes, all columns together, on the workers of a cluster."""

import dask
import dask.array
import numpy as np
import scipy.sparse as sp
from distributed import futures_of

from cmargin.homes.dask.cluster import Cluster, check_imports, client_of
from cmargin.homes.dask.home import DaskHome


def open_partitions(X, y=None, client=None):
    """The `DaskHome` of a dask array or dataframe ``X``, which is made on the workers, and labels ``y`` beside it."""
    client = client_of(client)
    check_imports(client)
    X = rows_of(X, client)
    home = DaskHome(Cluster(client), partitions_of(X, client), None, X.chunks[0], X.shape[1], X.dtype,
                    sp.issparse(X._meta))
    home.labels = None if y is None else beside(home, y, "y")
    return home


def rows_of(X, client):
    """The collection as an array of rows: of one chunk of columns, float32 or float64, of known size."""
    if hasattr(X, "to_dask_array"):                          # a dataframe, whose lengths are counted
        if not hasattr(X, "columns"):
            raise ValueError("Expected 2D array, got a Dask series instead.")
        X = client.persist(X).to_dask_array(lengths=True)
    if not isinstance(X, dask.array.Array):
        raise TypeError(f"Rows can be a Dask array or dataframe, not a {type(X).__module__}.{type(X).__name__}.")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
    check_known(X, "X")
    for axis, what in enumerate(("sample", "feature")):
        if X.shape[axis] == 0:
            raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def check_known(array, name):
    if any(np.isnan(size) for sizes in array.chunks for size in sizes):
        raise ValueError(f"The partitions of {name} are of unknown length; call {name}.compute_chunk_sizes() first.")


def partitions_of(array, client):
    """Futures of its blocks along the first axis; what makes them has begun."""
    array = client.persist(array)
    by_key = {future.key: future for future in futures_of(array)}
    return [by_key[key[0] if isinstance(key, list) else key] for key in array.__dask_keys__()]


def beside(home, column, name):
    """Futures of labels or weights, cut as the rows are."""
    client = home.cluster.client
    if hasattr(column, "to_dask_array"):
        column = client.persist(column).to_dask_array(lengths=True)
    if not isinstance(column, dask.array.Array):
        column = dask.array.from_array(np.atleast_1d(column))
    check_known(column, name)
    if column.shape[0] != home.n_rows:
        raise ValueError("Found input variables with inconsistent numbers of samples: "
                         f"[{home.n_rows}, {column.shape[0]}]")
    return partitions_of(column.rechunk({0: home.sizes} | ({1: -1} if column.ndim > 1 else {})), client)

