"""Which rows are near the hinge: those beside which all others may be seen as straight lines.

A row is the nearer the less w has to change for it to cross the hinge: its slack u beside its size, the measure
sum_j x_ij^2 / h_j, h_j the curvature of column j. So rows with a rare column are near from further off. Besides, a
row that did cross on the way to another point is near, those first that cross first.

Limits are found by counts of numbers in bins of a sixteenth of a power of two, so that the same rows are chosen
wherever they are.
"""

from dataclasses import dataclass

import numpy as np

from cmargin._core.rows._working_set import are_below, count, count_distances, crossings, sum_near, with_nearest

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
    """Let rows be near: whether others than the last time are, how many there are, the mean of their absolute u.

    Parameters
    ----------
    ask : callable
        ``ask(method, *arguments)``: what all places say, a list; methods of `Nearest`.
    n_rows : int
        Of all places.
    share : float
        The part of them that is chosen, about; so many again may be near as they crossed.
    most : float
        With those chosen before.
    moved : bool
        The straight lines are to touch the hinge where the last look was.
    """
    found = ask("begin", moved)
    near, crossed = zip(*ask("keep_below", limit_of(found, share * n_rows) if moved else None), strict=True)
    room = max(0.0, min(most * n_rows - sum(near), share * n_rows))
    new, near, distance = np.sum(ask("keep_crossed", limit_of(crossed, room)), axis=0)
    return bool(moved or new), int(near), float(distance / max(1, near))


@dataclass
class Answered:
    """An answer that was there at once; elsewhere it may have to be waited for."""

    answer: object


class Nearest:
    """Of the rows in one place.

    Attributes
    ----------
    norms : (n,) array, or None until they are measured
    near : (n,) bool array
        Those chosen.
    u : (n,) array
        Slacks where the straight lines touch the hinge.
    crossed, when : arrays
        Places of the rows that are on another side where the last look was, and after which part of the way.
    """

    norms = near = u = crossed = when = None

    def begin(self, now, moved):
        """Rows are at slacks ``now``; ``moved``: the lines are to touch there. What is counted of distances."""
        if self.near is None:
            self.near = np.zeros(len(now), bool)
        self.crossed, self.when = crossings(now if self.u is None else self.u, now, self.near)
        if not moved:
            return NOTHING
        self.u = now
        return count_distances(self.u, self.norms)

    def keep_below(self, limit):
        """The nearest are near, if there is a limit. How many; what is counted of when others crossed."""
        if limit is not None:
            self.near = with_nearest(self.near, self.u, self.norms, limit)
            far = ~self.near[self.crossed]
            self.crossed, self.when = self.crossed[far], self.when[far]
        return np.count_nonzero(self.near), count(self.when)

    def keep_crossed(self, limit):
        """Near are those that crossed before a limit. How many, how many are near, the sum of their |u|."""
        new = self.crossed[are_below(self.when, limit)]
        self.near = self.near.copy()             # what a task is given it must not write to
        self.near[new] = True
        self.crossed = self.when = None
        return len(new), *sum_near(self.u, self.near)

    def beside(self, sampled):
        """Places of the near rows and of those ``sampled``: (places, probabilities); for how many each stands."""
        index, weights = np.flatnonzero(self.near), 1.0
        if sampled is not None:
            rows, chance = sampled
            stands_for = np.ones(len(self.near))
            stands_for[rows] = np.where(self.near[rows], 1.0, 1 / chance)
            index = np.union1d(index, rows)
            weights = stands_for[index]
        return index, weights

    @property
    def nbytes(self):
        return sum(part.nbytes for part in vars(self).values() if isinstance(part, np.ndarray))


class ChoosesNearest:
    """What passes over the rows of one place have in common of it, beside `n_rows`, `margins`, ``code`` and ``blocks``,
    compiled code's rows; those on a device have measures of their own."""

    nearest = None                 # `Nearest`, where `nearest_apart` is foreseen

    def foresee_nearest(self):
        self.nearest = Nearest()

    def forget_nearest(self):
        self.nearest = None

    def take_measures(self):
        norms = self.blocks.norms
        self.blocks.forget_measures()
        return norms

    def mean_measure(self):
        mean = float(np.abs(self.code) @ self.blocks.norms / self.total_weight)
        self.let_measures_go()
        return mean

    def let_measures_go(self):
        """They are not wanted again, unless they say which rows are near."""
        norms = self.take_measures()
        if self.nearest is not None:
            self.nearest.norms = norms

    def ask_nearest(self, method, *arguments):
        """One of the questions of `choose`."""
        if method == "begin":
            if self.measures_are_wanted:
                self.let_measures_go()
            margins = self.margins()
            arguments = np.subtract(1, margins, out=margins), *arguments
        return getattr(self.nearest, method)(*arguments)

    def choose_nearest(self, *arguments):
        """`choose`, of these rows alone."""
        return choose(lambda *asked: [self.ask_nearest(*asked)], self.n_rows, *arguments)

    @property
    def measures_are_wanted(self):
        """Whether those that the next look makes say which rows are near."""
        return self.nearest is not None and self.nearest.norms is None

    def kept_nearest(self):
        """For a checkpoint, between two choices."""
        nearest = self.nearest
        return None if nearest is None else dict(norms=nearest.norms, near=nearest.near, u=nearest.u)

    def take_back_nearest(self, kept):
        self.forget_nearest()
        if kept is not None:
            self.foresee_nearest()
            vars(self.nearest).update(kept)
