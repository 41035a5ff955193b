"""Workers that are not there: tasks run at once, with arguments and results as they would be sent, and kept."""

import pickle
import sys
from itertools import pairwise
from time import perf_counter
from types import SimpleNamespace

import numpy as np
from ranks_in_threads import OneProblem

from cmargin._estimators.labels import Labels
from cmargin._estimators.shards import Agreed
from cmargin._runtime.checkpoint import NO_CHECKPOINTER
from cmargin.data.shards.workers.source import WorkerSource
from cmargin.data.shards.workers.tasks import Labelled


def measure(found):
    """As workers measure every result, and log a warning where that raises."""
    sys.getsizeof(found)
    for part in found if isinstance(found, (list, tuple)) else ():
        measure(part)


class Kept:
    """A task and its result; made again after `lose`."""

    def __init__(self, function, *arguments):
        self.function, self.arguments, self.text = function, arguments, None

    def result(self):
        if self.text is None:
            given = known(list(self.arguments))
            before = pickle.dumps(given)
            found = self.function(*given)
            measure(found)
            self.text = pickle.dumps(found)
            assert pickle.dumps(given) == before, "a task writes to what it is given"
        return pickle.loads(self.text)

    def lose(self):
        """As a worker that dies loses it, and all that it was made of."""
        self.text = None
        known(list(self.arguments), Kept.lose)


def known(given, ask=Kept.result, kind=Kept):
    """``given`` with what ``ask`` says of every task of a ``kind`` in it and its lists, as a cluster puts it there."""
    if isinstance(given, kind):
        return ask(given)
    return [known(one, ask, kind) for one in given] if isinstance(given, list) else given


class InPlace:
    """What `cmargin.data.shards.dask.cluster.Cluster` is to a data source."""

    def __init__(self):
        self.heard, self.names = lambda: None, []

    def everywhere(self, name, function, *columns):
        self.names.append(name)
        return [Kept(function, *arguments) for arguments in zip(*columns, strict=True)]

    def groups(self, futures):
        """As if they were on three workers of one thread."""
        numbers = np.arange(len(futures))
        return [numbers[numbers % 3 == worker].tolist() for worker in range(min(3, len(numbers)))]

    def results(self, futures, until=np.inf):
        return [future.result() for future in futures]

    def forget(self, futures):
        pass

    def memory(self):
        return np.inf


def part_of(X, lo, hi):
    part = X[lo:hi]
    getattr(part, "has_canonical_format", None)                  # which SciPy notes in the matrix
    return part


def source_of(X, signed_weight, cuts, cluster=None):
    """`WorkerSource` of one problem over parts of the rows."""
    parts, cluster = list(pairwise([0, *cuts, X.shape[0]])), InPlace() if cluster is None else cluster
    rows = cluster.everywhere("rows", part_of, *zip(*((X, *part) for part in parts), strict=True))
    source = WorkerSource(cluster, rows, None, [hi - lo for lo, hi in parts], X.shape[1], X.dtype,
                          hasattr(X, "indptr"))
    source.labelled = [Kept(Labelled, OneProblem(signed_weight[lo:hi]), np.ones(hi - lo), lo, place)
                       for place, (lo, hi) in enumerate(parts)]
    source.agreed = type("Agreed", (SimpleNamespace,), {"__len__": lambda self: 1})(n_rows=X.shape[0], entries=X.size)
    return source


def pass_over_partitions(X, signed_weight, cuts, intercept):
    return source_of(X, signed_weight, cuts).row_pass(0, intercept=intercept, n_threads=1)


def fitted_in_place(model, X, y, cuts, cluster):
    """An SLND ``model`` of exclusive classes 0 .., trained over parts of the rows."""
    counts, source = np.bincount(y), source_of(X, y, cuts, cluster)
    places = list(enumerate(pairwise([0, *cuts, X.shape[0]])))
    source.labelled = cluster.everywhere("label", Labelled, *zip(*(
        (Labels(np.arange(len(counts)), y[lo:hi]), np.ones(hi - lo), lo, place) for place, (lo, hi) in places),
        strict=True))
    source.agreed = Agreed(np.arange(len(counts)), counts, False, str(X.dtype), "dense", None, len(X), X.size,
                           float(len(X)), [lo for _, (lo, _) in places], 1.0, counts.astype(float))
    fit, _, store, _ = model._train_over_places(source, perf_counter(), NO_CHECKPOINTER)
    store(fit)
    return model


class Losing(InPlace):
    """Workers that lose now and then what they hold, and all that it was made of."""

    def __init__(self):
        super().__init__()
        self.chance, self.lost = np.random.default_rng(2), 0

    def results(self, futures, until=np.inf):
        found = super().results(futures, until)
        for future in futures:
            if self.chance.random() < 0.3:
                future.lose()
                self.lost += 1
        return found
