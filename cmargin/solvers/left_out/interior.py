"""The hinge's optimum, or the point of its central path, on the rows near the kink: an interior-point method.

Rows whose side of the kink is known are a linear term or nothing; what is left has as few rows as matter. On the
central path of parameter m (Wright 1997, chapter 1) the slack 1 - z of a row is m/(1-a) - m/a, so that every dual
variable has room to rise and fall, of about m / |1 - z|, and each row adds less than 2 m times its weight to the gap.
"""

from dataclasses import dataclass

import numpy as np

from cmargin.solvers.left_out.problem import Factor

MOST_STEPS = 80
TO_BOUND = 0.995                 # part of the way to the nearest bound that a step goes
CENTRED = 2.0                    # how many times m the largest product of a pair may be at the end
OPTIMAL = 1e-13                  # what rounding leaves of the stationarity condition, in parts of its terms


@dataclass
class Centre:
    """What `centre` found: weights, and of its rows the dual variables and d a / d slack."""

    v: np.ndarray
    a: np.ndarray
    compliance: np.ndarray


def dual_of_slack(e, m):
    """a of m/(1-a) - m/a = e."""
    wide = np.hypot(e, 2 * m)
    return np.where(e > 0, (wide + e) / (wide + e + 2 * m), 2 * m / (wide - e + 2 * m))


def centre(G, weight, penalty, linear, v, m):
    """`Centre` of sum_j r_j F(g_j'v) + v'Dv/2 - linear'v, from v, by Mehrotra's predictor and corrector.

    G: (n_rows, n_columns) rows of positive weight; ``m``: the central path's parameter.
    """
    at = Iterate(G, weight, penalty, linear, v, m)
    for _ in range(MOST_STEPS):
        if at.is_at_the_end(m):
            break
        at.factorise()
        _, da, d_up, d_down = change = at.newton(0.0, 0.0, 0.0)
        t, mu = at.longest(change), at.mean()
        foreseen = np.concatenate([(at.b - t * da) * (at.up + t * d_up), (at.a + t * da) * (at.down + t * d_down)])
        change = at.newton(max(m, mu * (foreseen.mean() / mu) ** 3), -da * d_up, da * d_down)
        t = at.longest(change)
        if not t > 1e-10:
            break
        at.move(t, *change)
    return Centre(at.v, at.a, at.compliance())


class Iterate:
    """Weights v, dual variables a, 1 - a = b whose digits are not to be lost, and the slack 1 - z = up - down."""

    def __init__(self, G, weight, penalty, linear, v, m):
        self.G, self.weight, self.penalty, self.linear = G, weight, penalty, linear
        e = 1 - G @ v
        mu = max(m, 0.1 * np.median(np.abs(e)))
        self.v, self.a, self.b = v, dual_of_slack(e, mu), dual_of_slack(-e, mu)
        self.up, self.down = mu / self.b, mu / self.a
        self.scale = np.abs(linear).max(initial=0.0) + weight @ np.abs(G).max(axis=1, initial=0.0)

    def products(self):
        return np.concatenate([self.b * self.up, self.a * self.down])

    def mean(self):
        return self.products().mean()

    def compliance(self):
        return 1 / (self.up / self.b + self.down / self.a)

    def is_at_the_end(self, m):
        """Whether the conditions of the central path hold; keeps what is left of the linear ones."""
        z = self.G @ self.v
        self.off = self.linear + self.G.T @ (self.weight * self.a) - self.penalty * self.v
        self.short = 1 - z - (self.up - self.down)
        fits = np.abs(self.off).max() <= OPTIMAL * self.scale and \
            np.abs(self.short).max() <= 10 * OPTIMAL * (1 + np.abs(z).max())
        return fits and self.products().max() <= CENTRED * m

    def factorise(self):
        H = (self.G * (self.weight * self.compliance())[:, None]).T @ self.G
        H[np.diag_indices_from(H)] += self.penalty
        self.factor = Factor(H)

    def newton(self, target, above, below):
        """The Newton step to products ``target``; ``above``, ``below``: second-order terms of the last one."""
        rise = (target - above) / self.b - self.up
        fall = (target - below) / self.a - self.down
        compliance = self.compliance()
        own = compliance * (self.short - rise + fall)
        dv = self.factor.solve(self.off + self.G.T @ (self.weight * own))
        da = own - compliance * (self.G @ dv)
        return dv, da, rise + self.up / self.b * da, fall - self.down / self.a * da

    def longest(self, change):
        """The part of a step, at most 1, that keeps a, b and both slacks positive."""
        _, da, d_up, d_down = change
        t = 1.0
        for x, dx in ((self.a, da), (self.b, -da), (self.up, d_up), (self.down, d_down)):
            falls = dx < 0
            if falls.any():
                t = min(t, TO_BOUND * (x[falls] / -dx[falls]).min())
        return t

    def move(self, t, dv, da, d_up, d_down):
        self.v = self.v + t * dv
        self.a, self.b = self.a + t * da, self.b - t * da
        self.up, self.down = self.up + t * d_up, self.down + t * d_down
