"""A primal-dual interior-point method for small dense quadratic programs, by the textbook (Mehrotra's steps)."""

import numpy as np

STEPS, DONE, INSIDE = 100, 1e-13, 0.995


def quadratic_program(D, q, G, h):
    """argmin 1/2 sum D x^2 + q'x over G x <= h, about; D (n,) >= 0, and there is a minimum."""
    scale = np.maximum(np.abs(G).max(axis=1, initial=0), 1e-300)
    G, h = G / scale[:, None], h / scale
    x = np.zeros(len(q))
    s = np.maximum(h - G @ x, 1.0)
    a = np.ones(len(h))
    for _ in range(STEPS):
        dual, primal, mu = D * x + q + G.T @ a, G @ x + s - h, s @ a / len(h)
        if mu <= DONE * (1 + abs(q @ x)) and max(np.abs(dual).max(), np.abs(primal).max()) <= 1e-11:
            break
        H = np.diag(D + 1e-14) + (G.T * (a / s)) @ G
        try:
            factor = np.linalg.cholesky(H + 1e-15 * np.trace(H) / len(H) * np.eye(len(H)))
        except np.linalg.LinAlgError:
            break

        def step(target, factor=factor, a=a, s=s, dual=dual, primal=primal):
            r = (target - s * a + a * primal) / s
            dx = -np.linalg.solve(factor.T, np.linalg.solve(factor, dual + G.T @ r))
            ds = -primal - G @ dx
            return dx, ds, (target - s * a - a * ds) / s

        _, ds, da = step(0.0)
        after = (s + longest(s, ds) * ds) @ (a + longest(a, da) * da) / len(h)
        dx, ds, da = step((after / mu) ** 3 * mu - ds * da)
        t = INSIDE * min(longest(s, ds), longest(a, da))
        x, s, a = x + t * dx, s + t * ds, a + t * da
    return x


def longest(v, d):
    """The longest step up to 1 for which v + t d stays positive."""
    falling = d < 0
    with np.errstate(over="ignore"):
        return min(1.0, (-v[falling] / d[falling]).min(initial=np.inf))
