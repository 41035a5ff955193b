"""The one-class problem by sweeps of its dual, for rows whose curvature over all columns costs much.

With A = nu N, in units of 1 / A^2, the dual is a quadratic in a box whose variables have a fixed sum,

    max over 0 <= a_i <= s_i, sum a = A, of   -|W|^2 / 2,     W = sum a_i x_i,

and rho is the multiplier of that sum, so that the sweeps of the hinge with a free intercept
(`cmargin.solvers.dual.dual_newton`) serve with one class in place of two and with A in place of 0. Every evaluation
takes the nearest dual variables of that sum, which prove -|W|^2 / (2 A^2), and sums W anew from them. Of the multiples
of W with the best rho, t (W, rho) has the objective

    t^2 |W|^2 / 2 + t h,     h = -rho + (1/A) sum s_i max(0, rho - <W, x_i>),

which is least at t = -h / |W|^2.
"""

from time import perf_counter

import numpy as np

from cmargin._core.newton._bound import ROUNDING
from cmargin._core.rows._dual_sweeps import SWEEPS, WISHES, DualSweeps
from cmargin._runtime.fit_slots import give_way
from cmargin.solvers import cost
from cmargin.solvers.dual.dual_newton import stream_of
from cmargin.solvers.dual.joint_hinge import PART


class OneClassDual:
    """One problem on its way; ``result``, in the units of Newton's method, is complete whenever it is left.

    ``rows``: `OneClassRows`; ``one``: `OneClass`; ``w``: weights and intercept to begin with, or None. After ``reads``
    the status is "left", and far sooner where the gap does not fall fast enough.
    """

    def __init__(self, rows, one, settings, result, seed, w=None, reads=np.inf):
        self.rows, self.one, self.settings, self.result, self.w = rows, one, settings, result, w
        self.limit, self.spent, self.started = min(reads, settings.max_passes), result.passes, perf_counter()
        self.gives_up = reads < settings.max_passes
        self.best, self.bound = np.inf, -np.inf             # objective and bound, as users see them
        self.a, self.at = np.zeros(len(rows.weights)), np.zeros(len(rows.center) + 1)
        self.sweeps = DualSweeps(rows, self.a, self.at, stream_of(seed).copy(), cost.SWEEPS_LEFT_FOR_MOVES)
        self.at_once = max(1.0, PART / (1 + rows.density * len(rows.center)))

    def begin_or_go_on(self, kept):
        """From the rows that the weights leave furthest behind, or else the mean of all; there are no checkpoints."""
        rows, scores = self.rows, self.rows.along_mean
        if self.w is not None:
            scores = rows.products(rows.everything, np.append(self.w[:-1], 0.0))
        self.a[:] = rows.lowest(scores)

    def finish(self, parts=None):
        """To the end."""
        result, part, wished = self.result, 1.0, False
        self.evaluate()
        while result.status == "running":
            status = self.settings.between and self.settings.between()
            if not status:
                wished, status = self.sweep(part * self.settings.tol)
                part *= 0.5 if wished else 1.0
                self.evaluate()
            if status and result.status == "running":
                result.status = status
        return result

    def sweep(self, tol):
        """Until an evaluation is worth its read. Whether the sweeps wish for it; a status to end with, or None."""
        rows, sweeps, read, since = self.rows, self.sweeps, self.rows.reads, 0
        while True:
            wish, done = sweeps.run(SWEEPS - since % SWEEPS, tol, self.at_once,
                                    (self.limit - rows.reads - 1) * len(self.a))
            self.result.n_iter, since = self.result.n_iter + done, since + done
            give_way()
            status = self.settings.between and self.settings.between()
            wished = wish == WISHES["an evaluation"]
            if status or wished or sweeps.n_active == 0 or (since >= SWEEPS and rows.reads - read >= 1) \
                    or rows.reads + 2 > self.limit:
                return wished, status

    def evaluate(self):
        """Objective and bound of dual variables of the right sum near those of the sweeps, which go on from there."""
        rows, a, held = self.rows, self.rows.balanced(self.a), self.rows.held
        w = rows.sum_of(a)
        whole, scores = rows.whole(w), rows.scores(w)
        square, rho = float(whole @ whole), rows.plane(scores)
        size = np.sqrt(held * float(a @ rows.squares))           # sum a |x| at most
        self.bound = max(self.bound, -((np.sqrt(square) + ROUNDING * size) / held)**2 / 2)
        h = float(rows.weights @ np.maximum(0.0, rho - scores)) / held - rho
        t = max(0.0, -h / square) if square > 0 else 0.0
        if t * (t * square / 2 + h) < self.best:
            self.best = t * (t * square / 2 + h)
            self.result.w = np.append(t * whole / self.one.unit, 1 - t * rho / self.one.unit)
        self.a[:], self.at[:] = a, w
        self.at[-1] = (whole @ rows.center - rho) / rows.bias                # slacks are then rho - scores
        self.sweeps.choose(rho - scores)
        self.note(np.count_nonzero((a > 0) & (a < rows.weights)))
        self.judge()

    @property
    def gap(self):
        return self.one.gap(self.best, self.bound)

    def note(self, on_face):
        result, reads, seconds = self.result, self.rows.reads, perf_counter() - self.started
        result.objective, result.dual, result.width = self.one.inside(self.best), self.one.inside(self.bound), 0.0
        result.passes = self.spent + reads
        result.history.append((result.passes, seconds, 0.0, 0.0, seconds, result.objective, self.gap, 1.0, 0.0,
                               np.count_nonzero(result.w), on_face))
        if self.settings.tell is not None:
            self.settings.tell(result)

    def judge(self):
        """Whether that is the end: certified, asked for, or too many reads at the rate at which the gap came from 1."""
        gap, reads, tol = self.gap, self.rows.reads, self.settings.tol
        if gap <= tol:
            self.result.status = "converged"
        elif self.settings.stop is not None and self.settings.stop():
            self.result.status = "stopped"
        elif reads + 2 > self.limit:
            self.result.status = "left" if self.gives_up else "max_passes"
        elif self.gives_up and reads > cost.DUAL_TRIAL_SHARE * self.limit \
                and reads * np.log(tol) < self.limit * np.log(min(1.0, gap)):
            self.result.status = "left"

    def hand_over(self):
        """What Newton's method may go on with."""
        return {"started": self.started, "spent_seconds": (0.0, 0.0, perf_counter() - self.started),
                "decay": self.settings.smoothing_decay}
