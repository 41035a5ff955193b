"""The hinge's optimum and points of its central path, found among the rows near the kink and checked on all rows."""

import numpy as np

from cmargin.solvers.left_out.interior import centre, dual_of_slack
from cmargin.solvers.left_out.problem import FREE, TINY, Factor, curvature_of

EXACT = 1e-10                    # m of the central path, in units of the hinge, at what counts as the optimum
NEAREST = 20                     # rows a column that the optimum is sought among, to begin with
WIDTH = 3.0                      # |1 - z|, in m, up to which rows take part in making up for others
SEARCHES = 12                    # of the optimum, each among more rows


class Nearness:
    """How far rows are from the kink, in units of how far they move: |1 - z_j| / sqrt(g_j' M^-1 g_j).

    M is the curvature near the kink. Rows of rare columns are long in this metric, and move far. By Cauchy and Schwarz
    a change dv of the weights takes no row over the kink whose number is above sqrt(dv' M dv).
    """

    def __init__(self, problem, z, count):
        counted = np.flatnonzero(problem.weight > 0)
        e = np.abs(1 - z)
        m = max(np.partition(e[counted], min(count, len(counted)) - 1)[min(count, len(counted)) - 1] / NEAREST, EXACT)
        a = np.clip(dual_of_slack(1 - z, m), 1e-12, 1 - 1e-12)
        curved = 1 / (m / (1 - a) ** 2 + m / a**2)
        M = curvature_of(problem, counted[e[counted] <= WIDTH * NEAREST * m], curved)
        self.factor, self.length = Factor(M), np.empty(len(z))
        for some, G in problem.rows.blocks(np.arange(len(z))):
            self.length[some] = np.maximum(np.linalg.norm(self.factor.half(G.T), axis=0), TINY**0.5)
        self.counted = counted

    def nearest(self, z, count):
        """Places of ``count`` rows of positive weight, ascending, and the least number of any other."""
        if count >= len(self.counted):
            return self.counted, np.inf
        away = np.abs(1 - z[self.counted]) / self.length[self.counted]
        order = np.argpartition(away, count)
        return np.sort(self.counted[order[:count]]), away[order[count]]

    def moved(self, dv):
        return self.factor.length(dv)        # of the matrix that lengths are of, rounding included


class Point:
    """A point of the central path: weights, dual variables of all rows, their cost, and the factor of its curvature."""

    def __init__(self, problem, found, near, G, sides, linear):
        """``near``: places of the rows G it is sought among; ``sides``: (n,) a of the others, ``linear`` their sum."""
        self.v, self.near, self.G, self.linear, self.compliance = found.v, near, G, linear, found.compliance
        self.weight, self.slack = problem.weight[near], 1 - G @ found.v
        self.a, self.cost, self.place = sides.copy(), np.zeros(len(sides)), np.full(len(sides), -1, np.intp)
        self.a[near], self.place[near] = found.a, np.arange(len(near))
        self.cost[near] = self.weight * problem.loss.gap(1 - self.slack, found.a)

    def crossed(self, problem, places, z):
        """Which of the rows at ``places``, of margins z, are on another side of the kink than was thought."""
        apart = self.place[places] < 0
        places = places[apart]
        self.cost[places] = problem.weight[places] * problem.loss.gap(z[apart], self.a[places])
        return places[self.cost[places] > 0]

    def prepare(self, problem):
        """What bounds need of it."""
        self.rho = self.linear + (self.weight * self.a[self.near]) @ self.G - problem.penalty * self.v
        self.curvature = Curvature(problem, self.G, self.a[self.near], self.compliance, self.slack, self.weight,
                                   self.rho)
        self.gap = self.cost.sum() + self.curvature.of_rho
        self.solved = None
        return self

    def gram(self, held):
        """g_j' H^-1 g_k of the rows k near the kink, for the places j of ``held``."""
        if self.solved is None:
            self.solved = self.curvature.factor.solve(self.G.T)
        return self.G[held] @ self.solved


