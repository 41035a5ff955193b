"""How the working set is chosen: the rows nearest the hinge, beside which all others are held as straight lines.

A row is the nearer the less w has to change for it to cross the hinge: its slack u beside its size, the measure
sum_j x_ij^2 / h_j, h_j the curvature of column j. So rows with a rare column are chosen from further off. Besides, a
row that did cross on the way to another point is chosen, those first that cross first.

Limits are found by counts of numbers in bins of a sixteenth of a power of two, so that the same rows are chosen
wherever they are.
"""

from dataclasses import dataclass

import numpy as np

from cmargin._core.rows._working_set import are_below, count, count_distances, crossings, sum_of_members, with_nearest

BEYOND = 1.5                   # times as many rows as are wanted may be taken, for the sake of whole bins
NOTHING = np.zeros(0, np.intp), np.zeros(0, np.intp)       # counted


def limit_of(counted_parts, wanted):
    """The bin below which there are about so many of the numbers that were counted, part by part."""
    there, counts = (np.concatenate(column) for column in zip(*counted_parts, strict=True))
    there, place = np.unique(there, return_inverse=True)
    below = np.cumsum(np.bincount(place, counts)) if len(there) else np.zeros(0)
    at = int(np.searchsorted(below, wanted, side="right"))
    if at == len(there):
        return int(there[-1]) + 1 if at else 0
    return int(there[at]) + (below[at] <= BEYOND * wanted)


def choose(ask, n_rows, share, most, moved):
    """Choose a working set: whether it changed, how many rows are in it, the mean of their absolute u.

    ``ask(method, *arguments)``: what all places say, a list; methods of `WorkingSet`. About a ``share`` of the
    ``n_rows`` of all places is chosen; so many again may be in it as they crossed, ``most`` of them with those chosen
    before. ``moved``: the straight lines are to touch the hinge at the last evaluation.
    """
    found = ask("begin", moved)
    members, crossed = zip(*ask("keep_below", limit_of(found, share * n_rows) if moved else None), strict=True)
    room = max(0.0, min(most * n_rows - sum(members), share * n_rows))
    new, members, distance = np.sum(ask("keep_crossed", limit_of(crossed, room)), axis=0)
    return bool(moved or new), int(members), float(distance / max(1, members))


@dataclass
class Answered:
    """An answer that was there at once; elsewhere it may have to be waited for."""

    answer: object


class WorkingSet:
    """Of the rows in one place."""

    norms = members = None       # (n,), None until they are measured; (n,) bool, those chosen
    u = None                     # (n,) slacks where the straight lines touch the hinge
    crossed = when = None        # rows on another side at the last evaluation, and after which part of the way

    def begin(self, now, moved):
        """Rows are at slacks ``now``; ``moved``: the lines are to touch there. What is counted of distances."""
        if self.members is None:
            self.members = np.zeros(len(now), bool)
        self.crossed, self.when = crossings(now if self.u is None else self.u, now, self.members)
        if not moved:
            return NOTHING
        self.u = now
        return count_distances(self.u, self.norms)

    def keep_below(self, limit):
        """Make the nearest rows members, if there is a limit; (how many are, counts of when other rows crossed)."""
        if limit is not None:
            self.members = with_nearest(self.members, self.u, self.norms, limit)
            far = ~self.members[self.crossed]
            self.crossed, self.when = self.crossed[far], self.when[far]
        return np.count_nonzero(self.members), count(self.when)

    def keep_crossed(self, limit):
        """Make rows that crossed before the limit members; (number of these, number of members, sum of their |u|)."""
        new = self.crossed[are_below(self.when, limit)]
        self.members = self.members.copy()       # what a task is given it must not write to
        self.members[new] = True
        self.crossed = self.when = None
        return len(new), *sum_of_members(self.u, self.members)

    def beside(self, sampled):
        """Places of the members and of those ``sampled``: (places, probabilities); for how many each stands."""
        index, weights = np.flatnonzero(self.members), 1.0
        if sampled is not None:
            rows, chance = sampled
            stands_for = np.ones(len(self.members))
            stands_for[rows] = np.where(self.members[rows], 1.0, 1 / chance)
            index = np.union1d(index, rows)
            weights = stands_for[index]
        return index, weights

    @property
    def nbytes(self):
        return sum(part.nbytes for part in vars(self).values() if isinstance(part, np.ndarray))


class ChoosesWorkingSet:
    """What passes over the rows of one shard have in common for it. It uses `n_rows`, `margins`, ``signed_weight`` and
    ``blocks``, compiled code's rows; rows on a device have measures of their own."""

    working_set = None             # `WorkingSet`, where `gather_working_set` is foreseen

    def foresee_working_set(self):
        self.working_set = WorkingSet()

    def forget_working_set(self):
        self.working_set = None

    def take_measures(self):
        norms = self.blocks.norms
        self.blocks.forget_measures()
        return norms

    def mean_measure(self):
        mean = float(np.abs(self.signed_weight) @ self.blocks.norms / self.total_weight)
        self.let_measures_go()
        return mean

    def let_measures_go(self):
        """Give up the rows' measures, unless the working set is chosen by them: then it keeps them."""
        norms = self.take_measures()
        if self.working_set is not None:
            self.working_set.norms = norms

    def ask_working_set(self, method, *arguments):
        """One of the questions of `choose`."""
        if method == "begin":
            if self.measures_are_wanted:
                self.let_measures_go()
            margins = self.margins()
            arguments = np.subtract(1, margins, out=margins), *arguments
        return getattr(self.working_set, method)(*arguments)

    def choose_working_set(self, *arguments):
        """`choose`, of these rows alone."""
        return choose(lambda *asked: [self.ask_working_set(*asked)], self.n_rows, *arguments)

    @property
    def measures_are_wanted(self):
        """Whether the next evaluation is to measure the rows for the choice of the working set."""
        return self.working_set is not None and self.working_set.norms is None

    def kept_working_set(self):
        """For a checkpoint, between two choices."""
        working_set = self.working_set
        return None if working_set is None else dict(norms=working_set.norms, members=working_set.members,
                                                     u=working_set.u)

    def take_back_working_set(self, kept):
        self.forget_working_set()
        if kept is not None:
            self.foresee_working_set()
            vars(self.working_set).update(kept)
