"""The bounds of single left-out margins by smooth losses, from the rows that matter to each, whose gaps are summed.

The other rows, by far the most, are bounded together as in `one_step`: so a row costs what some thousand rows cost.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cmargin.solvers.left_out.one_step import entropy
from cmargin.solvers.left_out.problem import TINY, Factor, Logistic, curvature_of

HELD = 12                        # rounds in which rows that would leave their domain keep their dual variables
BEYOND = 0.995                   # quantile of the leverages above which a row's logistic gap is summed
RIGHT = 1e-4                     # part of g_i that rounding may leave in penalised columns, whose cost is counted
ROUNDING = 1e-9                  # the same in a free intercept's column, where it is not
LEAST = 1e-6                     # part of a row that others make up for at first, and of that, at least
SIDES = np.array([1.0, -1.0])


class Metric:
    """Lengths sqrt(g'H^-1 g) of all rows, and H's factor: no |g'u| is above the length of g times sqrt(u'H u)."""

    def __init__(self, steps):
        """``steps``: `Steps` with the curvature of all rows."""
        self.factor, self.lengths = steps.factor, np.sqrt(np.maximum(steps.lengths, 0.0))
        self.beyond = np.quantile(self.lengths[steps.counted], BEYOND)

    def may_matter(self, problem, z, most):
        """Places of rows whose gaps have to be summed, where margins change by ``most`` times their length at most."""
        if problem.loss is Logistic:
            return np.flatnonzero(self.lengths > self.beyond)
        return np.flatnonzero(np.abs(1 - z) <= most * self.lengths)


@dataclass
class Direction:
    """u = H^-1 g_i, of the Hessian H without row i and the rows that are held."""

    row: Any                     # g_i
    u: Any
    rest: Any                    # g_i - H u, which is rounding
    curved: float                # sum_j r_j C_j (g_j'u)^2
    length: float                # of u, in the units of the metric


class RowByRow:
    """Bounds of margins from weights ``v`` near an optimum, and margins ``z``, one row at a time."""

    def __init__(self, problem, v, z, metric):
        self.problem, self.v, self.z, self.metric = problem, v, z, metric
        self.a, self.C = problem.loss.dual(z), problem.loss.curvature(z)
        counted = np.flatnonzero((problem.weight > 0) & (self.C > 0))
        self.H = curvature_of(problem, counted, self.C)
        self.factor = Factor(self.H)
        self.rho = problem.rows.sums(problem.weight * self.a) - problem.penalty * v

    def direction(self, row, held):
        """`Direction` of ``row``, g_i, by Woodbury's formula; ``held``: places of rows, the first of which is i."""
        G = self.problem.rows.take(held)
        c = (self.problem.weight * self.C)[held]
        U = self.factor.solve(G.T)
        left = np.eye(len(held)) - c[:, None] * (G @ U)

        def times(x):
            return self.H @ x - G.T @ (c * (G @ x))

        def solved(b):
            x = self.factor.solve(b)
            return x + U @ np.linalg.solve(left, c * (G @ x))
        u = solved(row)
        u = u + solved(row - times(u))
        moved = times(u)
        return Direction(row, u, row - moved, max(u @ moved - (self.problem.penalty * u) @ u, 0.0),
                         self.metric.factor.length(u))

    def bounds(self, i, given, unit):
        """Margin of row i, and what proves to be its limits; ``given``: r_i a_i, 0 of weights found without the row.

        The other rows make up for ``given`` + nu of the row, nu at most ``unit`` to either side.
        """
        most = LEAST * unit
        found = self.held(i, given, most)
        if found is None:
            return np.nan, -np.inf, np.inf
        nu = self.best(found, given)
        wider = self.held(i, given, min(2 * nu, unit)) if nu > most else None
        if wider is not None:
            found, most, nu = wider, min(2 * nu, unit), self.best(wider, given)
        nu, (to, seen, S, c) = min(max(nu, LEAST * most), most), found
        below, above = (self.gap(to, seen, S, c, given, side * nu) / nu for side in SIDES)
        z = to.row @ self.v - given * to.row @ to.u
        return z, z - below, z + above

    def best(self, found, given):
        """The nu of the narrowest bound, if no row is in its way."""
        return np.sqrt(2 * self.gap(*found, given, 0.0) / max(found[0].row @ found[0].u, TINY))

    def held(self, i, given, unit):
        """`Direction`, places of the rows that may matter, their g'u and C; None where some leave their domain."""
        problem, row = self.problem, self.problem.rows.take(np.array([i]))[0]
        held = np.array([i])
        for _ in range(HELD):
            try:
                to = self.direction(row, held)
            except np.linalg.LinAlgError:
                return None
            if not (np.abs(to.rest) <= np.where(problem.penalty == 0, ROUNDING, RIGHT) * np.abs(row).max()).all():
                return None
            seen = np.union1d(self.metric.may_matter(problem, self.z, (given + unit) * to.length), held)
            seen = seen[(seen != i) & (problem.weight[seen] > 0)]
            S = problem.rows.take(seen) @ to.u
            c = np.where(np.isin(seen, held), 0.0, self.C[seen])
            rise, fall = problem.loss.room(self.a[seen])
            changes = np.multiply.outer(given + SIDES * unit, c * S)
            beyond = ((changes > rise) | (changes < -fall)).any(axis=0)
            if not beyond.any():
                return to, seen, S, c
            held = np.concatenate([held, seen[beyond]])
        return None

    def gap(self, to, seen, S, c, given, nu):
        """Of the weights v - given u, and dual variables a_j + (given + nu) C_j g_j'u."""
        problem, weight = self.problem, self.problem.weight[seen]
        rho = self.rho - given * to.rest - nu * (problem.penalty * to.u + to.rest)
        exact = weight @ problem.loss.gap(self.z[seen] - given * S, self.a[seen] + (given + nu) * c * S)
        others = max(to.curved - weight @ (c * S * S), 0.0)
        return exact + self.of_others(to, given, abs(nu)) * others + problem.cost_of(rho)

    def of_others(self, to, given, nu):
        """What the gaps of rows that are not looked at are at most, in parts of r_j C_j (g_j'u)^2."""
        if self.problem.loss is Logistic:
            return entropy(given, to.length * self.metric.beyond, nu)
        return nu**2 / 2
