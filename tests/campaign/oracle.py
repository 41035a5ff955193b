"""What the objective of SmSVM is, in extended precision, and bounds of its minimum that need no trust.

The upper bound is the objective at some point, the lower one the dual value of some multipliers; both are evaluated in
`numpy.longdouble` on the rows as given. Where they meet the minimum is known; where they do not, each is still true.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import qr

from .interior import InteriorPoint

LONG = np.longdouble
EPS = float(np.finfo(float).eps)
ROUNDINGS = 64             # roundings of float64 that a margin's terms may have suffered
TOL = 1e-11                # gap at which the interior-point method is done
SAME = 1e-14               # part of the longest row that counts as none
LARGEST = 1e200            # penalty of a scaled column from which on its weight is 0


@dataclass
class Binary:
    """min l2/2 |w|^2 + l1 |w|_1 + sum m max(0, 1 - y (<w, x> + b)), sum m = 1; b penalised, free or absent.

    ``X`` is dense, of any dtype, ``weights`` any positive multiple of m.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    l2: float
    l1: float
    intercept: str = "free"        # "free", "penalised" or "none"

    @cached_property
    def m(self):
        weights = self.weights.astype(LONG)
        weights = weights / weights.max()
        return weights / weights.sum()

    @cached_property
    def rows(self):
        return self.X.astype(LONG)

    @cached_property
    def sizes(self):
        """(p,) weighted mean of |x|: what a weight of 1 adds to the terms of a margin."""
        return self.m @ np.abs(self.rows)

    def objective(self, w, b):
        """P(w, b) and what rounding in float64 may add to it or take away."""
        w, b = np.asarray(w, LONG), LONG(b)
        margins, penalty = self.y * (self.rows @ w + b), self.penalty(w, b)
        value = penalty + self.m @ np.maximum(0, 1 - margins)
        terms = 1 + self.sizes @ np.abs(w) + abs(b)
        return value, ROUNDINGS * EPS * (terms + penalty)

    def penalty(self, w, b):
        penalised = np.append(w, b) if self.intercept == "penalised" else w
        return LONG(self.l2) / 2 * (penalised @ penalised) + LONG(self.l1) * np.abs(penalised).sum()

    def dual_vector(self, signed):
        """Sum of a y x, whose size the penalty bounds."""
        dual_vector = signed @ self.rows
        return np.append(dual_vector, signed.sum()) if self.intercept == "penalised" else dual_vector

    def dual(self, a):
        """A true lower bound from multipliers a, whatever they are: clipped, balanced, shrunk."""
        a = np.clip(np.asarray(a, LONG), 0, self.m)
        if self.intercept == "free":
            a = balanced(a, self.y)
        return max(LONG(0), best_multiple(a.sum(), self.dual_vector(a * self.y), LONG(self.l2), LONG(self.l1)))

    def solution(self):
        """(w, b, a) near the minimum."""
        return solve_scaled(self)


def balanced(a, y):
    """The multipliers of the heavier label shrunk, so that sum a y = 0."""
    positive, negative = a[y > 0].sum(), a[y < 0].sum()
    if not max(positive, negative) > 0:
        return a
    return np.where(y * (positive - negative) > 0, a * (min(positive, negative) / max(positive, negative)), a)


def best_multiple(total, dual_vector, l2, l1):
    """max over 0 <= t <= 1 of t total - |soft(t dual_vector, l1)|^2 / (2 l2), or a value not far below."""
    largest = np.abs(dual_vector).max(initial=0)
    if l2 == 0:
        return total * min(LONG(1), l1 / largest) if largest > 0 else total
    if l1 == 0:
        square = dual_vector @ dual_vector
        t = min(LONG(1), l2 * total / square) if square > 0 else LONG(1)
        return t * total - t * t * square / (2 * l2)
    values = []
    for t in (LONG(1), min(LONG(1), l1 / largest) if largest > 0 else LONG(1)):
        soft = np.maximum(np.abs(t * dual_vector) - l1, 0)
        values.append(t * total - soft @ soft / (2 * l2))
    return max(values)


@dataclass
class Bounds:
    upper: float               # objective at (w, b)
    lower: float               # dual value
    w: np.ndarray
    b: float
    rounding: float            # of an evaluation in float64 near (w, b)

    @property
    def certainty(self):
        """Relative distance of the bounds; 0 where the upper one is rounding beside the 1 of w = 0."""
        return float((self.upper - self.lower) / self.upper) if self.upper > 1e-15 else 0.0


def bounds(problem, starts=()):
    """`Bounds` of the minimum of a `Binary`; ``starts`` are further points (w, b) whose objective counts."""
    w, b, a = problem.solution()
    found = [(w, b), (np.zeros(len(w)), best_constant(problem)), *starts]
    values = [problem.objective(*point) for point in found]
    best = min(range(len(found)), key=lambda i: values[i][0])
    return Bounds(values[best][0], problem.dual(a), *found[best], values[best][1])


