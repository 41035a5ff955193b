"""NumPy twins of the dual of SmSVM on the face: the sweep, one pass of conjugate gradients, and the intercept.

A dual variable a, 0 <= a <= upper, adds a - ridge a^2 / 2 to the bound; ``box`` is (upper, ridge), an array each.
"""

import numpy as np


def gain(a, ridge):
    return a - ridge * a**2 / 2


def pointed_to(u, upper, ridge):
    """argmax over 0 <= a <= upper of a u - ridge a^2 / 2."""
    free = np.divide(u, ridge, out=np.where(np.broadcast_to(u, np.shape(ridge)) > 0, np.inf, 0.0), where=ridge > 0)
    return np.where(u > 0, np.clip(free, 0, upper), 0.0)


def gap_of(u, a, upper, ridge):
    """A row's part of the duality gap: the loss at its slack, and what its dual variable makes of it."""
    best = pointed_to(u, upper, ridge)
    return best * u - ridge * best**2 / 2 - (a * u - ridge * a**2 / 2)


def sweep(Z, y, order, low, high, box, a, w):
    """Rows that left; rows that stayed at their bound; least and largest slope used; gap; moves; a; w.

    Z holds the constant column.
    """
    (upper, ridge), a, w = box, a.copy(), w.copy()
    left, rested, used, gap, moved = [], [], [0.0], 0.0, 0
    for i in order:
        u = 1 - y[i] * (Z[i] @ w)
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
            moved += (a[i] in (0, upper[i])) != (new in (0, upper[i]))
            w += (new - a[i]) * y[i] * Z[i]
            a[i] = new
    return left, rested, min(used), max(used), gap, moved, a, w


def stretch(Z, y, box, before, w_before, a, w):
    """From (a, w) on along its change, clipped to the box; (a, w) where that is no better; rows clipped."""
    (upper, ridge), p, dw = box, a - before, w - w_before
    beyond = (p.sum() - w_before @ dw - ridge @ (before * p)) / (dw @ dw + ridge @ p**2) - 1
    if not 0.05 <= abs(beyond) <= 1000:
        return a, w, 0
    trial = a + beyond * p
    new = np.clip(trial, 0, upper)
    new_w = w + beyond * dw + Z.T @ (y * (new - trial))
    better = gain(new, ridge).sum() - new_w @ new_w / 2 > gain(a, ridge).sum() - w @ w / 2
    return (new, new_w, (new != trial).sum()) if better else (a, w, (new != trial).sum())


def balanced(y, upper, a):
    """a with sum a y = 0: the heavier class gives way in proportion, its rows on the face first."""
    a, missing = a.copy(), abs(a @ y)
    mine = y == np.sign(a @ y)
    for rows in (mine & (a > 0) & (a < upper), mine & (a > 0)):
        there = a[rows].sum()
        taken = min(missing, there)
        a[rows] -= a[rows] * (taken / there if there > 0 else 0)
        missing -= taken
    return a


def cg_pass(Z, y, rows, box, a, step, p, direction, residual):
    """Residual after the step, the same scaled, sum of scaled rows, <residual, scaled>, part of the gap."""
    (upper, ridge), Z, y = box, Z[rows], y[rows]
    r = residual - step * (y * (Z @ direction) + ridge * p)
    z = r / ((Z**2).sum(axis=1) + ridge)
    return r, z, Z.T @ (y * z), r @ z, gap_of(r + ridge * a, a, upper, ridge).sum()


def cg_steps(Z, y, rows, box, a, w, residual, at_most):
    """Conjugate gradients from the scaled residual on until a bound is met: a, w, residual, gap, who met it, steps."""
    (upper, ridge), a, w, r = box, a.copy(), w.copy(), residual.copy()
    square = (Z[rows]**2).sum(axis=1) + ridge
    p, hit, done = r / square, np.zeros(len(a), bool), 0
    while done < at_most and not hit.any():
        done += 1
        direction, rz = Z[rows].T @ (y[rows] * p), r @ (r / square)
        limit = [(u - x if d > 0 else -x) / d for u, x, d in zip(upper, a, p, strict=True)]
        step = min(rz / (direction @ direction + ridge @ p**2), *limit)
        hit = np.array(limit) <= step
        a, w = np.where(hit, np.where(p > 0, upper, 0), a + step * p), w + step * direction
        r, z, _, after, gap = cg_pass(Z, y, rows, box, a, step, p, direction, r)
        p = z + after / rz * p
    return a, w, r, gap, hit, done


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
