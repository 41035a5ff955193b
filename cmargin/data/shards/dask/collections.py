"""Dask collections as partitions of rows: known sizes, all columns together, on the workers of a cluster."""

import warnings
from contextlib import contextmanager

import dask
import dask.array
import numpy as np
import scipy.sparse as sp
from distributed import futures_of

from cmargin.data.containers import arrays_of
from cmargin.data.shards.dask.cluster import Cluster, check_imports, client_of
from cmargin.data.shards.workers.source import WorkerSource


def open_partitions(X, y=None, client=None, sample_weight=None):
    """The `WorkerSource` of a dask array or dataframe ``X``, which is made on the workers, and of labels and weights
    beside it, which are Dask collections or in memory."""
    client = client_of(client)
    check_imports(client)
    if hasattr(X, "to_dask_array"):
        X = client.persist(X)
    X, y, sample_weight = arrays_of(X, y, sample_weight)
    X = rows_of(X)
    source = WorkerSource(Cluster(client), partitions_of(X, client), None, X.chunks[0], X.shape[1], X.dtype,
                          sp.issparse(X._meta))
    source.labels = None if y is None else beside(source, y, "y")
    source.weights = None if sample_weight is None else beside(source, sample_weight, "sample_weight")
    return source


def rows_of(X):
    """The collection as an array of rows: of one chunk of columns, float32 or float64, of known size."""
    if hasattr(X, "to_dask_array"):                          # a dataframe, whose lengths are counted
        if not hasattr(X, "columns"):
            raise ValueError("Expected 2D array, got a Dask series instead.")
        X = as_array(X)
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


def as_array(column):
    """A dataframe, or a column of one, as an array, its lengths counted."""
    with unwarned("Dask currently has limited support for converting pandas extension dtypes to arrays"):
        return column.to_dask_array(lengths=True)            # of objects, which `label_array` knows


@contextmanager
def unwarned(message):
    """Without a warning of Dask that begins so, about what is meant to be."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message)
        yield


def beside(source, column, name):
    """Futures of labels or weights, cut as the rows are."""
    client = source.cluster.client
    if hasattr(column, "to_dask_array"):
        column = as_array(client.persist(column))
    if isinstance(column, dask.array.Array):
        check_known(column, name)
    n = column.shape[0] if np.ndim(column) else 1
    if n != source.n_rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{source.n_rows}, {n}]")
    chunks = (tuple(source.sizes), *((size,) for size in column.shape[1:]))
    if not isinstance(column, dask.array.Array):             # once in a graph, what a lost worker had comes again
        with unwarned("Sending large graph"):
            return partitions_of(dask.array.from_array(column, chunks), client)
    return partitions_of(column.rechunk(chunks), client)