class Curvature:
    """H = sum_j r_j C_j g_j g_j' + D of the rows near the kink, and how their dual variables make up for other rows.

    What rounding leaves in the column of a free intercept, which no penalty measures, one row takes over that has more
    room than others, the anchor: so a bound holds however wrong the solutions with H are.
    """

    def __init__(self, problem, G, a, compliance, slack, weight, rho):
        """``slack``: 1 - z of the rows; ``rho``: what is left of the stationarity condition."""
        self.G, self.weight, self.compliance, self.slack, self.l2 = G, weight, compliance, slack, problem.l2
        c = weight * compliance
        self.of_rows = (G * c[:, None]).T @ G
        self.factor = Factor(self.of_rows + np.diag(problem.penalty))
        self.of_slack = (c * slack) @ G
        self.rise, self.fall = np.maximum(1 - a, TINY), np.maximum(a, TINY)
        room = weight * np.minimum(a, 1 - a)
        self.anchor = int(room.argmax()) if (problem.penalty == 0).any() else -1
        self.room = room[self.anchor] if self.anchor >= 0 else np.inf
        excess, self.rho = self.anchored(rho)
        self.of_rho = self.rho @ self.rho / (2 * self.l2)
        if self.anchor >= 0:
            within = abs(excess) <= FREE * self.room
            self.of_rho = self.of_rho + abs(excess * slack[self.anchor]) if within else np.inf

    def anchored(self, rest):
        """What of ``rest``, (..., n_columns), the anchor takes over, and what that leaves."""
        if self.anchor < 0:
            return 0.0, rest
        row = self.G[self.anchor]
        excess = rest[..., -1] / row[-1]
        rest = rest - np.multiply.outer(excess, row)
        rest[..., -1] = 0.0
        return excess, rest

    def made_up(self, rows, own):
        """How others make up for ``rows``, (k, n_columns), at the places ``own`` of their own, -1 for none.

        Returns, of a row made up for: ``most`` of it that there is room for; the square of what penalties pay, and by
        how much the gap falls beside that, both (k,), as `HingeLeftOut.from_below` says.
        """
        U = self.factor.solve_rows(rows)
        S = U @ (self.G * self.compliance[:, None]).T
        done, falls, inside = U @ self.of_rows, U @ self.of_slack, np.flatnonzero(own >= 0)
        if len(inside):                          # without the row's own curvature, of which rounding may leave all
            places = own[inside]
            left = 1 - self.weight[places] * np.einsum("ij,ij->i", rows[inside], U[inside]) * self.compliance[places]
            S[inside] /= np.maximum(left, TINY)[:, None]
            S[inside, places] = 0.0
            changes = S[inside] * self.weight
            done[inside], falls[inside] = changes @ self.G, changes @ self.slack
        excess, rest = self.anchored(rows - done)
        if self.anchor >= 0:
            S[:, self.anchor] += excess / self.weight[self.anchor]
            falls = falls + excess * self.slack[self.anchor]
        S /= self.rise
        needed = S.max(axis=1, initial=0.0)
        S *= -self.rise / self.fall
        needed = np.maximum(np.maximum(needed, S.max(axis=1, initial=0.0)), TINY)
        most = np.where((own >= 0) & (own == self.anchor), 0.0, (1 - FREE) / needed)
        return most, np.einsum("ij,ij->i", rest, rest) / self.l2, falls + rest @ self.rho / self.l2


def below(problem, z):
    """The sum of the rows whose margins are below 1."""
    return problem.rows.sums(problem.weight * (z < 1))


def among(problem, v, z, near, m, total):
    """`Point` of the central path, sought among the places ``near``, other rows on the side that z says.

    ``total``: what `below` says of z.
    """
    sides, G = (z < 1).astype(float), problem.rows.take(near)
    linear = total - (problem.weight[near] * sides[near]) @ G
    sides[near] = 0.0
    return Point(problem, centre(G, problem.weight[near], problem.penalty, linear, v, m), near, G, sides, linear)


def optimum(problem, v, z=None, total=None, nearness=None):
    """`Point` at which the gap is rounding, from weights near the optimum, and the `Nearness` there.

    What is known already need not be found: the margins z, what `below` says of them, and the nearness.
    """
    z = problem.rows.margins(v) if z is None else z
    most = NEAREST * problem.rows.n_columns
    nearness = nearness or Nearness(problem, z, most)
    near, _ = nearness.nearest(z, most)
    near = near[problem.weight[near] > 0]
    for _ in range(SEARCHES):
        total = below(problem, z) if total is None else total
        point = among(problem, v, z, near, EXACT, total)
        point.z = problem.rows.margins(point.v)
        crossed = point.crossed(problem, np.arange(len(z)), point.z)
        if not len(crossed):
            break
        if problem.objective(point.v, point.z) < problem.objective(v, z):
            v, z, total = point.v, point.z, None
        if len(crossed) > most:
            nearness = Nearness(problem, z, most)
            near = np.union1d(near, nearness.nearest(z, 4 * len(near))[0])
        near = np.union1d(near, crossed)
    return point.prepare(problem), nearness


def with_room(problem, best, share, total, nearness):
    """`Point` of the central path near the optimum ``best``, with ``share`` rows a column within `WIDTH` m.

    ``total``: what `below` says of the optimum's margins; ``nearness``: `Nearness` there, of which it is known which
    rows may have crossed the kink.
    """
    e = np.where(problem.weight > 0, np.abs(1 - best.z), np.inf)
    count = min(int(share * problem.rows.n_columns), np.count_nonzero(problem.weight) - 1)
    m = max(np.partition(e, count)[count] / WIDTH, 10 * EXACT)
    near = np.flatnonzero(e <= WIDTH * m)
    for _ in range(SEARCHES):
        point = among(problem, best.v, best.z, near, m, total)
        reached = np.flatnonzero(e <= nearness.moved(point.v - best.v) * nearness.length)
        crossed = point.crossed(problem, reached, problem.rows.take(reached) @ point.v)
        if not len(crossed):
            break
        near = np.union1d(near, crossed)
    return point.prepare(problem)
