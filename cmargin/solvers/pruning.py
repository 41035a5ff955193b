"""Which weights may be 0 while objectives stay within a tolerance of what bounds them from below.

The weights of a problem go in the order of what each costs alone, H_jj w_j^2 / 2, where H is the Hessian at w (LeCun,
Denker and Solla, Optimal brain damage, 1990). How many go is found by evaluating: costs do not add up where columns go
together.
"""

import numpy as np
import scipy.sparse as sp


class Costliest:
    """Of the weights of many problems, ``shape`` (k, m), the ``n`` that cost most alone, in whatever order they come.

    No more than 2 n are held, and those of the problems that come.
    """

    def __init__(self, shape, n):
        self.shape, self.n, self.least, self.held, self.parts = shape, n, 0.0, 0, []

    def add(self, problems, W, bend):
        """Weights ``W`` (B, m) of ``problems`` (B,) and the curvature ``bend`` (B, m) of their objectives in each."""
        cost = np.where(W == 0, -1, bend * np.square(W, dtype=float) / 2)
        found = np.flatnonzero(cost >= self.least)
        at, places = np.divmod(found.astype(np.int32), self.shape[1])
        self.parts.append((cost.ravel()[found], problems.astype(np.int32)[at], places, W[at, places]))
        self.held += len(at)
        if self.held > 2 * self.n:
            self._drop()

    def _drop(self):
        parts = [np.concatenate(each) for each in zip(*self.parts, strict=True)]
        if len(parts[0]) > self.n:
            self.least = np.partition(parts[0], -self.n)[-self.n]
            stay = np.flatnonzero(parts[0] >= self.least)
            parts = [each[stay] for each in parts]
        self.held, self.parts = len(parts[0]), [parts]

    def chosen(self):
        """The costliest weights, as a CSR matrix; ties go to the first problems and columns."""
        if self.parts:
            self._drop()
        cost, problems, places, w = self.parts[0] if self.parts else np.empty((4, 0))
        stay = np.lexsort((places, problems, -cost))[:self.n] if len(cost) > self.n else slice(None)
        return sp.csr_matrix((w[stay], (problems[stay], places[stay])), shape=self.shape)


def pruned(W, bend, objective, allowed):
    """``W`` (m, B), of B problems, with as many zeros as are found to leave their objectives at most ``allowed`` (B,).

    ``bend`` (m, B): the curvature of the objective in every weight; ``objective(W)``: (B,), of which NaN and infinity
    are too much.
    """
    at_first, each = objective(W), np.arange(W.shape[1])
    cost = bend * np.square(W, dtype=float) / 2
    order = np.argsort(np.where(W == 0, -1, cost), axis=0, kind="stable")        # zeros before what costs nothing
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(len(W))[:, None], axis=0)
    foreseen = np.cumsum(np.take_along_axis(cost, order, axis=0), axis=0)
    room = allowed - at_first
    low = np.count_nonzero(W == 0, axis=0)                   # so many may go, and no more than `high`
    high = np.where(room > 0, len(W), low)
    below, above = np.zeros((2, len(each))), np.full((2, len(each)), np.inf)      # what these cost: foreseen, and found
    for _ in range(8):                                       # the first four bring most
        if not (low < high).any():
            break
        count = np.clip(np.sum(foreseen <= _worth(below, above, room), axis=0), np.minimum(low + 1, high), high)
        excess = objective(np.where(rank < count, 0, W)) - at_first
        fits, open_ = excess <= room, low < high
        found = np.array([foreseen[count - 1, each], excess])
        below, above = np.where(open_ & fits, found, below), np.where(open_ & ~fits, found, above)
        low, high = np.where(fits, np.maximum(low, count), low), np.where(fits, high, np.maximum(low, count - 1))
    return np.where(rank < low, 0, W).astype(W.dtype)


def _worth(below, above, room):
    """(B,) the foreseen cost at which the one found is about ``room``: a power of it between two points, or a multiple.

    ``below``, ``above``: (2, B) foreseen and found costs, of less and of more than the room; 0 and infinite: none.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        one = np.where(below[1] > 0, below, above)
        multiple = np.where(np.isfinite(one[1]), one[0] * room / one[1], room)
        part = np.log(room / below[1]) / np.log(above[1] / below[1])
        power = below[0] * (above[0] / below[0])**part
    return np.where((below > 0).all(axis=0) & np.isfinite(above).all(axis=0) & np.isfinite(power), power, multiple)
