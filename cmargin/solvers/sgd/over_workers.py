"""SLND on the multinomial risk over the workers of a cluster: `LocalPasses` in tasks, the means at the client.

A place is a group of partitions, EIGHT at most, since R of them take R times the step, and fewer of few rows. Weights
walk through a group, one partition after the other, a task each that takes a part of its pass; then the client goes on
from the mean of the groups' weights, added up in their order. What stays with a worker are the whitened rows of a
partition, which are made again where it dies, and so are the steps that were under way. Groups, batches and their order
follow from partitions and seed: the bits do not depend on which worker did what.
"""

import copy
from dataclasses import dataclass, replace

import numpy as np

from cmargin._core.util._sampling import shuffle
from cmargin.data.failure import Failure
from cmargin.data.shards.dask.tasks import Partition, Round, says_failure
from cmargin.solvers.per_class import class_streams
from cmargin.solvers.sgd.multinomial_choice import BATCHES, DENSE_BATCH
from cmargin.solvers.sgd.over_places import MOVED, LocalPasses, MultinomialOverPlaces, PlaceCounts

EIGHT = 8                  # groups, and that many times the step: with more, passes lose accuracy (doc/scaling.md)
ENOUGH = BATCHES * DENSE_BATCH         # rows, with which batches are as large as one machine's


@dataclass
class About:
    """What all tasks of a fit are told."""

    n_rows: int
    n_classes: int
    entropy: int
    n_jobs: int | None


@dataclass
class Walk:
    """Weights on their way through a group, and what was met: loss, errors, weight, rows."""

    weights: object
    inverse: object
    met: np.ndarray


@dataclass
class Steps:
    """A part of a partition's pass: the batches ``first`` .. ``last`` - 1 of ``n_batches``."""

    number: int            # of the pass
    n_batches: int
    first: int
    last: int
    holds_out: bool
    step: float
    bias_rate: float


def place_of(X, labelled, n_jobs):
    """A partition for one task."""
    return Partition(X, labelled, None, Round((), (), n_jobs))


def local(X, labelled, about):
    return LocalPasses(place_of(X, labelled, about.n_jobs), about.n_rows, about.n_classes, about.entropy)


@says_failure
def sampled(X, labelled, about, share):
    return local(X, labelled, about).sample(share)


def given(walk):
    """As a task it can be done again where its result is lost."""
    return walk


@says_failure
def whitened(X, labelled, about, walk):
    there = local(X, labelled, about)
    return there.rows.whiten(walk.inverse, there.order)


@says_failure
def stepped(X, labelled, about, Z, walk, steps):
    """The walk after some steps through this partition."""
    for one in (Z, walk):
        if isinstance(one, Failure):
            return one
    there = local(X, labelled, about)
    there.hold_out(steps.holds_out)
    if not there.n_train:
        return walk
    there.weights = copy.deepcopy(walk.weights)
    there.open(walk.inverse, Z, steps.n_batches)
    shuffle(there.starts, class_streams([about.entropy, 4, labelled.number, steps.number], 1)[0])
    there.part(steps.first, steps.last, steps.step, steps.bias_rate, begins=False)
    return Walk(there.weights, walk.inverse, walk.met + there.met_in(steps.first, steps.last))


