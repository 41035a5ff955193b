"""Rows that pandas knows by an index, beside rows of Dask: their places must say the same as their indexes."""

from cmargin.data.containers import computed, on_workers


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