def best_constant(problem):
    """The intercept that is best with w = 0 where it is free: that of the heavier class."""
    return 0.0 if problem.intercept != "free" else float(np.sign(problem.m @ problem.y))


def solve_scaled(problem):
    """(w, b, a) by `InteriorPoint` on columns centred, where the intercept is free, and scaled to at most 1."""
    kept = np.flatnonzero(problem.m > 0)
    p, free = problem.rows.shape[1], problem.intercept == "free"
    y, m = problem.y[kept], problem.m[kept]
    rows, centre = centred_rows(problem, kept)
    basis = None
    if problem.l1 == 0:
        basis, rows = in_its_own_span(rows)
    solution, multipliers = solve_columns(rows, y, m, problem.l2, problem.l1, free)
    w, a = solution[:rows.shape[1]], np.zeros(len(problem.y), LONG)
    w = w if basis is None else basis.astype(LONG) @ w
    a[kept] = multipliers
    b = solution[-1] - centre @ w if free else w[p] if problem.intercept == "penalised" else LONG(0)
    return w[:p], b, a


def centred_rows(problem, kept):
    """Rows about their mean, returned too, where the intercept is free; with a column of ones for a penalised one."""
    rows = problem.rows[kept]
    centre = problem.m[kept] @ rows if problem.intercept == "free" else np.zeros(rows.shape[1], LONG)
    rows = rows - centre
    rows[:, np.abs(rows).max(axis=0, initial=0) <= 1e-16 * np.abs(centre)] = 0           # constant columns
    if problem.intercept == "penalised":
        rows = np.column_stack([rows, np.ones(len(rows), LONG)])
    return rows, centre


def scaled_columns(rows, l2, l1, free):
    """Columns of at most 1, their l2 and l1, which of ``rows`` they are and their sizes; of a free one, the last, 0."""
    size = np.abs(rows).max(axis=0, initial=0)
    used = np.flatnonzero(size > 0)
    used = used[np.maximum(l2 / size[used]**2, l1 / size[used]) < LARGEST]
    size = size[used]
    A, q, c = rows[:, used] / size, l2 / size**2, l1 / size
    if free:
        A, q, c = np.column_stack([A, np.ones(len(A))]), np.append(q, 0), np.append(c, 0)
    return A, q, c, used, size


def in_its_own_span(rows):
    """An orthonormal V and L = rows V for rows in the span of V': w = V t has the margins L t and the length of t."""
    scale = np.abs(rows).max(initial=0)
    order = np.argsort(-np.abs(rows).max(axis=0))
    Q, R, _ = qr((rows[:, order] / (scale or 1)).T.astype(float), mode="economic", pivoting=True)
    Q = Q[:, np.abs(np.diag(R)) > SAME * max(abs(R[0, 0]), np.finfo(float).tiny)]
    basis = np.zeros((rows.shape[1], Q.shape[1]))
    basis[order] = Q
    return basis, rows @ basis.astype(LONG)


def solve_columns(rows, y, m, l2, l1, free):
    """Weights of the columns, then the intercept where it is free, and multipliers."""
    A, q, c, used, size = scaled_columns(rows, l2, l1, free)
    scaled = Scaled((A * y[:, None]).astype(float), q.astype(float), c.astype(float), m.astype(float), y, free)
    found, multipliers = InteriorPoint(scaled.A, scaled.q, scaled.c, scaled.m, scaled.value).run(TOL)
    solution = np.zeros(rows.shape[1] + free, LONG)
    solution[used] = found[:len(used)] / size
    if free:
        solution[-1] = found[-1]
    return solution, multipliers


@dataclass
class Scaled:
    """The numbers `InteriorPoint` works on; primal and dual value of its points in float64."""

    A: np.ndarray
    q: np.ndarray
    c: np.ndarray
    m: np.ndarray
    y: np.ndarray
    free: bool

    def value(self, w, a):
        primal = (self.q * w) @ w / 2 + self.c @ np.abs(w) + self.m @ np.maximum(0, 1 - self.A @ w)
        a = np.clip(a, 0, self.m)
        if self.free:
            a = balanced(a, self.y)
        dual_vector = np.abs(a @ self.A)[:len(self.q) - self.free]
        q, c = self.q[:len(dual_vector)], self.c[:len(dual_vector)]
        over = np.maximum(dual_vector - c, 0)
        if (q == 0).any():                         # l2 = 0, or far below what the rows can feel
            bad = (q == 0) & (dual_vector > 0)
            t = min(1.0, (c[bad] / dual_vector[bad]).min(initial=1.0))
            return primal, t * a.sum()
        return primal, a.sum() - (over**2 / (2 * q)).sum()
