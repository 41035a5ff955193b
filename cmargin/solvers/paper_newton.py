"""SmSVM as published: Algorithms 1-4, step for step, over the pass interface.

Kept to compare with, not to be fast: every trial of the Armijo search is a read of the data.
"""

import numpy as np

from cmargin._core._line_search import quadratic_step
from cmargin._core._newton_system import cholesky_solve
from cmargin.solvers.continuation_newton import ContinuationNewton

WIDTH_MIN = 1e-6               # the paper's, for test runs
STEP_MIN = 1e-10


class PaperNewton(ContinuationNewton):
    """Newton on the active block, quadratic model along the line with the l1 breakpoints, Armijo, exact zeros."""

    def __init__(self, rows, problem, settings, newton_tol, result, w=None):
        super().__init__(rows, problem, settings, result, w=w)
        self.newton_tol = newton_tol
        self.actives = []                      # active set of every step, to compare with a transcription

    def run(self):
        self.rows.start(primal=True)           # the published curvature, F''(u)
        self.rows.set_active(None)
        self.look(self.w, 1.0, self.width, self.width)
        self.after_look(1.0)
        self.measure_columns(None)
        self.active_now = (self.w != 0) | (np.abs(self.smooth_gradient) > self.l1_each) | (self.l1_each == 0)
        self.adjust = True
        self.go_on()
        self.settle()
        if self.result.status == "running":
            self.result.status = "rounding"
        return self.result

    def floor(self, width):
        return 0.0                             # the published algorithm sums every row

    def step(self):
        w, g_hat, active = self.w, self.smooth_gradient, self.active_now
        g = g_hat + self.l1_each * np.sign(w)
        fresh = active & (w == 0)
        g[fresh] -= self.l1_each[fresh] * np.sign(g_hat[fresh])
        H = self.hessian / self.rows.total_weight
        H = np.triu(H) + np.triu(H, 1).T + np.diag(self.l2_each)
        index = np.flatnonzero(active)
        d = np.zeros_like(w)
        d[index] = -cholesky_solve(np.ascontiguousarray(H[np.ix_(index, index)]), g[index])[0]
        self.predicted = abs(d @ g)
        if self.predicted < self.newton_tol * self.width:                      # Algorithm 3
            J = ~active & (np.abs(g_hat) > self.l1_each)
            if not (J.any() and self.adjust):
                return self.reduce_width()
            self.active_now = active = active | J
            g[J] = g_hat[J] - self.l1_each[J] * np.sign(g_hat[J])
            d[J] = -g[J]
            self.adjust = False
        self.actives.append(active.copy())
        s, hit = quadratic_step(w, d, d @ g_hat, d @ H @ d / 2, self.l1_each)     # Algorithm 4
        before, width = self.value, self.width
        self.look(d, s, width, width)
        while s > STEP_MIN and self.value_at(w + s * d) > before + 1e-4 * s * (d @ g):
            s, hit = s / 2, -1
            self.look(None, s, width, width)
        if s <= STEP_MIN:
            self.look(None, 0.0, width, width)
            return self.reduce_width()
        new = w + s * d
        gone = (w != 0) & ((new == 0) | (np.sign(new) == -np.sign(w)))
        if hit >= 0:
            gone[hit] = True
        self.active_now = active & ~gone
        if (new[gone] != 0).any():             # margins must follow the components set to zero
            move = np.where(gone, -new, 0.0)
            self.look(move, 1.0, width, width)
            new = np.where(gone, 0.0, new)
        self.w = new
        self.drift += self.rounding_of(new - w)
        self.after_look(s)

    def value_at(self, w):
        l2_part, l1_part = self.penalty(w)
        return self.sums[3] + l2_part + l1_part

    def reduce_width(self):
        """alpha <- beta alpha, until the next value is the last the paper allows."""
        self.width *= self.settings.smoothing_decay
        self.adjust = True
        if self.width <= self.settings.smoothing_decay * WIDTH_MIN:
            self.result.status = "stalled"
            return
        self.look(np.zeros_like(self.w), 1.0, self.width, self.width)
        self.after_look(0.0)
