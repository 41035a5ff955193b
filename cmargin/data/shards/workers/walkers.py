"""Walkers over the partitions of a cluster: weights walk from one partition of a group to the next, a task each.

The means are taken at the client, in the order of the groups. What stays with a worker are the whitened rows of a
partition and what a pass draws there, which are made again where the worker dies, and so are the steps that were under
way. Groups and draws follow from partitions and seed: the bits do not depend on which worker did what.
"""

import copy
from dataclasses import dataclass, replace

import numpy as np

from cmargin.data.failure import Failure
from cmargin.data.shards.workers.tasks import Partition, Round, says_failure


@dataclass
class About:
    """What every task of a fit receives: how to make the work of a partition."""

    work: type
    about: tuple
    n_jobs: int | None

    def work_of(self, X, labelled, share):
        found = self.work(Partition(X, labelled, None, Round((), (), self.n_jobs)), *self.about)
        if share is not None:
            found.share_out(*share)
        return found


@dataclass
class Walk:
    """Weights on their way through a group, without ``base``, and the sums of what was met."""

    weights: object
    met: object


def given(what):
    """As a task it can be done again where its result is lost."""
    return what


@says_failure
def asked(X, labelled, about, share, method, *arguments):
    """What a method of the work answers."""
    return getattr(about.work_of(X, labelled, share), method)(*arguments)


@says_failure
def walked(X, labelled, about, share, Z, drawn, fixed, walk, steps):
    """The walk after its steps through this partition."""
    for one in (Z, drawn, walk):
        if isinstance(one, Failure):
            return one
    work, (inverse, base) = about.work_of(X, labelled, share), fixed
    work.open(inverse, Z)
    work.weights = replace(copy.deepcopy(walk.weights), base=base)
    if drawn is None:
        work.draw(steps.number)
    else:
        work.drawn = drawn
    met = work.walk(steps)
    return Walk(replace(work.weights, base=None), walk.met + met)


def groups_of(sizes, most, enough):
    """Partitions with rows in ``most`` groups of about as many rows, in fewer of ``enough``, or one in each."""
    n = min(most, np.count_nonzero(sizes), max(2, sum(sizes) // enough))
    groups, rows = [[] for _ in range(n)], np.zeros(n)
    for partition in np.flatnonzero(sizes):
        least = int(np.argmin(rows))
        groups[least].append(int(partition))
        rows[least] += sizes[partition]
    return groups


class WorkerWalkers:
    """`Walkers` on a `WorkerSource`, one of every group of partitions, as `groups_of` makes ``groups``.

    ``work``, a type: every task makes ``work(partition, *about)``, and writes to nothing else.
    """

    def __init__(self, source, groups, work, about):
        self.source, self.cluster, self.groups = source, source.cluster, groups
        self.work, self.about = work, About(work, about, source.n_jobs)
        self.rows = [sum(source.sizes[partition] for partition in group) for group in groups]
        walkers = {partition: walker for walker, group in enumerate(groups) for partition in group}
        self.of_shard = [walkers.get(partition, -1) for partition in range(len(source.sizes))]
        self.used = sorted(walkers)
        self.fixed, self.Z, self.drawn = [], dict.fromkeys(self.used), dict.fromkeys(self.used)   # on the workers

    def ask(self, method, *arguments):
        return self._results(self._tasks(method, asked, self.used, None, method, *arguments))

    def share_out(self, shares, parts):
        self.parts = parts
        self.shares = [(share, parts[walker]) for share, walker in zip(shares, self.of_shard, strict=True)]

    def begin(self, inverse, weights):
        self.start(inverse, weights)
        self.Z = self._asked_there("whiten", None, self.fixed * len(self.used))
        self._keep()

    def start(self, inverse, weights):
        self.fixed = self.cluster.everywhere("weights", given, [(inverse, weights.base)])
        self._keep()

    def begin_pass(self, number):
        if self.work.keeps_drawn:
            self.drawn = self._asked_there("draw", [self.shares[partition] for partition in self.used], number)
            self._keep()

    def walk(self, weights, steps):
        def columns(partitions, walks):
            there = [[of[partition] for partition in partitions] for of in (self.shares, self.Z, self.drawn)]
            return *there, self.fixed * len(partitions), walks, steps

        walks = self._ends(Walk(replace(weights, base=None), 0.0), columns)
        mean = self.work.mean_of([walk.weights for walk in walks], self.parts)
        return replace(mean, base=weights.base), sum(walk.met for walk in walks)

    # ------------------------------------------------------------ tasks

    def _tasks(self, name, function, partitions, *columns):
        """Futures of tasks on these partitions; columns are lists by partition, or the same for all."""
        others = [one if isinstance(one, list) else [one] * len(partitions) for one in (self.about, *columns)]
        return self.cluster.everywhere(name, function, *self.source.at(partitions), *others)

    def _asked_there(self, method, share, *columns):
        """Futures by partition of answers that stay on the workers."""
        futures = self._tasks(method, asked, self.used, share, method, *columns)
        return dict(zip(self.used, futures, strict=True))

    def _keep(self):
        """Let these stay on the workers, and what was there before go."""
        self.source.keep_there([*self.fixed, *self.Z.values(), *self.drawn.values()])

    def _results(self, futures):
        """What they come to; the first failure is raised."""
        try:
            found = self.cluster.results(futures)
        finally:
            self.cluster.forget(futures)
        for one in found:
            if isinstance(one, Failure):
                raise one.error()
        return found

    def _ends(self, walk, columns):
        """Where all groups' walks end that begin as ``walk``, in the order of the groups.

        ``columns(partitions, walks)``: the arguments of tasks that take walks through partitions.
        """
        begin = self.cluster.everywhere("weights", given, [walk])
        ends, between = begin * len(self.groups), list(begin)
        for nth in range(max(map(len, self.groups))):
            there = [g for g, group in enumerate(self.groups) if nth < len(group)]
            partitions = [self.groups[g][nth] for g in there]
            moved = self._tasks("steps", walked, partitions, *columns(partitions, [ends[g] for g in there]))
            for g, future in zip(there, moved, strict=True):
                ends[g] = future
            between += moved
        try:
            return self._results(ends)
        finally:
            self.cluster.forget(between)
