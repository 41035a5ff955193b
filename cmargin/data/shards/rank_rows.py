"""Rows of all ranks as one data source, for a solver of one's own: `open_rows(X, signed_weights, comm=comm)`.

`fit(X_local, y_local, comm=comm)` agrees on classes and weights besides, and keeps a Ctrl-C back.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from cmargin._core.util._openmp import effective_n_threads
from cmargin.data.failure import agreed_on
from cmargin.data.open_here import open_here
from cmargin.data.shards.mpi import RankShard, RankSource
from cmargin.data.shards.ranks import ON_RANKS, Ranks


@dataclass
class Rows:
    """What a rank says of its rows."""

    n_rows: int
    entries: int
    n_features: int
    dtype: str
    layout: str
    n_problems: int


@dataclass
class AllRows:
    """What all ranks agree on."""

    n_rows: int
    entries: int
    n_problems: int
    first: list                  # of every rank's rows, the place of its first among all

    def __len__(self):
        return self.n_problems


class SignedWeights:
    """Labels of a shard: ``signed_weights`` (n_rows, n_problems), s_i y_i of every row and problem."""

    def __init__(self, signed_weights):
        self.signed_weights = signed_weights

    def signed_weight(self, c, weights):
        return self.signed_weights[:, c] * weights

    def sample(self, rows):
        return np.where(self.signed_weights[rows] > 0, 1.0, -1.0).T

    def order(self):
        return np.arange(len(self.signed_weights))

    def columns(self):
        return sp.csc_matrix(self.signed_weights > 0, dtype=np.int8)


def open_ranks(X, signed_weights, comm):
    """The `RankSource` of all ranks' rows on rank 0; on the others their `RankShard`, which is to `serve`. Collective.

    What is wrong on one rank is raised on all.
    """
    ranks = Ranks(comm)
    (source, signed_weights), agreed = ranks.settle(lambda: opened_here(X, signed_weights), put_together)
    shard = RankShard(ranks, source, SignedWeights(signed_weights), np.ones(source.n_rows), agreed.first[ranks.rank],
                      effective_n_threads(None))
    return RankSource(ranks, shard, agreed) if ranks.rank == 0 else shard


def opened_here(X, signed_weights):
    """This rank's data source and signed weights, and what it says of them."""
    source = open_here(X, signed_weights)
    if not source.in_memory:
        raise ValueError("Rows in files or on a device do not take comm= yet; read those of each rank into memory.")
    signed_weights = np.zeros((source.n_rows, 0)) if source.y is None else np.asarray(source.y, float)
    signed_weights = signed_weights[:, None] if signed_weights.ndim == 1 else signed_weights
    return (source, signed_weights), Rows(source.n_rows, source.entries, source.n_features, str(source.dtype),
                                          "CSR" if source.sparse else "dense", signed_weights.shape[1])


def put_together(said):
    """`AllRows`; ValueError where ranks disagree."""
    for what, name in (("the number of columns of X", "n_features"), ("the dtype of X", "dtype"),
                       ("how X is stored", "layout"), ("the number of columns of y", "n_problems")):
        agreed_on(what, {rank: getattr(rows, name) for rank, rows in enumerate(said)}, *ON_RANKS)
    sizes = [rows.n_rows for rows in said]
    return AllRows(sum(sizes), sum(rows.entries for rows in said), said[0].n_problems,
                   [sum(sizes[:rank]) for rank in range(len(sizes))])
