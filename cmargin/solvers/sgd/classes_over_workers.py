"""SLND, one-vs-rest, over the workers of a cluster: `LocalClassPasses` in tasks, the means at the client.

Places are groups of partitions, which weights walk through, as in `over_workers`. What stays with a worker are the
whitened rows of a partition and the lists of a pass, made again where it dies. Lists follow from partition, pass and
seed: the bits do not depend on which worker did what.
"""

import copy
from dataclasses import dataclass, replace

import numpy as np

from cmargin.data.failure import Failure
from cmargin.data.shards.dask.tasks import says_failure
from cmargin.solvers.per_class import class_streams
from cmargin.solvers.sgd.classes_over_places import (
    ClassesOverPlaces,
    LocalClassPasses,
    counted_for,
    shared_out,
)
from cmargin.solvers.sgd.over_places import PlaceCounts
from cmargin.solvers.sgd.over_workers import OfGroups, place_of


@dataclass
class About:
    """What all tasks of a fit are told."""

    loss: str
    entropy: int
    n_jobs: int | None


@dataclass
class Walk:
    """Weights on their way through a group, but for what all share, and sums of what was met."""

    weights: object
    met: np.ndarray


@dataclass
class Steps:
    """One of so many parts of a pass."""

    part: int
    n_parts: int
    step: np.ndarray
    bias_rate: np.ndarray


def local(X, labelled, about):
    return LocalClassPasses(place_of(X, labelled, about.n_jobs), about.loss, about.entropy)


@says_failure
def sampled(X, labelled, about, share, share_of_class):
    return local(X, labelled, about).sample(share, share_of_class)


@says_failure
def whitened(X, labelled, about, shared):
    return local(X, labelled, about).rows.whiten(shared[0])


@says_failure
def drawn(X, labelled, about, n_negatives, number):
    """The lists of pass ``number``."""
    there = local(X, labelled, about)
    there.streams = class_streams([about.entropy, 4, labelled.number, number], there.Y.shape[1])
    there.share_out(n_negatives)
    return there.draw()


@says_failure
def stepped(X, labelled, about, n_negatives, Z, visits, shared, walk, steps):
    """The walk after some steps through this partition."""
    for one in (Z, visits, walk):
        if isinstance(one, Failure):
            return one
    there = local(X, labelled, about)
    there.share_out(n_negatives)
    there.Z, there.visits = Z, visits
    there.inverse, base = shared
    there.weights = replace(copy.deepcopy(walk.weights), base=base)
    met = there.part(steps.part, steps.n_parts, steps.step, steps.bias_rate)
    return Walk(replace(there.weights, base=None), walk.met + met)


class ClassesOverWorkers(OfGroups, ClassesOverPlaces):
    """`ClassesOverPlaces` on a `DaskHome`."""

    def _open(self, loss, entropy):
        self.about, self.number = About(loss, entropy, self.all.n_jobs), 0
        if self.shares.counts.uneven():
            self.all.mix(entropy)
            self.shares.counts = PlaceCounts(self.all)
        self._group()

    def _sampled(self, share, share_of_class):
        positives, self.negatives = shared_out(self.shares)
        visits = np.array([(positives + self.negatives)[group].sum(axis=0) for group in self.groups])
        self.parts_of_mean, self.longer = counted_for(visits)
        found = self._told(self._everywhere("sample", sampled, self._places(), share, share_of_class))
        return zip(*found, strict=True)

    def _spread(self):
        """Whiten everywhere, unless rows are whitened as they are visited; what weights share stays there too."""
        self.all.between_chunks, base = self.clock.watch, self.weights.base
        self.shared_there = self._sent((self.fit.inverse, base))
        places = self._places()
        rows = []
        if base is None:
            rows = self._everywhere("whiten", whitened, places, self.shared_there * len(places))
        self.all.keep_there([*rows, *self.shared_there])
        self.Z_there = dict(zip(places, rows or [None] * len(places), strict=True))

    def _one_pass(self, step):
        self.number += 1
        places = self._places()
        lists = self._everywhere("draw", drawn, places, list(self.negatives[places]), self.number)
        self.lists_there = dict(zip(places, lists, strict=True))
        try:
            return super()._one_pass(step)
        finally:
            self.all.cluster.forget(lists)

    def _part(self, number, step):
        steps = Steps(number, self.n_parts, step, self._bias_rate())
        begin = Walk(replace(self.weights, base=None), np.zeros((self.lists.n_classes, 3)))

        def columns(places, walks):
            there = [[of[place] for place in places] for of in (self.Z_there, self.lists_there)]
            return list(self.negatives[places]), *there, self.shared_there * len(places), walks, steps

        walks = self._walked(begin, stepped, columns)
        self.weights = self.weights.copy()                   # what was sent may have to be sent again
        self.weights.take(sum(walk.weights.packed(part) for walk, part in zip(walks, self.parts_of_mean, strict=True)))
        return sum(walk.met for walk in walks)
