"""A primal-dual interior-point method for the hinge with l2 and l1, in plain NumPy: slow, general, independent.

    min over w, xi >= 0    sum q w^2 / 2 + sum c |w| + sum m xi     subject to    A w + xi >= 1

Rows of A are y x, columns scaled by whoever calls. A column with q = c = 0 is free. |w| is split into u + v, w = u - v;
steps are Mehrotra's. Nothing here need be believed: every w is a primal point and every a in [0, m] a dual one, and
`oracle` evaluates both in extended precision.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

STEPS = 120
PATIENCE = 8           # steps without a better gap once the products are
SMALL = 1e-12          # times the objective
REFINED = 2
KEEP = 0.995           # part of the way to the boundary


@dataclass
class Point:
    """Variables, or a direction in them. ``u, v`` and their multipliers belong to the columns with c > 0."""

    w: np.ndarray
    u: np.ndarray
    v: np.ndarray
    slack: np.ndarray          # xi
    excess: np.ndarray         # A w + xi - 1
    a: np.ndarray              # multiplier of excess
    g: np.ndarray              # multiplier of slack
    zu: np.ndarray
    zv: np.ndarray

    def pairs(self):
        return (self.u, self.zu), (self.v, self.zv), (self.slack, self.g), (self.excess, self.a)

    def count(self):
        return sum(len(x) for x, _ in self.pairs())

    def mu(self):
        return sum(x @ z for x, z in self.pairs()) / self.count()


class InteriorPoint:
    """One problem; `run` returns the w of the smallest objective and the a of the largest dual value met."""

    def __init__(self, A, q, c, m, value):
        """``value``: (w, a) -> (primal, dual), in float64, of a point made feasible."""
        self.A, self.q, self.c, self.m, self.value = A, q, c, m, value
        self.split = np.flatnonzero(c > 0)
        self.free = np.flatnonzero((c == 0) & (q == 0))
        self.bound = np.flatnonzero((c > 0) | (q > 0))
        self.by_rows = len(A) < A.shape[1]

    def start(self):
        n, k, m = len(self.m), len(self.split), self.m
        z = np.maximum(self.c, np.abs(self.A.T @ m) / 2)[self.split]
        return Point(np.zeros(len(self.q)), np.full(k, 1.0), np.full(k, 1.0), np.full(n, 1.5), np.full(n, 0.5),
                     m / 2, m / 2, z, z)

    def run(self, tol):
        at = self.start()
        w, a, upper, lower = at.w, at.a * 0, np.inf, 0.0
        stale, best = 0, np.inf
        for _ in range(STEPS):
            primal, dual = self.value(at.w, at.a)
            if primal < upper:
                w, upper = at.w, primal
            if dual > lower:
                a, lower = at.a, dual
            mu = at.mu()
            stale = 0 if upper - lower < 0.9 * best or mu > SMALL * upper else stale + 1
            best = min(best, upper - lower)
            if best <= tol * upper or stale > PATIENCE:
                break
            with np.errstate(all="ignore"):
                after = self.advance(at)
            if after is None:
                break
            at = after
        return w, a

    def advance(self, at):
        """The point after a predictor and a corrector, or None where the numbers have run out."""
        system = self.factor(at)
        if system is None:
            return None
        pairs = at.pairs()
        mu, count = at.mu(), at.count()
        first = self.direction(at, system, [-x * z for x, z in pairs])
        if first is None:
            return None
        length = self.length(at, first, 1.0)
        ahead = sum((x + length * dx) @ (z + length * dz)
                    for (x, z), (dx, dz) in zip(pairs, first.pairs(), strict=True)) / count
        aim = mu * min(1.0, max(ahead / mu, 0.0))**3
        goal = [aim - x * z - dx * dz for (x, z), (dx, dz) in zip(pairs, first.pairs(), strict=True)]
        step = self.direction(at, system, goal)
        if step is None:
            return None
        length = self.length(at, step, KEEP)
        moved = {name: value + length * getattr(step, name) for name, value in vars(at).items()}
        return Point(**moved)

    @staticmethod
    def length(at, step, keep):
        """How far along ``step``, 1 at most, with ``keep`` of the way to where a pair reaches 0."""
        longest = 1.0
        for pair, change in zip(at.pairs(), step.pairs(), strict=True):
            for x, dx in zip(pair, change, strict=True):
                down = dx < 0
                longest = min(longest, keep * (x[down] / -dx[down]).min(initial=np.inf))
        return longest

    def factor(self, at):
        """Diagonals H and F of [H, -A'; A, F] and a factor of its Schur complement, of the smaller side."""
        F = at.slack / at.g + at.excess / at.a
        H = self.q.copy()
        H[self.split] += 1 / (at.u / at.zu + at.v / at.zv)
        if self.by_rows:
            A = self.A[:, self.bound]
            M = (A / H[self.bound]) @ A.T
            M[np.diag_indices_from(M)] += F
        else:
            M = (self.A.T / F) @ self.A
            M[np.diag_indices_from(M)] += H
        scale = 1 / np.sqrt(np.diag(M))
        M = M * scale * scale[:, None]
        if not np.isfinite(M).all():
            return None
        for ridge in (0.0, 1e-15, 1e-13, 1e-11, 1e-9):
            try:
                return F, H, cho_factor(M + ridge * np.eye(len(M)), check_finite=False), scale, M
            except np.linalg.LinAlgError:
                continue
        return None

    @staticmethod
    def solve(factor, scale, M, rhs):
        rhs = rhs * scale
        x = cho_solve(factor, rhs, check_finite=False)
        for _ in range(2):
            x = x + cho_solve(factor, rhs - M @ x, check_finite=False)
        return x * scale

    def direction(self, at, system, goal):
        """Newton's direction to x z + dx z + x dz = x z + goal for every pair (x, z)."""
        F, H, *factor = system
        A, q, c, s = self.A, self.q, self.c, self.split
        to_u, to_v, to_slack, to_excess = goal
        dual_vector = A.T @ at.a
        force = q * at.w - dual_vector
        tu = to_u / at.u - (force[s] + c[s] - at.zu)
        tv = to_v / at.v - (c[s] - force[s] - at.zv)
        Du, Dv = at.zu / at.u, at.zv / at.v
        G = -force
        drift = at.w[s] - (at.u - at.v)
        G[s] = (tu / Du - tv / Dv - drift) / (1 / Du + 1 / Dv)
        lack = self.m - at.a - at.g
        R = (1 + at.excess - A @ at.w - at.slack) - (to_slack - at.slack * lack) / at.g + to_excess / at.a
        dw, da = self.both(F, H, factor, G, R)
        for _ in range(REFINED):
            more = self.both(F, H, factor, G - H * dw + A.T @ da, R - A @ dw - F * da)
            dw, da = dw + more[0], da + more[1]
        change = A.T @ da - q * dw
        du, dv = (change[s] + tu) / Du, (tv - change[s]) / Dv
        dg = lack - da
        step = Point(dw, du, dv, (to_slack - at.slack * dg) / at.g, (to_excess - at.excess * da) / at.a, da, dg,
                     (to_u - at.zu * du) / at.u, (to_v - at.zv * dv) / at.v)
        return step if all(np.isfinite(part).all() for part in vars(step).values()) else None

    def both(self, F, H, factor, G, R):
        """dw and da of H dw - A'da = G, A dw + F da = R."""
        if not self.by_rows:
            dw = self.solve(*factor, G + self.A.T @ (R / F))
            return dw, (R - self.A @ dw) / F
        dw, A, b = np.zeros(len(H)), self.A[:, self.bound], self.bound
        rhs = R - A @ (G[b] / H[b])
        da = self.solve(*factor, rhs)
        for j in self.free:                        # one column at most
            column = self.solve(*factor, self.A[:, j])
            dw[j] = (G[j] + self.A[:, j] @ da) / (self.A[:, j] @ column)
            da = da - dw[j] * column
        dw[b] = (G[b] + A.T @ da) / H[b]
        return dw, da