def groups_of(sizes):
    """Places of the partitions with rows, in EIGHT groups of about as many rows, in fewer of ENOUGH, or one each."""
    n = min(EIGHT, np.count_nonzero(sizes), max(2, sum(sizes) // ENOUGH))
    groups, rows = [[] for _ in range(n)], np.zeros(n)
    for place in np.flatnonzero(sizes):
        least = int(np.argmin(rows))
        groups[least].append(int(place))
        rows[least] += sizes[place]
    return groups


class OfGroups:
    """A run on a `DaskHome`, with ``about``, whose weights walk through groups of partitions; to be put first among the
    bases."""

    def _group(self):
        sizes = np.array(self.all.sizes)
        self.groups = groups_of(sizes)
        self.largest, self.n_places = max(int(sizes[group].sum()) for group in self.groups), len(self.groups)

    def _places(self):
        return sorted(place for group in self.groups for place in group)

    def _everywhere(self, name, function, places, *columns):
        """Futures of tasks on these partitions; columns are lists by place, or the same for all."""
        home = self.all
        others = [one if isinstance(one, list) else [one] * len(places) for one in columns]
        return home.cluster.everywhere(name, function, *home.at(places), [self.about] * len(places), *others)

    def _told(self, futures):
        """What they come to; the first failure is raised."""
        cluster = self.all.cluster
        try:
            found = cluster.told(futures)
        finally:
            cluster.forget(futures)
        for one in found:
            if isinstance(one, Failure):
                raise one.error()
        return found

    def _sent(self, what):
        """The future of it there, in a list."""
        return self.all.cluster.everywhere("weights", given, [what])

    def _walked(self, walk, function, columns):
        """Where all groups' walks from ``walk`` on end, in their order; a task goes through a partition.

        ``columns(places, walks)``: its further arguments.
        """
        begin = self._sent(walk)
        ends, between = begin * len(self.groups), list(begin)
        for turn in range(max(map(len, self.groups))):
            there = [g for g, group in enumerate(self.groups) if turn < len(group)]
            places = [self.groups[g][turn] for g in there]
            moved = self._everywhere("steps", function, places, *columns(places, [ends[g] for g in there]))
            for g, future in zip(there, moved, strict=True):
                ends[g] = future
            between += moved
        try:
            return self._told(ends)
        finally:
            self.all.cluster.forget(between)


class MultinomialOverWorkers(OfGroups, MultinomialOverPlaces):
    """`MultinomialOverPlaces` on a `DaskHome`."""

    def _open(self, n_classes, entropy):
        self.about, self.number = About(self.n_rows, n_classes, entropy, self.all.n_jobs), 0
        if PlaceCounts(self.all).uneven():
            self.all.mix(entropy)
        self._group()

    def _sampled(self, share):
        return self._told(self._everywhere("sample", sampled, self._places(), share))

    def _spread(self, W, bias):
        """Whiten everywhere; weights are sent with the steps."""
        self.all.between_chunks, walk = self.clock.watch, self._sent(Walk(self.weights, self.fit.inverse, np.zeros(4)))
        rows = self._everywhere("whiten", whitened, self._places(), walk * len(self._places()))
        self.all.keep_there(rows)
        self.Z_there = dict(zip(self._places(), rows, strict=True))
        self.all.cluster.forget(walk)

    def _one_pass(self, step):
        self.number, sums, n_parts = self.number + 1, np.zeros(4), self._n_parts()
        steps = self._steps(step)
        for part in range(n_parts):
            def columns(places, walks, part=part):
                cut = [replace(steps[p], first=steps[p].n_batches * part // n_parts,
                               last=steps[p].n_batches * (part + 1) // n_parts) for p in places]
                return [self.Z_there[p] for p in places], walks, cut

            walks = self._walked(Walk(self.weights, self.fit.inverse, np.zeros(4)), stepped, columns)
            sums += sum(walk.met for walk in walks)
            self.weights = mean_of([walk.weights for walk in walks])
            self.clock.watch()
        self.fit.reads += sums[3] / self.n_rows
        return sums[0], sums[1], sums[2], int(sums[3])

    def _steps(self, step):
        """Of every partition: as many batches of a pass as its group has room for."""
        found, sizes = {}, self.all.sizes
        for group in self.groups:
            rows = sum(sizes[place] for place in group)
            for place in group:
                n = max(1, round(self.n_batches * sizes[place] / rows))
                found[place] = Steps(self.number, n, 0, 0, bool(self.n_held), step * self.n_places, self._bias_rate())
        return found


def mean_of(every):
    """Weights that are the mean of these, added up in their order."""
    found = copy.deepcopy(every[0])
    for name in MOVED:
        total = getattr(every[0], name).astype(float)
        for one in every[1:]:
            total += getattr(one, name)
        getattr(found, name)[...] = total / len(every)
    found.n_done = max(one.n_done for one in every)
    return found
