"""Predictions on a Dask collection, lazily: another one, whose chunks are made where the rows are. Needs no cluster."""

import dask

from cmargin.data.containers import refuse_types


def as_array(X):
    """The collection as an array, of rows of unknown number where a dataframe does not say."""
    refuse_types(getattr(X, "_meta", None))
    return X.to_dask_array() if hasattr(X, "to_dask_array") else X


def map_rows(X, function, name, like, given, *more):
    """``function(block, given, *more)`` of every block of rows of an array; ``like``: what one row comes to."""
    shape = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (X.chunks[0], like.shape[1:])}
    return X.rechunk({1: -1}).map_blocks(function, dask.delayed(given), *more, dtype=like.dtype, meta=like[:0],
                                         token=f"cmargin-{name}", **shape)
