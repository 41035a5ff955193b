"""The hinge's optimum as a vertex, and the paths along which it moves as rows are left out, many rows at a time."""

import numpy as np
from scipy.linalg import qr, solve_triangular

from cmargin._core.dual._left_out import follow
from cmargin.solvers.left_out.interior import centre
from cmargin.solvers.left_out.problem import TINY

EXACT = 1e-14                    # m of the central path at which the rows at the kink are told from others
FREE_PENALTY = 1e-7              # of l2: that of a free intercept on the path; the certificate knows of none
DEPENDENT = 1e-9                 # of the longest row, what is left of one that depends on others beside these
BEYOND = 1e-5                    # of a row's weight: how far its dual variable is to both sides of 0 for its bounds
WITHIN = 1e-7                    # of its limits, where a dual variable or margin of the vertex is
ROUNDING = 4 * np.finfo(float).eps       # of the sum of the sizes of a product's terms, at most


class Vertex:
    """Rows near the kink, of which those at it determine the optimum, and the products that paths are made of.

    In units of l2, and in columns of which a free intercept's is scaled to a small penalty, K = [I A; A' 0] for the
    slots A = QR, (n_columns, n_slots): rows at the kink that do not depend on each other.
    """

    def __init__(self, problem, best, part, nearness):
        """``best``: `Point` of the optimum; ``part``: `Part` of the rows that paths see, the nearest by `Nearness`."""
        self.problem, self.best, self.nearness = problem, best, nearness
        self.unit = np.where(problem.penalty > 0, 1.0, FREE_PENALTY**-0.5)
        found = centre(part.G, part.weight, problem.penalty, part.linear, best.v, EXACT)
        a, e = found.a, 1 - part.G @ found.v
        kink = np.flatnonzero(np.abs(e) < np.minimum(a, 1 - a))
        self.sound = len(kink) > 0
        if not self.sound:
            return
        _, R, order = qr((part.G[kink] * self.unit).T, mode="economic", pivoting=True)
        diagonal = np.abs(np.diag(R))
        rank = int((diagonal > DEPENDENT * diagonal.max(initial=TINY)).sum())
        slots = kink[order[:rank]]
        rest = np.ones(len(a), bool)
        rest[slots] = False
        order = np.concatenate([slots, np.flatnonzero(rest)])
        self.near, self.G, self.weight, self.n_slots = part.near[order], part.G[order], part.weight[order], rank
        self.limit, self.linear = part.limit, part.linear
        self.pinned = np.isin(order, kink)
        self.place = np.full(problem.rows.n_rows, -1, np.intp)
        self.place[self.near] = np.arange(len(order))
        self.prepare(a[order] * self.weight / problem.l2, e[order] > 0)

    def prepare(self, a, below):
        """``a``: dual variables, over l2; ``below``: whether the margin of a row not at the kink is below 1."""
        m, S = self.n_slots, self.G * self.unit
        self.Q, R = qr(S[:m].T, mode="economic")
        self.T = solve_triangular(R, self.Q.T)           # (n_slots, n_columns): products with slots, by R^-1 Q'
        inverse = solve_triangular(R, np.eye(m))
        free, U = S @ self.T.T, self.beside(S)
        self.U, n = U[m:], len(S)
        self.phi = np.empty((n, n))
        self.phi[:m, :m], self.phi[m:, m:] = -inverse @ inverse.T, self.U @ self.U.T
        self.phi[m:, :m], self.phi[:m, m:] = free[m:], free[m:].T
        highest = self.weight / self.problem.l2
        self.steepest = np.einsum("ij,ij->i", S, S).max()
        a = np.where(self.pinned, a, np.where(below, highest, 0.0))
        b = self.linear / self.problem.l2 * self.unit + a[m:] @ S[m:]
        a[:m] = inverse @ (inverse.T @ np.ones(m)) - self.T @ b
        v = self.T.T @ np.ones(m) + self.beside(b)
        x = np.concatenate([a[:m], S[m:] @ v])
        others = self.pinned[m:]
        lowest = np.concatenate([np.zeros(m), np.where(others | ~below[m:], 1.0, -np.inf)])
        highest_x = np.concatenate([highest[:m], np.where(others | below[m:], 1.0, np.inf)])
        slack = np.concatenate([highest[:m], np.ones(n - m)]) * WITHIN
        self.sound = bool(((x >= lowest - slack) & (x <= highest_x + slack)).all())
        self.v, self.a, self.highest = v, a, highest
        self.x, self.limits = x, (lowest, highest_x)

    def beside(self, S):
        """What of the rows S is not along the slots: once more, for what rounding leaves."""
        for _ in range(2):
            S = S - (S @ self.Q) @ self.Q.T
        return S

    def bounds(self, rows):
        """Margins of ``rows`` without them, and what is proven to be below and above, (k,) each; NaN: not known."""
        problem, place, k = self.problem, self.place[rows], len(rows)
        G = problem.rows.take(rows)
        S = G * self.unit
        columns = np.ascontiguousarray(np.hstack([S @ self.T.T, self.beside(S) @ self.U.T]))
        weight = problem.weight[rows] / problem.l2
        begin = np.where(place >= 0, self.a[place], np.where(self.best.z[rows] < 1, weight, 0.0))
        near = BEYOND * np.where(weight > 0, weight, self.highest.mean())
        ends = np.column_stack([np.where(begin > 0, np.minimum(near, begin / 2), near), -near])
        a, moved, reached = np.empty((2, k, len(self.x))), np.empty((2, k, self.n_slots)), np.empty((2, k), np.uint8)
        follow(self.phi, self.x, *self.limits, self.highest, self.a, self.n_slots, self.steepest, columns, place,
               begin, ends, a, moved, reached)
        found = np.full((2, 2, k), np.nan)
        inside = np.flatnonzero(place >= 0)
        for e, well in enumerate(reached > 0):
            change = a[e] - self.a
            change[inside, place[inside]] = 0.0
            W = change @ (self.G * self.unit) + (ends[:, e] - begin)[:, None] * S
            V = (self.v + moved[e] @ self.T + self.beside(W)) * self.unit
            found[e][:, well] = self.certify(rows[well], G[well], V[well], a[e][well], ends[well, e])
        return found[:, 0].mean(axis=0), found[1, 1], found[0, 1]

    def certify(self, rows, G, V, a, t):
        """Margins of ``rows`` by the weights V, and bounds by the pairs of these and ``a``, of which ``t`` is theirs.

        The bound is from below where t is negative, and from above where it is positive: see `problem`.
        """
        problem, place, l2 = self.problem, self.place[rows], self.problem.l2
        nu, inside = -t * l2, np.flatnonzero(place >= 0)
        dual = np.clip(a * l2 / self.weight, 0.0, 1.0)
        slack = 1 - V @ self.G.T
        share = np.broadcast_to(self.weight, dual.shape).copy()
        share[inside, place[inside]] = 0.0
        rho = (dual * share) @ self.G + self.linear - nu[:, None] * G - problem.penalty * V
        outside = (place < 0) & (self.best.z[rows] < 1)
        rho[outside] -= problem.weight[rows[outside], None] * G[outside]
        cost = (share * (np.maximum(slack, 0.0) - dual * slack)).sum(axis=1)
        room = share * np.minimum(dual, 1 - dual)
        cost += ROUNDING * np.einsum("ij,ij->i", (share * (room > 0)) @ np.abs(self.G), np.abs(V))
        at, anchor = np.arange(len(rows)), room.argmax(axis=1)
        if (problem.penalty == 0).any():
            excess = rho[:, -1] / self.G[anchor, -1]
            rho -= excess[:, None] * self.G[anchor]
            rho[:, -1] = 0.0
            cost += np.abs(excess * slack[at, anchor])
            cost[np.abs(excess) > room[at, anchor]] = np.inf
        cost += np.einsum("ij,ij->i", rho, rho) / (2 * l2)
        cost[~(self.nearness.moved(V - self.best.v) < self.limit)] = np.inf
        z = np.einsum("ij,ij->i", G, V)
        return z, z - cost / nu
