"""NumPy twins of the dual of SmSVM on the face: the sweep, one pass of conjugate gradients, and the intercept."""

import numpy as np


def sweep(Z, y, order, low, high, upper, a, w):
    """Rows that left; rows that stayed at their bound; least and largest deficit used; gap; moves; a; w.

    Z holds the constant column.
    """
    a, w = a.copy(), w.copy()
    left, rested, used, gap, moved = [], [], [0.0], 0.0, 0
    for i in order:
        u = 1 - y[i] * (Z[i] @ w)
        if (a[i] == 0 and u < low) or (a[i] == upper[i] and u > high):
            left.append(i)
            continue
        gap += upper[i] * max(0, u) - a[i] * u
        new = np.clip(a[i] + u / (Z[i] @ Z[i]), 0, upper[i])
        if new == a[i] and new in (0, upper[i]):
            rested.append(i)
        elif new != a[i]:
            used.append(u)
            moved += (a[i] in (0, upper[i])) != (new in (0, upper[i]))
            w += (new - a[i]) * y[i] * Z[i]
            a[i] = new
    return left, rested, min(used), max(used), gap, moved, a, w


def stretch(Z, y, upper, before, w_before, a, w):
    """From (a, w) on along its change, clipped to the box; (a, w) where that is no better; rows clipped."""
    p, dw = a - before, w - w_before
    beyond = (p.sum() - w_before @ dw) / (dw @ dw) - 1
    if not 0.05 <= abs(beyond) <= 1000:
        return a, w, 0
    trial = a + beyond * p
    new = np.clip(trial, 0, upper)
    new_w = w + beyond * dw + Z.T @ (y * (new - trial))
    better = new.sum() - new_w @ new_w / 2 > a.sum() - w @ w / 2
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


def cg_pass(Z, y, rows, upper, a, step, direction, residual):
    """Residual after the step, the same scaled, sum of scaled rows, <residual, scaled>, part of the gap."""
    Z, y = Z[rows], y[rows]
    r = residual - step * y * (Z @ direction)
    z = r / (Z**2).sum(axis=1)
    return r, z, Z.T @ (y * z), r @ z, upper @ np.maximum(r, 0) - a @ r


def cg_steps(Z, y, rows, upper, a, w, residual, at_most):
    """Conjugate gradients from the scaled residual on until a bound is met: a, w, residual, gap, rows that met it."""
    square, a, w, r = (Z[rows]**2).sum(axis=1), a.copy(), w.copy(), residual.copy()
    p, hit = r / square, np.zeros(len(a), bool)
    for _ in range(at_most):
        direction, rz = Z[rows].T @ (y[rows] * p), r @ (r / square)
        limit = [(u - x if d > 0 else -x) / d for u, x, d in zip(upper, a, p, strict=True)]
        step = min(rz / (direction @ direction), *limit)
        hit = np.array(limit) <= step
        a, w = np.where(hit, np.where(p > 0, upper, 0), a + step * p), w + step * direction
        r, z, _, after, gap = cg_pass(Z, y, rows, upper, a, step, direction, r)
        if hit.any():
            break
        p = z + after / rz * p
    return a, w, r, gap, hit


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
