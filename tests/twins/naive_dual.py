"""NumPy twins of the dual of SmSVM: the sweep, the best point along the last moves, and the intercept.

A dual variable a, 0 <= a <= upper, adds target a - ridge a^2 / 2 to the bound; ``box`` is (upper, ridge), an array
each. The targets, 1 where none are given, are the slacks at w = 0.
"""

import numpy as np


def gain(a, ridge, target=1.0):
    return target * a - ridge * a**2 / 2


def pointed_to(u, upper, ridge):
    """argmax over 0 <= a <= upper of a u - ridge a^2 / 2."""
    free = np.divide(u, ridge, out=np.where(np.broadcast_to(u, np.shape(ridge)) > 0, np.inf, 0.0), where=ridge > 0)
    return np.where(u > 0, np.clip(free, 0, upper), 0.0)


def gap_of(u, a, upper, ridge):
    """A row's part of the duality gap: the loss at its slack, and what its dual variable makes of it."""
    best = pointed_to(u, upper, ridge)
    return best * u - ridge * best**2 / 2 - (a * u - ridge * a**2 / 2)


def sweep(Z, y, order, low, high, box, a, w, target=None):
    """Rows that left; rows that stayed at their bound; least and largest slope used; gap; a; w.

    Z holds the constant column.
    """
    (upper, ridge), a, w = box, a.copy(), w.copy()
    left, rested, used, gap = [], [], [0.0], 0.0
    for i in order:
        u = (1 if target is None else target[i]) - y[i] * (Z[i] @ w)
        slope = u - ridge[i] * a[i]
        if (a[i] == 0 and slope < low) or (a[i] == upper[i] and slope > high):
            left.append(i)
            continue
        gap += float(gap_of(u, a[i], upper[i], ridge[i]))
        new = np.clip(a[i] + slope / (Z[i] @ Z[i] + ridge[i]), 0, upper[i])
        if new == a[i] and new in (0, upper[i]):
            rested.append(i)
        elif new != a[i]:
            used.append(slope)
            w += (new - a[i]) * y[i] * Z[i]
            a[i] = new
    return left, rested, min(used), max(used), gap, a, w


def steps_along(K, slope):
    """argmax of slope c - c K c / 2, without directions that depend on those before them."""
    kept = []
    for k in range(len(slope)):
        trial = [*kept, k]
        square = K[k, k] - (K[k, kept] @ np.linalg.solve(K[np.ix_(kept, kept)], K[kept, k]) if kept else 0)
        if square > 1e-8 * K[k, k]:
            kept = trial
    c = np.zeros(len(slope))
    c[kept] = np.linalg.solve(K[np.ix_(kept, kept)], slope[kept])
    return c


def best_move(Z, y, box, moves, before, w_before, a, w, target=1.0, part=1.0):
    """The best point along a sweep's change and the moves before, clipped to the box: a, w, moves, rows clipped.

    ``moves``: pairs of what dual variables and sum a y x were moved by, newest first; ``part``: what of the latter is
    seen in w.
    """
    upper, ridge = box
    last = (a - before, (w - w_before) / part)
    D, G = (np.array(each) for each in zip(last, *moves, strict=True))
    c = steps_along((G * part) @ G.T + (D * ridge) @ D.T, D @ (target - ridge * a) - G @ w)
    if not 0.05 <= np.abs(c).max() <= 1000:
        return a, w, [last, *moves][:3], 0
    trial = a + c @ D
    new = np.clip(trial, 0, upper)
    new_w, n_clipped = w + part * (c @ G + Z.T @ (y * (new - trial))), (new != trial).sum()
    rise = ((new_w - w) * (new_w + w) / part).sum() / 2
    if gain(new, ridge, target).sum() - gain(a, ridge, target).sum() > rise:
        return new, new_w, [(new - before, (new_w - w_before) / part), *moves][:3], n_clipped
    return a, w, [], n_clipped


