"""The objective of the losses that need no smoothing in extended precision, its dual, and Newton's method.

As in `oracle`, neither bound need be believed: the method only says where to evaluate them.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq, solve_triangular

from .oracle import EPS, LONG, ROUNDINGS, Binary, balanced, centred_rows, scaled_columns

STEPS = 100
HALVINGS = 50
LONGEST = 1e6              # step
TINY = 1e-30               # part of the largest weight that counts as none
DONE = 1e-13               # part of the objective that a step promises at last
WIDTHS = 10.0 ** -np.arange(2, 13, 2)   # of |v|, rounded to sqrt(v^2 + width^2)


def logistic(z):
    """F(z) = ln(1 + e^-z), its slope and curvature."""
    e = np.exp(-np.abs(z))
    return np.log1p(e) + np.maximum(-z, 0), -np.where(z > 0, e, 1) / (1 + e), e / (1 + e) ** 2


def squared_hinge(z):
    """F(z) = max(0, 1 - z)^2."""
    u = np.maximum(0, 1 - z)
    return u * u, -2 * u, 2.0 * (z <= 1)


def entropy(a):
    """min over z of F(z) + a z, of the logistic loss."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(share > 0, share * np.log(share), 0) for share in (a, 1 - a)]
    return -sum(terms)


def modified_huber(z):
    """max(0, 1 - z)^2 for z >= -1, else -4 z."""
    u = np.maximum(0, 1 - z)
    return np.where(u <= 2, u * u, -4 * z), -2 * np.minimum(u, 2), 2.0 * ((z <= 1) & (u <= 2))


def huberised_hinge(z):
    """In u = 1 - z: 0, u^2 / 2 from 0 to 1, then u - 1/2."""
    u = np.maximum(0, 1 - z)
    return np.where(u <= 1, u * u / 2, u - 0.5), -np.minimum(u, 1), 1.0 * ((z <= 1) & (u <= 1))


LOSSES = {"logistic": (logistic, entropy, 1.0), "squared_hinge": (squared_hinge, lambda a: a - a * a / 4, 1e300),
          "modified_huber": (modified_huber, lambda a: a - a * a / 4, 4.0),
          "huberised_hinge": (huberised_hinge, lambda a: a - a * a / 2, 1.0)}


@dataclass
class SmoothBinary(Binary):
    """A `Binary` with another loss in place of max(0, 1 - z)."""

    loss: str = "logistic"

    def objective(self, w, b):
        w, b = np.asarray(w, LONG), LONG(b)
        value, slope, _ = LOSSES[self.loss][0](self.y * (self.rows @ w + b))
        penalty = self.penalty(w, b)
        terms = 1 + np.abs(self.rows) @ np.abs(w) + abs(b)
        return penalty + self.m @ value, ROUNDINGS * EPS * (self.m @ (value - slope * terms) + penalty)

    def dual(self, a):
        """A lower bound from multipliers a of either label, m times a dual variable, whatever they are."""
        _, gain, largest = LOSSES[self.loss]
        a = np.clip(np.asarray(a, LONG), 0, self.m * LONG(largest))
        if self.intercept == "free":
            a = balanced(a, self.y)
        dual_vector = np.abs(self.dual_vector(a * self.y))
        share = np.divide(a, self.m, out=np.zeros(len(a), LONG), where=self.m > 0)
        if self.l2 > 0:
            over = np.maximum(dual_vector - LONG(self.l1), 0)
            return self.m @ gain(share) - over @ over / (2 * LONG(self.l2))
        size = dual_vector.max(initial=0)
        return self.m @ gain(share * (min(LONG(1), LONG(self.l1) / size) if size > 0 else 1))

    def solution(self):
        """(w, b, a) by Newton's method on columns centred, where the intercept is free, and scaled to at most 1."""
        free = self.intercept == "free"
        rows, centre = centred_rows(self, slice(None))
        A, q, c, used, size = scaled_columns(rows, self.l2, self.l1, free)
        A, q, c, m = (np.asarray(x, float) for x in (A * self.y[:, None], q, c, self.m))
        v = newton(A, q, c, m, LOSSES[self.loss][0])
        w = np.zeros(rows.shape[1], LONG)
        w[used] = v[:len(used)] / size
        b = v[-1] - centre @ w if free else w[-1] if self.intercept == "penalised" else LONG(0)
        return w[:self.rows.shape[1]], b, -self.m * LOSSES[self.loss][0](A @ v)[1]


def newton(A, q, c, m, loss):
    """argmin sum q v^2 / 2 + sum c |v| + m F(A v), |v| rounded off less and less."""
    v = np.zeros(A.shape[1])
    if len(v) == 0:
        return v
    for width in WIDTHS if c.any() else (1.0,):
        v = newton_steps(A, q, c, m, loss, width, v)
    return v


def newton_steps(A, q, c, m, loss, width, v):
    for _ in range(STEPS):
        margins, length = A @ v, np.hypot(v, width)
        value, slope, curvature = loss(margins)
        gradient = np.append(m * slope, q * v + c * v / length)      # by rows of [A; 1]
        d = least_squares(np.vstack([A, np.eye(len(v))]), np.append(m * curvature, q + c / length), -gradient)
        change = A @ d
        whole = q @ v**2 / 2 + c @ length + m @ value
        promised = -(gradient @ np.append(change, d))
        if not promised > DONE * whole:
            break

        def slope_at(t, v=v, d=d, margins=margins, change=change):
            there = v + t * d
            return (q * there + c * there / np.hypot(there, width)) @ d + (m * loss(margins + t * change)[1]) @ change

        v = v + best_step(slope_at) * d
    return v


def least_squares(rows, weights, right):
    """d of rows' W rows d = rows' right, the condition not squared where no weight is 0."""
    kept = weights > TINY * weights.max()
    roots = np.sqrt(weights[kept])
    Q, R = np.linalg.qr(roots[:, None] * rows[kept])
    missing = np.zeros(rows.shape[1]) if kept.all() else rows[~kept].T @ right[~kept]
    size = np.abs(np.diag(R))
    if len(R) < rows.shape[1] or size.min() < EPS * size.max():
        return lstsq((rows[kept].T * weights[kept]) @ rows[kept], rows.T @ right)[0]
    return solve_triangular(R, Q.T @ (right[kept] / roots) + solve_triangular(R, missing, trans=1))


def best_step(slope_at):
    """t > 0 of slope 0, by halves."""
    low, high = 0.0, 1.0
    while slope_at(high) < 0 and high < LONGEST:
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope_at(middle) < 0 else (low, middle)
    return high if slope_at(high) < 0 else (low + high) / 2
