"""Slow, obvious NumPy twins of margin pursuit: the objective and its gradient, Newton's steps, the projected steps."""

import numpy as np
from api import exact_step
from naive import bfgs_inverse, catoni_rho

WORD = (1 << 64) - 1


def psi(u):
    return np.where(np.abs(u) <= np.sqrt(2), u - u**3 / 6, np.sign(u) * 2 * np.sqrt(2) / 3)


def objective(X, y, w, b, level, scale, l2, weight=None):
    """Q and its gradient in (w, b); y of -1/+1, b not penalised."""
    s = np.ones(len(y)) if weight is None else weight * len(y) / weight.sum()
    u = (level - y * (X @ w + b)) / scale
    r = -s * scale * psi(u) * y / len(y)
    value = np.mean(s * scale**2 * catoni_rho(u)) + l2 / 2 * w @ w
    return value, np.append(X.T @ r + l2 * w, r.sum())


def newton_steps(A, signed_weight, level, scale, l2, tol, w, fall=1.0):
    """Points that Newton's steps pass, the start included, and of every evaluation whether it sums curvature.

    ``signed_weight`` (n,) is s_i y_i, ``l2`` (p,) of every column of A, ``fall`` what the first step is expected to do.
    The inverse Hessian is a matrix here, and corrected as one.
    """
    y, s, none = np.sign(signed_weight), np.abs(signed_weight), np.empty(0)

    def at(w):
        u = (level - y * (A @ w)) / scale
        h = s * np.where(np.abs(u) <= np.sqrt(2), 1 - u**2 / 2, 0.0) / s.sum()
        g = -A.T @ (signed_weight * scale * psi(u)) / s.sum() + l2 * w
        return s @ catoni_rho(u) * scale**2 / s.sum() + l2 @ w**2 / 2, g, h

    def phi(t):
        _, g, h = at(w + t * d)
        return g @ d, h @ (A @ d) ** 2 + l2 @ d**2

    points, curved, inverse, kept = [w], [True], None, 0
    value, g, h = at(w)
    summed = h
    enough = tol * np.linalg.norm(at(np.zeros(len(w)))[1])
    while np.linalg.norm(g) > enough:
        d, t = -g, 1.0
        if h.sum() > 1e-6:
            if inverse is None:
                inverse, kept = np.linalg.inv(A.T @ (summed[:, None] * A) + np.diag(l2)), 0
            d = -inverse @ g
        curved.append(not (fall > 1 and np.log(fall) * (1 + len(w) / 15) > np.log(100)))
        new = at(w + d)
        if new[0] > value + 1e-4 * (g @ d) + 1e-14 * value or abs(new[1] @ d) > 0.9 * -(g @ d):
            t = exact_step(phi, none, none, none, np.inf, 1e-3)[0]
            new = at(w + t * d)
            curved[-1:] = [curved[-1], True]
        ratio = np.linalg.norm(g) / np.linalg.norm(new[1])
        if curved[-1]:
            fall, inverse, summed = ratio, None, new[2]
        elif inverse is None:
            fall = ratio
        else:
            inverse = bfgs_inverse(inverse, t * d, new[1] - g)
            fall, kept = (ratio * fall**kept) ** (1 / (kept + 1)), kept + 1
        w, (value, g, h) = w + t * d, new
        points.append(w)
    return points, curved


def table_shares(cut, other):
    """Probability of every row: that a bucket is its own and high enough, or is shared with a lower one."""
    share = cut.copy()
    np.add.at(share, other, 1 - cut)
    return share / len(cut)


def random_rows(stream, n_rows, n_draws, cut=None, other=None):
    """Rows that xoshiro256++ draws from four words of state (Blackman and Vigna 2021), by a table of weights."""
    a, b, c, d = (int(word) for word in stream)
    rows = []
    for _ in range(n_draws):
        total = (a + d) & WORD
        word = (((total << 23) | (total >> 41)) + a) & WORD
        shifted = (b << 17) & WORD
        c, d = c ^ a, d ^ b
        b, a = b ^ c, a ^ d
        c ^= shifted
        d = ((d << 45) | (d >> 19)) & WORD
        at = (word >> 11) / 2.0**53 * n_rows
        rows.append(int(at) if cut is None or at - int(at) < cut[int(at)] else int(other[int(at)]))
    return rows


def projected_steps(X, y, rows, w, b, slope, l2, first, radius, intercept, delay=0.0, t=0):
    """w <- (1 - a l2) w - a F'(z) y x_i, a = first / (1 + delay + t), then onto the ball; b is one more weight."""
    for i in rows:
        a = first / (1 + delay + t) if l2 > 0 else first / np.sqrt(1 + t)
        z = y[i] * (X[i] @ w + b)
        change = -a * slope(z) * y[i]
        shrink = max(1 - a * l2, 0.0)
        w, b = shrink * w + change * X[i], shrink * b + change * intercept
        length = np.sqrt(w @ w + b * b)
        if length > radius:
            w, b = w * (radius / length), b * (radius / length)
        t += 1
    return w, b
