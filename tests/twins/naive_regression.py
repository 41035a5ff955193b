"""Slow, obvious NumPy twins of regression by losses with two kinks: F(u) = up max(0, u - e) + down max(0, -u - e)."""

import numpy as np
from naive_smsvm import dual_curvature, smoothed


def loss_of(u, up, down, e):
    return up * np.maximum(u - e, 0) + down * np.maximum(-u - e, 0)


def kinks_of(loss, parameter):
    """up, down and e."""
    return (1.0, 1.0, parameter) if loss == "epsilon_insensitive" else (parameter, 1 - parameter, 0.0)


def parts_of(a, width, up, down, e):
    """The dual variables of both hinges from the row's own, up a_up - down a_down: exact for e = 0 (a_up + a_down = 1),
    for a small width (one of them is 0), and at u = 0 if up = down."""
    share = (1 - e / np.hypot(width, e)) / (up + down)
    left = 1 - np.maximum(a, 0) / up - np.maximum(-a, 0) / down
    return np.maximum(a, 0) / up + share * down * left, np.maximum(-a, 0) / down + share * up * left


def two_kinks_evaluation(X, s, t, w, e, kinks, width_before, width, step=1.0, dual=None):
    """What one read of the rows gives at w + step e: sums, gains of positive and negative dual variables, gradient
    rows, curvature, dual variables carried on (``dual``: before the step, None at the start)."""
    up, down, flat = kinks
    change, u0 = X @ e, t - X @ w
    u1 = u0 - step * change

    def at(u, width):
        (F, a, h), (G, b, k) = smoothed(u - flat, width), smoothed(-u - flat, width)
        return up * F + down * G, (a, b), (h, k)

    line, line_parts, _ = at(u1, width_before)
    value, next_parts, (h, k) = at(u1, width)
    _, (a0, b0), (h0, k0) = at(u0, width_before)
    if dual is not None:
        a, b = parts_of(dual, width_before, *kinks)
        h0, k0 = dual_curvature(a, u0 - flat, width_before), dual_curvature(b, -u0 - flat, width_before)
    a_hat = up * np.clip(a0 - h0 * change, 0, 1) - down * np.clip(b0 + k0 * change, 0, 1)
    slope = up * next_parts[0] - down * next_parts[1]
    carried = slope
    if dual is not None:
        carried = dual + min(1, step) * (a_hat - dual)
        a, b = parts_of(carried, width, *kinks)
        h, k = dual_curvature(a, u1 - flat, width), dual_curvature(b, -u1 - flat, width)
    sides = a_hat > 0, a_hat < 0
    sums = [s @ line, -(s * (up * line_parts[0] - down * line_parts[1])) @ change, s @ loss_of(u1, *kinks), s @ value,
            (s * a_hat)[sides[0]].sum(), -(s * a_hat)[sides[1]].sum()]
    gain = s * (t * a_hat - flat * np.abs(a_hat))
    gradient = np.stack([X.T @ (s * slope), *(X.T @ (s * a_hat * side) for side in sides)])
    return np.array(sums), [gain[side].sum() for side in sides], gradient, (X.T * (s * (up * h + down * k))) @ X, \
        carried


def objective(X, t, w, b, kinks, l2, l1, s=None):
    """P, not smoothed, of the mean loss under weights s."""
    return l2 / 2 * w @ w + l1 * np.abs(w).sum() + np.average(loss_of(t - X @ w - b, *kinks), weights=s)


def dual_value(X, t, s, a, kinks, l2, l1):
    """D(a), -down <= a <= up; with a free intercept sum s a must be 0."""
    v = X.T @ (s * a) / s.sum()
    return np.average(t * a - kinks[2] * np.abs(a), weights=s) - (np.maximum(np.abs(v) - l1, 0) ** 2).sum() / (2 * l2)


# ---------------------------------------------------------------- losses that need no smoothing

def squared_epsilon_insensitive(u, e):
    """Value, slope and curvature in the residual u."""
    over = np.maximum(np.abs(u) - e, 0)
    return over**2, 2 * np.sign(u) * over, 2.0 * (np.abs(u) >= e)


def huber(u, delta):
    inside = np.clip(u, -delta, delta)
    return np.where(np.abs(u) <= delta, u**2 / 2, delta * np.abs(u) - delta**2 / 2), inside, 1.0 * (np.abs(u) <= delta)


# by name: the loss, what a dual variable a adds to the bound beside t a, and the largest |a| for a parameter
SMOOTH = {"squared_epsilon_insensitive": (squared_epsilon_insensitive, lambda a, e: -e * np.abs(a) - a**2 / 4,
                                          lambda e: np.inf),
          "huber": (huber, lambda a, delta: -(a**2) / 2, lambda delta: delta)}


def smooth_residual_evaluation(X, s, t, w, e, step, loss, parameter):
    """What one read of the rows gives at w + step e: value, slope in the step, gains of positive and of negative dual
    variables, their sums, curvature; gradient rows; the block of curvature."""
    at, gain, largest = SMOOTH[loss]
    change, u0 = X @ e, t - X @ w
    value, slope, h = at(u0 - step * change, parameter)
    _, slope0, h0 = at(u0, parameter)
    a = np.clip(slope0 - h0 * change, -largest(parameter), largest(parameter))
    gains, sides = s * (t * a + gain(a, parameter)), (a >= 0, a < 0)
    of_sides = [part[side].sum() for part in (gains, s * np.abs(a)) for side in sides]
    sums = [s @ value, -(s * slope) @ change, *of_sides, s @ h]
    return np.array(sums), np.stack([X.T @ (s * slope), *(X.T @ (s * a * side) for side in sides)]), (X.T * (s * h)) @ X
