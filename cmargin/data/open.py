"""The one place that asks what a data matrix is: what is given, opened as the data source of its rows."""

from typing import Any

from cmargin.data.open_here import open_here
from cmargin.data.places import place_of


def open_rows(X: Any, y: Any = None, *, comm: Any = None, client: Any = None) -> Any:
    """The data source of the rows of ``X``, as `cmargin.data.source.DataSource` describes it.

    The numbers are not checked: NaN and infinity are for those to refuse who were given the data.

    Parameters
    ----------
    X : (n, n_features) NumPy array of any order, strides and alignment, memory-mapped or not, or CSR matrix
        float32 or float64. Not copied, unless its numbers are not aligned, as in a column of a structured array; CSR
        rows that are not in SciPy's canonical format are copied for Newton's method and the dual. Or paths, or what
        `cmargin.data.files.open_files` gives; such rows, and memory maps, that are too large for the memory left stay
        in their files. Or a Dask array or dataframe, whose partitions stay on the workers of a cluster. Or a torch
        tensor, a CuPy array, any array of the array API standard: it stays on its device.
    y : (n,) or (n, n_labels) array or sparse matrix, or paths, optional
        Labels, kept beside the rows; in memory, where those on X's device are brought once.
    comm : communicator with mpi4py's buffer methods, optional
        All its ranks call this together, each with rows of its own, in memory, and as ``y`` their signed weights s_i
        y_i, a column for every problem: ``row_pass(c, ...)`` takes problem c. Rank 0 gets the data source of all ranks'
        rows, and ends with ``source.end()``; the others get an object whose ``serve()`` answers until then. A Ctrl-C is
        not kept back here, as it is in ``fit(..., comm=comm)``.
    client : distributed.Client, optional
        Of the cluster, where X is a Dask collection; the one in use if None. Views of such a data source are there once
        its partitions have agreed on labels, as `fit` lets them.

    Returns
    -------
    DataSource

    Raises
    ------
    TypeError
        For anything else, other formats and other dtypes.
    ValueError
        For another number of dimensions, labels of another number of rows, and sparse arrays that do not fit together;
        for ranks that disagree, on every rank.
    """
    if comm is not None:
        from cmargin.data.shards.rank_rows import open_ranks

        return open_ranks(X, y, comm)
    place = place_of(X)
    return open_here(X, y) if place is None else place.open(X, y, client)
