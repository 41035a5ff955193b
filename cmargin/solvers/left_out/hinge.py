"""Left-out margins by the hinge: bounds from points of the central path, then paths of the rows where these do not do.

At the optimum a row that is left out is made up for by the rows at the kink, as many as there are columns, whose dual
variables have limits: followed exactly this is a path with several breakpoints a row (`vertex`). But most signs want no
path. Any dual variables within their limits prove a bound (`problem`), and at a point of the
central path all rows near the kink have room to both sides, a little dearer than the optimum. There one linear map,
that of the curvature of the barrier, says for all rows how others would make up for them, and how far there is room.
"""

from dataclasses import dataclass

import numpy as np

from cmargin.solvers.left_out.central_path import NEAREST, Curvature, below, optimum, with_room
from cmargin.solvers.left_out.interior import centre
from cmargin.solvers.left_out.problem import FREE, TINY
from cmargin.solvers.left_out.vertex import Vertex

SHARES = (3.0, 10.0)             # rows with room, a column, of the points of the central path that bounds come from
AT_ONCE = 512                    # rows that are bounded at a time
FOLLOWED = (5.0, 20.0, 40.0)     # rows a column that paths see
MOST_SEEN = 4400                 # rows that paths see at most: a square matrix is made of them
ROUNDS = 8                       # in which rows at a limit are held there
ROOM = 0.98                      # part of the way to a limit where they are held
SOLVED = (1e-8, 1e-10, 1e-13)    # m at which the problem without a row is solved, until its sign is known


