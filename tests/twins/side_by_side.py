"""A problem of `cmargin._core.lanes` in NumPy: one label by conjugate gradients, t and b exact along every line."""

import numpy as np


def solve(X, y, s, l2, inverse, l2_bias, tol, most):
    """w, b, steps; ``inverse`` (m, m); ``l2_bias``: None without an intercept, 0 where it is free."""
    n, m = X.shape
    w, b, d, score, change, length, steps = np.zeros(m), 0.0, np.zeros(m), np.zeros(n), np.zeros(n), 0.0, 0
    before = np.zeros(m)
    while True:
        t, b = line(score, change, y, s, w @ d, d @ d, b, l2, l2_bias)
        w, score = w + t * d, score + t * change
        u = np.maximum(0, 1 - y * (score + b))
        gradient = l2 * w - X.T @ (2 * s * u * y) / n
        value = l2 * (w @ w) / 2 + (l2_bias or 0) * b**2 / 2 + (s * u**2).sum() / n
        steps += 1
        gap = gradient @ gradient / (2 * l2 * value)
        if gap <= tol or steps >= most or (3 * steps >= most and gap > tol**(steps / most)):
            return w, b, steps
        z = inverse @ gradient
        beta = max(0.0, z @ (gradient - before) / length) if length > 0 and t != 0 else 0.0
        d = beta * d - z if beta * (d @ gradient) < z @ gradient else -z
        before, length, change = gradient, z @ gradient, X @ d


def line(score, change, y, s, wd, dd, b, l2, l2_bias):
    """The best t and b by Newton's method in two unknowns, which is exact once it knows the rows that have slack."""
    n, t = len(y), 0.0
    for _ in range(50):
        u = 1 - y * (score + t * change + b)
        a = s * (u > 0)
        slope = np.array([l2 * (wd + t * dd) - 2 / n * (a * u * y) @ change, (l2_bias or 0) * b - 2 / n * (a * u) @ y])
        H = 2 / n * np.array([[(a * change) @ change, a @ change], [a @ change, a.sum()]])
        H += np.diag([l2 * dd, l2_bias or 0])
        if l2_bias is None:
            slope[1] = H[0, 1] = H[1, 0] = 0
        step = -np.linalg.pinv(H) @ slope
        t, b = t + step[0], b + step[1]
        if np.abs(step).max() <= 1e-14 * (abs(t) + abs(b)):
            break
    return t, b
