"""CG_DESCENT: nonlinear conjugate gradients with guaranteed descent (Hager and Zhang 2005, 2006), problem by problem.

    d_0 = -g_0,   d_{k+1} = -g_{k+1} + beta_k d_k,   y_k = g_{k+1} - g_k
    beta_k = max(beta^N_k, eta_k)                                                              (2005, eq. 1.6)
    beta^N_k = <y_k - 2 d_k |y_k|^2 / <d_k, y_k>, g_{k+1}> / <d_k, y_k>                         (2005, eq. 1.3)
    eta_k = -1 / (|d_k| min(eta, |g_k|)),  eta = 0.01                                          (2005, eq. 1.6)

The margins z and their change along d are kept per row: an iteration reads X twice, once for X d and once for the
gradient, which is the work of one evaluation of value and gradient, however many steps the line search tries.
"""

from dataclasses import dataclass, replace

import numpy as np

from cmargin._core.losses._losses import LOSS_IDS, evaluate
from cmargin._core.rows import _line_sums
from cmargin._runtime.checkpoint import Resumable
from cmargin.solvers.first_order.full_batch import FullBatch, Objective
from cmargin.solvers.first_order.hager_zhang import LineSearch, OutOfTrials, first_step, next_step
from cmargin.solvers.per_class import worthwhile_threads

ETA = 0.01                   # eta of the truncation
POINT_NUMBERS = 4            # numbers read for one row along a line: fewer than 100,000 rows stay on one thread


class SmoothRisk(Objective):
    """(1/n) sum s_i F(z_i) + (l2/2) |w|^2 + l1 |w|_1, smoothed, of one problem; ``width``: of the smoothed hinge."""

    def __init__(self, blocks, c, l2, fit_intercept, loss, width=0.0, l1=0.0):
        super().__init__(blocks, c, l2, fit_intercept, l1)
        self.loss, self.width = LOSS_IDS[loss], float(width)

    def of_margins(self, z):
        value, slope, curvature = np.empty((3, len(z)))
        evaluate(self.loss, z, value, slope, curvature, self.width)
        return self.weight @ value, self.weight * slope


class Line(Resumable):
    """A `SmoothRisk` along lines: the point v, its margins, and the change of the margins along d."""

    made_again = ("risk", "threads")

    def __init__(self, risk, v, found=None):
        """``found``: the `snapshot` of another line of the same risk, to stand where that was."""
        self.risk = risk
        self.threads = worthwhile_threads(risk.blocks.n_threads, len(risk.y) * POINT_NUMBERS)
        if found is not None:
            self.go_on_from(found)
            return
        self.v = v.copy()
        self.value, self.gradient = risk(v)
        self.z, self.slope = np.ascontiguousarray(risk.seen[3]), np.empty(len(risk.y))

    def phi(self, d):
        """phi(step) -> (value, slope) along ``d``; half a read, for X d."""
        risk = self.risk
        self.d, self.change = d, np.ascontiguousarray(risk.margins(d))
        w, penalty = self.v[:-1], risk.penalty

        def phi(step):
            value, slope = _line_sums.line(risk.loss, risk.width, risk.weight, self.z, self.change, step,
                                           self.threads)
            at = w + step * d[:-1]
            return value + penalty.value(at), slope + penalty.gradient(at) @ d[:-1]

        return phi

    def settle(self, trial):
        """Go to a `Trial` of the line; half a read, for the gradient there."""
        risk = self.risk
        _line_sums.move(risk.loss, risk.width, risk.weight, self.z, self.change, trial.step, self.slope, self.threads)
        self.v = self.v + trial.step * self.d
        self.value, self.gradient = trial.value, risk.gradient(self.v, self.slope)
        risk.seen = (self.v, self.value, np.linalg.norm(self.gradient), self.z)


@dataclass
class Descent:
    """How far a problem has come."""

    at_zero: float               # gradient norm at w = 0
    d: np.ndarray                # the next direction
    last: float | None = None    # the last step
    passes: int = 0
    line: dict | None = None     # of a checkpoint: the point


class CGDescent(FullBatch):
    """All problems of an estimator, one after the other; parameters as in `FullBatch`."""

    made_again = (*FullBatch.made_again, "line")

    def one_class(self, c, on_pass):
        risk, v = self.make(c, self.widths[0]), np.append(self.fit.W[c], self.fit.bias[c])
        if self.progress is None:
            risk(np.zeros_like(v))
            at_zero = max(risk.seen[2], np.finfo(float).tiny)
            self.line = Line(risk, v)
            self.progress = Descent(at_zero, -self.line.gradient)
            self.keep(c, 0, v, risk, at_zero, None)
        else:
            risk.reads, self.line = self.reads[c], Line(risk, v, self.progress.line)
        at = self.progress
        try:
            for passes in self.steps(self.line, at, self.settings.tol * at.at_zero):
                self.keep(c, passes, self.line.v, risk, at.at_zero, on_pass)
                self.checkpointer.offer(self.fit.reads, self.snapshot)
        except OutOfTrials:
            pass                 # no step lowers the objective any more: to within rounding, this is the minimum
        finally:
            self.count(c, risk)

    def snapshot(self):
        return {**super().snapshot(), "progress": replace(self.progress, line=self.line.snapshot())}

    def steps(self, line, at, enough):
        """Yield the number of iterations after each; ends at a gradient norm of ``enough`` or after ``max_passes``."""
        while at.passes < self.settings.max_passes:
            norm = np.linalg.norm(line.gradient)
            if norm <= enough:
                return
            slope = line.gradient @ at.d
            if not slope < 0:                            # rounding: begin anew
                at.d, slope = -line.gradient, -norm**2
            phi = line.phi(at.d)
            self.clock.watch()
            if at.last is None:
                step = first_step(np.abs(line.v).max(), line.value, np.abs(line.gradient).max(), norm**2)
            else:
                step = next_step(phi, line.value, slope, at.last)
            trial, before = LineSearch(phi, line.value, slope).search(step), line.gradient
            line.settle(trial)
            at.last, at.passes = trial.step, at.passes + 1
            at.d = -line.gradient + beta(line.gradient, before, at.d) * at.d
            yield at.passes


def beta(gradient, before, d):
    """max(beta^N, eta_k); 0 where the slope did not grow along d."""
    y = gradient - before
    dy = d @ y
    if not dy > 0:
        return 0.0
    newton = (y - 2 * d * (y @ y / dy)) @ gradient / dy
    return max(newton, -1 / (np.linalg.norm(d) * min(ETA, np.linalg.norm(before))))
