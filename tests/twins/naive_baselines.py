"""Slow, obvious NumPy twins of the baselines: SGD, SGD-QN, the rules on gradients, CG_DESCENT with its line search."""

import numpy as np
from naive import LOSS_SLOPES, LOSS_VALUES


def risk(X, y, loss, l2, width=1.0, weight=None, l1=0.0, l1_width=1e-3):
    """(1/n) sum s_i F(y_i (<w, x_i> + b)) + (l2/2) |w|^2 + l1 sum (sqrt(w_j^2 + l1_width^2) - l1_width).

    It and its gradient, as functions of v = (w, b).
    """
    s = np.ones(len(y)) if weight is None else weight * len(y) / weight.sum()
    extra = (width,) if loss == "smoothed_hinge" else ()

    def penalty(w):
        return l2 / 2 * w @ w + l1 * np.sum(np.sqrt(w**2 + l1_width**2) - l1_width)

    def slope(z):
        if loss == "smoothed_hinge":
            return -(1 + (1 - z) / np.sqrt(width**2 + (1 - z) ** 2)) / 2
        return LOSS_SLOPES[loss](z)

    def value(v):
        return np.mean(s * LOSS_VALUES[loss](y * (X @ v[:-1] + v[-1]), *extra)) + penalty(v[:-1])

    def gradient(v):
        r = s * slope(y * (X @ v[:-1] + v[-1])) * y / len(y)
        return np.append(X.T @ r + l2 * v[:-1] + l1 * v[:-1] / np.sqrt(v[:-1] ** 2 + l1_width**2), r.sum())

    return value, gradient


# ---------------------------------------------------------------- rules: every gradient is asked for at a point

def nesterov(gradient, v, step, n_steps, momentum=None):
    """Points where the gradient was taken; with momentum None, t_k and the restart as they are in the docstring."""
    w, t, seen = v.copy(), 1.0, [v.copy()]
    for _ in range(n_steps):
        g = gradient(v)
        new = v - step * g
        if momentum is None:
            if g @ (new - w) > 0:
                t = 1.0
            following = (1 + np.sqrt(1 + 4 * t * t)) / 2
            rho, t = (t - 1) / following, following
        else:
            rho = momentum
        v, w = new + rho * (new - w), new
        seen.append(v)
    return seen


def adadelta(gradient, v, n_steps, rho, epsilon):
    seen, squares, moves = [v], np.zeros_like(v), np.zeros_like(v)
    for _ in range(n_steps):
        g = gradient(v)
        squares = rho * squares + (1 - rho) * g * g
        move = -np.sqrt(moves + epsilon) / np.sqrt(squares + epsilon) * g
        moves = rho * moves + (1 - rho) * move * move
        v = v + move
        seen.append(v)
    return seen


def adam(gradient, v, n_steps, step, beta_1, beta_2, epsilon):
    seen, m, s = [v], 0.0, 0.0
    for t in range(1, n_steps + 1):
        g = gradient(v)
        m, s = beta_1 * m + (1 - beta_1) * g, beta_2 * s + (1 - beta_2) * g * g
        v = v - step * (m / (1 - beta_1**t)) / (np.sqrt(s / (1 - beta_2**t)) + epsilon)
        seen.append(v)
    return seen


# ---------------------------------------------------------------- stochastic steps

def sgd_steps(X, visits, loss, eta, w, b, weight=None):
    """w <- w + eta s_i y_i p_i x_i, row after row."""
    for visit in visits:
        i, y = (visit, 1.0) if visit >= 0 else (-1 - visit, -1.0)
        change = -eta * (1.0 if weight is None else weight[i]) * y * LOSS_SLOPES[loss](y * (w @ X[i] + b))
        w, b = w + change * X[i], b + change
    return w, b


