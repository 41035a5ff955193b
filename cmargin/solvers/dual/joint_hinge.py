"""The joint hinge of all classes (Crammer and Singer 2001) to its optimum, with a certificate: sweeps of its dual.

    P(W, b) = (l2/2) |W|^2 + (1/N) sum_i s_i max_c (1[c != y_i] + h_c(x_i) - h_{y_i}(x_i)),   h_c(x) = <w_c, x> + b_c

The dual variables of a row are a point of a simplex, and go to their best one together; what sweeps over the rows have
changed is stretched to the best point along their last moves (`_core/rows/_joint_sweeps`). With
W = sum_i x_i (C_i e_y - a_i)', C_i = s_i / (l2 N), every such point proves

    P >= D = l2 (sum_i (C_i - a_iy) - |W|^2 / 2)

where b is 0, or penalised as the coefficients of a column of ones. A free b needs r = sum_i (C_i e_y - a_i) = 0, and is
its multiplier, a column of small constants, as in `cmargin.solvers.dual.dual_newton`. For the certificate r is brought
to 0 by rows whose dual variables are between classes, to which that costs nothing to first order; what is left of it by
mixing in one point q of the simplex for all rows, a' = (1 - t) a + t C_i q with t q = t share + (1 - t) r / sum C.
"""

import numpy as np

from cmargin._core.newton._bound import ROUNDING
from cmargin._runtime.clock import TimeUp
from cmargin._runtime.deferred import Deferred
from cmargin.solvers.dual.dual_newton import stream_of
from cmargin.solvers.newton.slices import SLICE
from cmargin.solvers.result import Result

PART = 10**7                 # multiply-adds between two readings of the clock


class JointHinge:
    """One problem on its way; ``result.w`` is (n_classes, n_features), intercepts in a last column, the best so far.

    ``labels`` (n_rows,): 0 .. n_classes - 1, each of them met; ``weight``: of mean 1, or None; ``free``: b is not
    penalised. ``settings.tell`` is called with the result after every evaluation, ``settings.stop`` ends the run by a
    true answer.
    """

    def __init__(self, source, labels, weight, n_classes, l2, intercept, free, settings, seed=0):
        self.settings, self.l2, self.intercept, self.free = settings, l2, intercept, free
        self.rows = source.joint_rows(labels, weight, n_classes, l2, intercept, free, stream_of(seed).copy())
        self.at_once = max(1, PART // self.rows.work)
        self.result = Result(np.zeros((n_classes, source.n_features + intercept)), objective=1.0)

    def run(self):
        """Sweeps and evaluations until tol is certified or something else ends them. The interrupt, or None."""
        try:
            self._go_on()
        except TimeUp:
            self.result.status, self.settings.clock.deadline = "max_time", None
            self._evaluate()
        except KeyboardInterrupt as stop:
            self.result.status, self.settings.clock.deadline = "stopped", None
            interruption = Deferred(stop)
            self._evaluate()
            return interruption
        return None

    def _go_on(self):
        rows, s, result, part, read = self.rows, self.settings, self.result, 1.0, 0.0
        while result.status == "running":
            s.clock.watch()
            if not rows.sweep(SLICE, self.at_once):
                continue
            reads = rows.n_read / rows.n_rows
            wished = rows.gap <= part * s.tol * result.dual / self.l2
            if not wished and reads - read < max(2.0, 0.5 * read) and reads < s.max_passes:
                continue
            self._evaluate()
            part, read = part * (0.5 if wished else 1.0), rows.n_read / rows.n_rows
            if result.gap <= s.tol:
                result.status = "converged"
            elif s.stop is not None and s.stop():
                result.status = "stopped"
            elif read >= s.max_passes:
                result.status = "max_passes"

    def _evaluate(self):
        """P and D at the point, and the best of both so far."""
        rows, result, W, a = self.rows, self.result, self.rows.W, self.rows.a
        a *= np.divide(rows.upper, a.sum(axis=1), out=np.ones(rows.n_rows), where=rows.upper > 0)[:, None]
        last = W[-1].copy()
        W[:] = 0                                            # anew, so that rounding does not add up
        for lo, hi in self._parts():
            rows.add(lo, hi, W)
        if self.free:
            W[-1] = last
        penalised = W[:-1] if self.free else W
        objective = self.l2 * (np.vdot(penalised, penalised) / 2 + sum(rows.hinges(lo, hi) for lo, hi in self._parts()))
        if objective < result.objective:
            result.objective = objective
            result.w[:, :rows.n_features] = W[:-1, :rows.n_classes].T
            if self.intercept:
                result.w[:, -1] = rows.intercepts()
        result.dual = max(result.dual, self._bound())
        result.passes, result.n_iter, seconds = rows.n_read / rows.n_rows, rows.n_sweeps, self.settings.clock.seconds
        result.history.append((result.passes, seconds, 0.0, 0.0, seconds, result.objective, result.gap, 1.0, 0.0,
                               np.count_nonzero(result.w), rows.last_active))
        if self.settings.tell is not None:
            self.settings.tell(result)

    def _bound(self):
        rows, W = self.rows, self.rows.W
        total = np.sum(rows.upper - rows.a[np.arange(rows.n_rows), rows.labels])
        if self.free:
            W, r = W.copy(), rows.of_class - rows.a.sum(axis=0)
            for lo, hi in self._parts():
                if np.max(np.abs(r) / rows.of_class) <= ROUNDING:
                    break
                total += rows.balance(lo, hi, W, r)
            total = self._mix(total, W, r)
            W = W[:-1]
        square = np.vdot(W, W)
        return self.l2 * (total - square / 2 - ROUNDING * (rows.of_class.sum() + square))

    def _mix(self, total, W, r):
        """Mix q into what W and the sum gained, which is returned, are of, so that r = 0."""
        rows, sums, size = self.rows, self.rows.class_sums(), self.rows.of_class.sum()
        odds = max(np.max(-r / rows.of_class), 0.0)                                      # t / (1 - t)
        t = odds / (1 + odds)
        of_q = np.maximum(odds * (rows.of_class / size) + r / size, 0.0) / (1 + odds)    # t q
        W *= 1 - t
        W[:-1, :rows.n_classes] += t * sums - np.outer(sums.sum(axis=1), of_q)
        return (1 - t) * total + t * size - rows.of_class @ of_q

    def _parts(self):
        for lo in range(0, self.rows.n_rows, self.at_once):
            self.settings.clock.watch()
            yield lo, min(self.rows.n_rows, lo + self.at_once)
