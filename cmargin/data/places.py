"""Collections whose rows lie with the workers of a cluster: one line for every library, which all who open or predict
ask. Nothing of a library is imported to know its collections.
"""

from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Place:
    """One library of clusters."""

    name: str                      # what messages call it
    packages: tuple[str, ...]      # where the types of its collections come from
    opens: str       # the module whose ``open_partitions(X, y, client, sample_weight)`` makes the data source
    predicts: str    # the module of ``as_array(X)`` and ``map_rows(X, function, name, like, given, *more)``

    def open(self, *of):
        return import_module(self.opens).open_partitions(*of)

    @property
    def predictions(self):
        return import_module(self.predicts)


PLACES = [Place("Dask", ("dask", "dask_expr"), "cmargin.data.shards.dask.collections", "cmargin.data.shards.dask.lazy")]


def place_of(X):
    """The `Place` of a collection; None of anything else."""
    package = type(X).__module__.partition(".")[0]
    return next((place for place in PLACES if package in place.packages), None)


def on_workers(X):
    return place_of(X) is not None