def balanced(y, upper, a):
    """a with sum a y = 0: rows on the face give way in proportion, of both classes, then others of the heavier one."""
    a, missing = a.copy(), abs(a @ y)
    mine, face = y == np.sign(a @ y), (a > 0) & (a < upper)
    for rows in (face & (mine | np.isfinite(upper)), mine & (a > 0)):
        given = np.where(mine, a, upper - a)[rows]
        there = given.sum()
        taken = min(missing, there)
        a[rows] -= np.where(mine, 1, -1)[rows] * given * (taken / there if there > 0 else 0)
        missing -= taken
    return a


def best_shift(s, y, u):
    """argmin over t of sum s max(0, u - y t), by trying every breakpoint."""
    at = y * u
    return at[np.argmin([s @ np.maximum(0, u - y * t) for t in at])]


def best_scale(upper, z, square):
    """argmin over t >= 0 of t^2 square / 2 + sum upper max(0, 1 - t z), by trying every kink and every piece."""
    def value(t):
        return t**2 * square / 2 + upper @ np.maximum(0, 1 - t * z)
    kinks = sorted({0.0, *(1 / z[z > 0])})
    middles = [(a + b) / 2 for a, b in zip(kinks, [*kinks[1:], kinks[-1] + 2], strict=True)]
    tried = kinks + [max(0, upper @ (z * (1 - t * z > 0)) / square) for t in middles]
    return min(tried, key=value)


class Centre:
    """Common columns held near a centre between sweeps over the rows of Z, whose last column is the constant."""

    def __init__(self, Z, cost, ridge, free):
        self.Z, self.cost, self.ridge, self.free = Z, cost, ridge, free
        self.centre, self.part, self.strength, self.weight = np.zeros(Z.shape[1]), np.ones(Z.shape[1]), 0.2, 0.0
        self.moved = np.zeros(Z.shape[1])
        self.square, self.column = (Z**2).sum(axis=1) + ridge, cost @ Z**2

    def sum_behind(self, w):
        return w + (1 / self.part - 1) * (w - self.centre)

    def part_at(self, weight):
        return 1 / (1 + np.minimum(weight * self.column, 1e4))

    def hold(self, weight):
        Z, column = self.Z, self.column[:-1]
        if column @ self.part_at(weight * 0.2 / self.strength)[:-1] >= column.sum() / 2:
            weight = 0.0
        self.moved[self.part == 1] = 0
        self.weight, self.part = weight, self.part_at(weight)
        self.part[1 / self.part - 1 < 0.01] = 1
        if self.free and weight > 0:
            self.part[-1] = min(1.0, (Z[:, :-1]**2 @ self.part[:-1]).sum() / (Z[:, :-1]**2).sum())
        self.square = Z**2 @ self.part + self.ridge

    def move(self, seen, total, unbalanced, w):
        """(what the columns add to the gap, w) after a sweep."""
        columns = slice(-1) if self.free else slice(None)
        behind, part = self.sum_behind(w), self.part[-1]
        added = ((w - behind)[columns]**2).sum() / 2 + self.free * part * unbalanced**2
        if self.weight > 0:
            rho, move = (1 / self.part - 1)[columns], (w - self.centre)[columns]
            moved = self.moved[columns]
            along = rho * move @ moved > 0.98 * np.sqrt((rho @ move**2) * (rho @ moved**2))
            asks = 0.125 if seen > 4 * added else -0.125 if added > 4 * seen else 0
            self.strength = min(max(self.strength * 2.0**(-0.75 if along else asks), 0.01), 0.2)
        weight = self.strength * max(total, 0.0) / self.cost.sum()
        self.centre, self.moved = w.copy(), w - self.centre
        if weight > 2 * self.weight or weight < self.weight / 2:
            self.hold(weight)
        new = w + self.part * (behind - w)
        if self.free:
            waits = self.weight == 0 and seen > unbalanced**2
            new[-1] = w[-1] + (0 if waits else self.part[-1] * unbalanced)
        return added, new
