"""Slow, obvious NumPy twins of norms of groups: the penalty, its dual value, and minima by proximal gradients."""

import numpy as np
from scipy.optimize import minimize


def members(groups):
    return [np.flatnonzero(np.asarray(groups) == label) for label in np.unique(groups)]


def penalty(w, groups, l2, l1):
    return l2 / 2 * w @ w + l1 * sum(np.sqrt(len(g)) * np.linalg.norm(w[g]) for g in members(groups))


def dual_value(total, v, groups, l2, l1):
    """D of dual variables with that S and v; -inf where v is too large for a penalty without l2."""
    over = np.array([np.linalg.norm(v[g]) - l1 * np.sqrt(len(g)) for g in members(groups)])
    if l2 == 0:
        return total if (over <= 0).all() else -np.inf
    return total - (np.maximum(over, 0) ** 2).sum() / (2 * l2)


def best_dual_value(total, v, groups, l2, l1, n=20_001):
    """The best of multiples of them, on a grid."""
    if l2 == 0:
        return total * min(1.0, *(l1 * np.sqrt(len(g)) / np.linalg.norm(v[g]) for g in members(groups)))
    return max(dual_value(t * total, t * v, groups, l2, l1) for t in np.linspace(0, 1, n))


def proximal_step(w, gradient, step, groups, l1):
    """argmin over x of <gradient, x> + |x - w|^2 / (2 step) + l1 sum sqrt(|g|) |x_g|."""
    x = w - step * gradient
    for g in members(groups):
        size = np.linalg.norm(x[g])
        x[g] *= max(0.0, 1 - step * l1 * np.sqrt(len(g)) / size) if size > 0 else 0.0
    return x


def smooth_minimum(A, y, loss, groups, l2, l1, n_steps=20_000):
    """w, and the objective there, of mean loss(y A w) and the penalty, which a column behind those of groups is not
    under; accelerated, begun anew where a step rises. ``loss``: F, F' and the most that F'' is."""
    m, n = len(groups), len(y)
    step = n / (loss[2] * np.linalg.norm(A, 2) ** 2 + n * l2)

    def value(w):
        return loss[0](y * (A @ w)).mean() + penalty(w[:m], groups, l2, l1)

    w = ahead = np.zeros(A.shape[1])
    t, known = 1.0, value(w)
    for _ in range(n_steps):
        gradient = A.T @ (y * loss[1](y * (A @ ahead))) / n
        gradient[:m] += l2 * ahead[:m]
        new = ahead - step * gradient
        new[:m] = proximal_step(ahead[:m], gradient[:m], step, groups, l1)
        if value(new) > known:
            if t == 1:
                break
            ahead, t = w, 1.0
            continue
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        ahead, w, t, known = new + (t - 1) / t_new * (new - w), new, t_new, value(new)
    return w, known


def box_bound(Z, gain, low, high, groups, l2, l1):
    """The largest D of low <= a <= high with S = <gain, a> / n and v = Z'a / n, l2 > 0, where it is smooth in a."""
    n, parts = len(Z), members(groups)

    def negative(a):
        v, slope = a @ Z / n, np.zeros(Z.shape[1])
        for g in parts:
            size = np.linalg.norm(v[g])
            slope[g] = v[g] * max(0.0, 1 - l1 * np.sqrt(len(g)) / size) / l2 if size > 0 else 0
        return -dual_value(gain @ a / n, v, groups, l2, l1), Z @ slope / n - gain / n

    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-12}
    start, bounds = np.full(n, (low + high) / 2), [(low, high)] * n
    return -minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).fun
