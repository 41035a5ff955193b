"""Slow, obvious NumPy twins of margin pursuit: the objective, its gradient, and the projected steps with their rows."""

import numpy as np
from naive import catoni_rho

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