def qn_steps(X, visits, loss, l2, skip, w, b, B, B_b, count, learn, weight=None):
    """SGD-QN with the erratum's gains, w and b as one vector, gradients of the row's own objective by definition."""
    v, gains, free = np.append(w, b), np.append(B, B_b), np.append(np.full(len(w), l2), 0.0)
    for visit in visits:
        i, y = (visit, 1.0) if visit >= 0 else (-1 - visit, -1.0)
        x, s = np.append(X[i], 1.0), 1.0 if weight is None else weight[i]

        def gradient(v, x=x, y=y, s=s):
            return s * y * LOSS_SLOPES[loss](y * (v @ x)) * x + l2 * v

        new = v - gains * (gradient(v) - l2 * v)
        if learn:
            move, change = new - v, gradient(new) - gradient(v)
            ratio = np.where(move != 0, change / np.where(move != 0, move, 1), l2)
            gains = gains / (1 + skip * gains * np.clip(ratio, l2, 100 * l2))
        v, learn, count = new, False, count - 1
        if count <= 0:
            v = v * np.maximum(1 - skip * free * gains, 0)
            count, learn = skip, True
    return v[:-1], v[-1], gains[:-1], gains[-1], count, learn


# ---------------------------------------------------------------- CG_DESCENT: value and gradient at every trial

class Stop(Exception):
    pass


def hager_zhang(phi, slope_of, first, delta=0.1, sigma=0.9, epsilon=1e-6, theta=0.5, gamma=0.66, rho=5.0):
    """Step of the line search of Hager and Zhang 2005, section 4, from functions of the step."""
    phi_0, slope_0 = phi(0.0), slope_of(0.0)
    ceiling = phi_0 + epsilon * abs(phi_0)

    def visit(c):
        if c > 0 and slope_of(c) >= sigma * slope_0 and (
                phi(c) - phi_0 <= delta * c * slope_0 or (slope_of(c) <= (2 * delta - 1) * slope_0
                                                          and phi(c) <= ceiling)):
            raise Stop(c)
        return c

    def shrink(a, b):
        while True:
            d = visit((1 - theta) * a + theta * b)
            if slope_of(d) >= 0:
                return a, d
            a, b = (d, b) if phi(d) <= ceiling else (a, d)

    def update(a, b, c):
        if not a < c < b:
            return a, b
        visit(c)
        if slope_of(c) >= 0:
            return a, c
        return (c, b) if phi(c) <= ceiling else shrink(a, c)

    def secant(a, b):
        return (a * slope_of(b) - b * slope_of(a)) / (slope_of(b) - slope_of(a))

    try:
        a, b, c = 0.0, None, visit(first)
        while b is None:
            if slope_of(c) >= 0:
                b = c
            elif phi(c) > ceiling:
                a, b = shrink(0.0, c)
            else:
                a, c = c, visit(rho * c)
        while True:
            c = secant(a, b)
            A, B = update(a, b, c)
            if c == B:
                A, B = update(A, B, secant(b, B))
            elif c == A:
                A, B = update(A, B, secant(a, A))
            if B - A > gamma * (b - a):
                A, B = update(A, B, (A + B) / 2)
            a, b = A, B
    except Stop as found:
        return found.args[0]


def cg_descent(value, gradient, v, n_steps):
    """Points of CG_DESCENT (Hager and Zhang 2005, eq. 1.3 and 1.6), the start among them."""
    g, seen, last = gradient(v), [v], None
    d = -g
    for _ in range(n_steps):
        def phi(a, v=v, d=d):
            return value(v + a * d)

        def slope_of(a, v=v, d=d):
            return gradient(v + a * d) @ d

        if last is None:
            first = 0.01 * abs(v).max() / abs(g).max() if v.any() else 0.01 * abs(phi(0.0)) / (g @ g)
        else:
            trial = 0.1 * last
            bend = (phi(trial) - phi(0.0) - slope_of(0.0) * trial) / trial**2
            first = -slope_of(0.0) / (2 * bend) if phi(trial) <= phi(0.0) and bend > 0 else 2 * last
        last = hager_zhang(phi, slope_of, first)
        v = v + last * d
        new = gradient(v)
        y, dy = new - g, d @ (new - g)
        beta = (y - 2 * d * (y @ y) / dy) @ new / dy
        eta = -1 / (np.linalg.norm(d) * min(0.01, np.linalg.norm(g)))
        d, g = -new + max(beta, eta) * d, new
        seen.append(v)
    return seen
