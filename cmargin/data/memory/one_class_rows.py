"""Rows in memory as the dual of the one-class problem sees them."""

import numpy as np

from cmargin._core.rows._dual_rows import DualBlocks
from cmargin.data.loss import HINGE
from cmargin.data.memory.dual_rows import DualRows


class OneClassRows(DualBlocks):
    """Seen from their mean mu, sparse ones too: all rows lean towards it, and sweeps would go along it for ever.

    With dual variables of the sum A, sum a x = W + A mu for W = sum a (x - mu), and |sum a x|^2 / 2 is what
    |W|^2 / 2 - sum a t lacks of A^2 |mu|^2 / 2, t_i = -A <x_i - mu, mu>: the hinge's dual with a target for every row.
    """

    def __init__(self, source, weights, nu, least):
        """``weights`` (n_rows,); ``least``: objective below whose size a gap is relative to it."""
        shared = DualRows(source, True, True, weights, 1 / weights.sum(), HINGE, mean_from=0.0)
        n, held, square = len(weights), nu * weights.sum(), float(shared.mean @ shared.mean)
        self.weights, self.held, self.center, self.along_mean = weights, held, shared.mean, shared.x_dot_mean
        self.squares = np.maximum(shared.square - shared.bias**2 + 2 * shared.x_dot_mean - square, 0.0)    # |x|^2
        self.target = held * (square - shared.x_dot_mean)
        super().__init__(shared.rows, np.ones(n), weights, np.zeros(n), shared.square, shared.bias, True,
                         shared.density, shared.x_dot_mean, shared.mean, self.target)
        self.hold_sum(held, held * held * square / 2, least * held * held)
        self.everything, self.bias, self.density = np.arange(n), shared.bias, shared.density

    def sum_of(self, a):
        """(n_features + 1,) sum a (x - mu), and 0."""
        w, used = np.zeros(len(self.center) + 1), np.flatnonzero(a)
        self.add(used, a[used], w)
        w[-1] = 0
        return w

    def whole(self, w):
        """(n_features,) sum a x from `sum_of` dual variables of the sum that they have to have."""
        return w[:-1] + self.held * self.center

    def scores(self, w):
        """(n_rows,) <sum a x, x_i> from `sum_of` such."""
        return self.products(self.everything, w) + (w[:-1] @ self.center + self.held * self.along_mean)

    def plane(self, scores):
        """The rho that is best for these ``scores`` (n_rows,): so many rows lie below as dual variables add up to."""
        if (self.weights == 1).all():
            place = min(len(scores), int(np.ceil(self.held))) - 1
            return float(np.partition(scores, place)[place])
        order = np.argsort(scores)
        place = np.searchsorted(np.cumsum(self.weights[order]), self.held)
        return float(scores[order[min(place, len(order) - 1)]])

    def lowest(self, scores):
        """(n_rows,) dual variables of the right sum: those of the lowest ``scores`` at their bounds."""
        rho = self.plane(scores)
        a, on_it = np.where(scores < rho, self.weights, 0.0), np.flatnonzero(scores == rho)
        before = np.cumsum(self.weights[on_it]) - self.weights[on_it]
        a[on_it] = np.clip(self.held - a.sum() - before, 0.0, self.weights[on_it])
        return a

    def balanced(self, a):
        """Dual variables (n_rows,) of the right sum near ``a``: those between their bounds give or take first."""
        for between in (True, False):
            missing = self.held - a.sum()
            room = self.weights - a if missing > 0 else a
            if between:
                room = np.where((a > 0) & (a < self.weights), room, 0.0)
            there = room.sum()
            if there > 0:
                a = a + np.sign(missing) * min(1.0, abs(missing) / there) * room
        return a