class HingeLeftOut:
    """Bounds ``low`` and ``high``, (n,), of the margins that rows have when they are left out."""

    def __init__(self, problem, v):
        """``v``: weights near the optimum."""
        self.problem = problem
        self.low, self.high = np.full(problem.rows.n_rows, -np.inf), np.full(problem.rows.n_rows, np.inf)
        self.best, self.nearness = optimum(problem, v)
        self.total = below(problem, self.best.z)
        self.approximate = self.best.z.copy()
        self.points, self.parts = [], {}
        self.settle()

    @staticmethod
    def wants_near_start(n_rows, n_columns):
        """Whether the optimum is first sought among some of the rows: those near the kink by weights near it."""
        return n_rows > NEAREST * n_columns

    def stages(self):
        """Pairs of a name and what narrows the bounds of rows, (k,) places, in the order of their price."""
        yield "bounded", self.bound_beyond
        for share in SHARES:
            yield "bounded", lambda rows, share=share: self.bound(share, rows)
        for share in FOLLOWED:
            yield "followed", lambda rows, share=share: self.follow(share, rows)
        for at in range(len(SHARES)):
            yield "refined", lambda rows, at=at: [self.refine(self.points[at], i) for i in rows]
        for m in SOLVED:
            yield "solved", lambda rows, m=m: [self.solve(i, m) for i in rows]

    # ------------------------------------------------------------ bounds of many rows

    def settle(self):
        """Bounds by the optimum alone: from above of rows with a > 0, both of rows beyond the kink, whose a is 0.

        The weights of the optimum are known up to a ball; a free intercept, which has none, is held by one row at the
        kink, the anchor, that makes up for the column of the row.
        """
        problem, best = self.problem, self.best
        given, n = problem.weight * best.a, problem.rows.n_rows
        cost = best.gap - best.cost
        with np.errstate(divide="ignore", over="ignore"):
            self.high = np.fmin(self.high, np.where(given > 0, best.z + cost / given, np.inf))
        beyond = best.a == 0
        square, most, turned = np.zeros(n), np.full(n, np.inf), np.zeros(n)
        for some, G in problem.rows.blocks(np.flatnonzero(beyond)):
            square[some] = (G * G) @ problem.penalty
        if problem.rows.intercept and problem.penalty[-1] == 0:
            at = best.curvature.anchor
            anchor = best.G[at] * best.G[at, -1]         # of label 1
            products = problem.rows.margins(np.append(anchor[:-1], 0.0))
            square += problem.l2 * (anchor[:-1] @ anchor[:-1] - 2 * products * problem.rows.y)
            most[:], turned[:] = (1 - FREE) * best.curvature.room, np.abs(1 - best.z[best.near[at]])
            beyond &= best.curvature.room > 0
        square = np.maximum(square, TINY) / problem.l2**2            # of g'D^-1 g, g in penalised columns
        nu = np.minimum(np.sqrt(2 * cost / square), most)
        left = np.linalg.norm(best.curvature.rho) * np.sqrt(square / problem.l2)         # of the rounding of rho
        short = cost / np.maximum(nu, TINY) + turned + nu * square / 2 + left
        self.low = np.fmax(self.low, np.where(beyond, best.z - short, -np.inf))      # NaN, beyond doubles, says nothing
        self.high = np.fmin(self.high, np.where(beyond, best.z + short, np.inf))

    def bound_beyond(self, rows):
        """Bounds by the optimum alone of rows of which next to nothing would have to be made up for."""
        best = self.best
        beyond = rows[(best.place[rows] >= 0) & (best.z[rows] > 1)]
        if len(beyond):
            self.bound_block(best, beyond)

    def bound(self, share, rows):
        """Narrow ``low`` and ``high`` of ``rows`` by one linear map of the others' dual variables each."""
        self.points.append(with_room(self.problem, self.best, share, self.total, self.nearness))
        for lo in range(0, len(rows), AT_ONCE):
            self.bound_block(self.points[-1], rows[lo:lo + AT_ONCE])

    def bound_block(self, point, rows):
        G, given = self.problem.rows.take(rows), self.problem.weight[rows] * point.a[rows]
        z, cost = G @ point.v, point.gap - point.cost[rows]
        most, square, falls = point.curvature.made_up(G, point.place[rows])
        self.from_below(rows, z, given, cost, falls, square, most)
        with np.errstate(divide="ignore"):               # the dual variables as they are, but for the row's own
            up = cost / given
        self.high[rows] = np.fmin(self.high[rows], np.where(given > 0, z + up, np.inf))

    def from_below(self, rows, z, given, cost, turned, square, most):
        """``low`` by the best amount t of the row that others take over, given < t <= most.

        It is t = given + nu: the bound falls short of z by (cost - t turned + t^2 square / 2) / nu.
        """
        rest = np.maximum(cost - given * turned + given**2 * square / 2, 0.0)
        nu = np.minimum(np.sqrt(2 * rest / np.maximum(square, TINY)), most - given)
        possible = nu > 0
        nu = np.where(possible, nu, 1.0)
        short = rest / nu - turned + given * square + nu * square / 2
        self.low[rows] = np.fmax(self.low[rows], np.where(possible, z - short, -np.inf))

    def follow(self, share, rows):
        """Narrow the bounds of ``rows`` to the optimum without each, by paths that see ``share`` rows a column.

        Not those of one row alone: what prepares paths costs more than to solve the problem without it.
        """
        if len(rows) == 1 or min(share * self.problem.rows.n_columns, self.problem.rows.n_rows) > MOST_SEEN:
            return
        vertex = Vertex(self.problem, self.best, self.part(share), self.nearness)
        for lo in range(0, len(rows) if vertex.sound else 0, AT_ONCE):
            some = rows[lo:lo + AT_ONCE]
            z, low, high = vertex.bounds(some)
            self.low[some], self.high[some] = np.fmax(self.low[some], low), np.fmin(self.high[some], high)
            self.approximate[some] = np.where(np.isfinite(low), z, self.approximate[some])

    # ------------------------------------------------------------ bounds of one row

    def refine(self, point, i):
        """Narrow ``low`` of row i: rows whose limit is in the way are held there, and the others make up for them."""
        problem, slack = self.problem, point.slack
        row = problem.rows.take(np.array([i]))[0]
        S = point.G @ point.curvature.factor.solve(row)
        given, cost = problem.weight[i] * point.a[i], point.cost.sum() - point.cost[i]
        held, at = (np.array([point.place[i]]), np.zeros(1)) if point.place[i] >= 0 else (np.zeros(0, int), np.zeros(0))
        unit = given if given > 0 else problem.weight.max()
        for t in (given + 0.3 * unit, given + unit):
            change = self.made_up(point, t * S, held, at)
            if change is None:
                continue
            excess, rho = point.curvature.anchored(point.rho + (point.weight * change) @ point.G - t * row)
            apart = point.place[i] < 0 or point.curvature.anchor != point.place[i]
            if apart and abs(excess) <= (1 - ROOM) * point.curvature.room:
                short = cost - (point.weight * change) @ slack + rho @ rho / (2 * problem.l2)
                if point.curvature.anchor >= 0:
                    short += excess * slack[point.curvature.anchor]
                self.low[i] = max(self.low[i], row @ point.v - max(short, 0.0) / (t - given))

    @staticmethod
    def made_up(point, S, held, at):
        """Changes of the dual variables near the kink that make up for part of a row, each within its limits.

        S = t g_j' H^-1 g of the rows j near the kink, for t of the row g; ``held``, ``at``: places whose change is
        given. None where no way is found.
        """
        c, r, a = point.compliance, point.weight, point.a[point.near]
        highest, lowest = ROOM * (1 - a), -ROOM * a
        for _ in range(ROUNDS):
            among = point.gram(held)
            try:
                passed = np.linalg.solve(np.diag(1 / r[held]) - c[held, None] * among[:, held], at - c[held] * S[held])
            except np.linalg.LinAlgError:
                return None
            change = c * (S - passed @ among)
            change[held] = at
            over = np.maximum(change / np.maximum(highest, TINY), change / np.minimum(lowest, -TINY))
            over[held] = 0.0
            beyond = np.flatnonzero(over > 1)
            if not len(beyond):
                return change
            held = np.concatenate([held, beyond])
            at = np.concatenate([at, np.where(change[beyond] > 0, highest[beyond], lowest[beyond])])
        return None

    # ------------------------------------------------------------ the solution without a row

    def solve(self, i, m):
        """Narrow ``low`` and ``high`` of row i to the optimum without it, as well as m tells it."""
        for share in (NEAREST / 2, NEAREST, 4 * NEAREST):  # until no other row can have crossed: all rows are dear
            if self.solve_among(self.part(share), i, m):
                return
        best, row = self.best, self.problem.rows.take(np.array([i]))[0]
        total = self.total - self.problem.weight[i] * (best.z[i] < 1) * row
        point, _ = optimum(self.problem.without(i), best.v, best.z, total, self.nearness)
        self.certify(point.curvature, point.gap, i, point.z[i])

    def part(self, share):
        """`Part` of the rows nearest the kink, ``share`` a column."""
        if share not in self.parts:
            problem, best = self.problem, self.best
            near, limit = self.nearness.nearest(best.z, int(share * problem.rows.n_columns))
            G, weight = problem.rows.take(near), problem.weight[near]
            linear = self.total - (weight * (best.z[near] < 1)) @ G
            self.parts[share] = Part(near, limit, G, weight, linear)
        return self.parts[share]

    def solve_among(self, part, i, m):
        """Narrow the bounds of row i by the optimum without it; False where rows beside ``part`` may matter."""
        problem, best = self.problem, self.best
        row = problem.rows.take(np.array([i]))[0]
        others = part.near != i
        G, weight, linear = part.G[others], part.weight[others], part.linear
        if others.all():
            linear = linear - problem.weight[i] * (best.z[i] < 1) * row
        found = centre(G, weight, problem.penalty, linear, best.v, m)
        if not self.nearness.moved(found.v - best.v) < part.limit:
            return False
        slack = 1 - G @ found.v
        curvature = Curvature(problem, G, found.a, found.compliance, slack, weight,
                              linear + G.T @ (weight * found.a) - problem.penalty * found.v)
        gap = weight @ problem.loss.gap(1 - slack, found.a) + curvature.of_rho
        self.certify(curvature, gap, i, row @ found.v)
        return True

    def certify(self, curvature, gap, i, z):
        """Narrow the bounds of row i to what a pair of the problem without it proves: margin z."""
        self.approximate[i] = z
        row = self.problem.rows.take(np.array([i]))
        for side in (1.0, -1.0):
            most, square, falls = (found[0] for found in curvature.made_up(side * row, np.array([-1])))
            nu = min(np.sqrt(2 * gap / max(square, TINY)), most)
            short = gap / max(nu, TINY) - falls + nu * square / 2
            if side > 0:
                self.low[i] = max(self.low[i], z - short)
            else:
                self.high[i] = min(self.high[i], z + short)


@dataclass
class Part:
    """Rows nearest the kink, the number (`Nearness`) that all others are above, and what these add to the gradient."""

    near: np.ndarray
    limit: float
    G: np.ndarray
    weight: np.ndarray
    linear: np.ndarray
