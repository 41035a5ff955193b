"""Margin pursuit by Newton's method, on the row pass and the line search of the smoothed hinge, class after class.

Q is convex with a continuous second derivative, rho'' = 1 - u^2/2 within sqrt(2) and 0 beyond. One read of the
rows takes the full step and sums value, slope and gradient at its end; the curvature too, unless that of an earlier
point, corrected by the steps since, still serves well for its price. Only where the end is a poor place is the line
searched, on numbers kept per row, and the rows are read once more. Many rows are begun on a tenth of them.
"""

import math
import time

import numpy as np

from cmargin._blas_threads import single_threaded_blas
from cmargin._core.newton._conjugate_gradients import conjugate_gradients_of
from cmargin._core.newton._line_search import exact_step
from cmargin.solvers.first_order.margin_pursuit import Fit, loss_of, one_shot_scale
from cmargin.solvers.low_rank.class_passes import TimeUp
from cmargin.solvers.newton.growing import subset_of, worth_growing
from cmargin.solvers.newton.kept_curvature import KeptCurvature

ARMIJO = 1e-4
SLOPE_KEPT = 0.9             # a full step is kept if the slope at its end is at most this part of the first
MANY_COLUMNS = 2000          # from here on conjugate gradients instead of a factor
MANY_PRODUCTS = 200
NO_CURVATURE = 1e-6          # mean rho'' below which the gradient is a better direction than Newton's
# A look with curvature takes about 1 + p/15 times one without, and Newton's step gains two digits or more
# (doc/decisions.md): curvature is kept as long as the gradient falls at a better rate for the work
COLUMNS_A_LOOK = 15
GAIN = math.log(100)
ENOUGH_OF_A_SUBSET = 0.03    # of its gradient at w = 0; below, a subset's own noise is fitted
SEED_OF_SUBSET = 11          # the rows read first change the result within tol only
NO_L1 = np.empty(0)
ORDER = ("interrupted", "diverged", "max_time", "callback", "stalled", "max_passes", "tol")     # the worst first
LINE_VALUE, LINE_SLOPE, CURVATURE = 0, 1, 7      # places in the sums of a look, as in _row_blocks.pxd


class PursuitNewton:
    """One binary problem on its way.

    Parameters
    ----------
    rows : RowPass with ``pursue``
    settings : Settings of `cmargin.solvers.first_order.margin_pursuit`
    start : (n_columns,) array or None
    """

    def __init__(self, rows, settings, start=None):
        self.rows, self.settings = rows, settings
        self.scale, self.start = settings.scale, start
        self.l2 = np.full(rows.n_columns, settings.l2)
        if settings.fit_intercept:
            self.l2[-1] = 0.0                    # the column of ones
        self.by_products = rows.n_columns > MANY_COLUMNS
        self.passes, self.reads, self.reads_told, self.step_taken = 0, 0.0, 0.0, np.nan
        self.stalled = False
        self.kept, self.fall = None, 1.0         # curvature in use; by what the gradient fell in a step with it

    def on_subset(self):
        """The same problem on a tenth of the rows, or None where that would not pay."""
        if self.start is not None or self.by_products or self.settings.one_shot or not worth_growing(self.rows):
            return None
        part, read = subset_of(self.rows, SEED_OF_SUBSET)
        self.reads += read
        return None if part is None else PursuitNewton(part, self.settings)

    def begin(self):
        """Sums at the start, and the gradient norm at w = 0, which ``tol`` is relative to."""
        self.rows.pursue(self.settings.level, self.scale)
        self.rows.start()
        self.w = np.zeros(self.rows.n_columns) if self.start is None else self.start.copy()
        self.look(self.w, 1.0)
        self.norm_at_zero = self.force_at_zero() * np.linalg.norm(self.total_code) / self.rows.total_weight

    def look(self, direction, step, with_curvature=True):
        sums, gradient, hessian = self.rows.look(direction, step, 1.0, 1.0, 0.0,
                                                 with_curvature and not self.by_products)
        self.reads += self.rows.share
        self.total_code = gradient[1]            # sum s_i y_i x_i, in the first look
        n, w = self.rows.total_weight, self.w
        self.smooth_value, self.slope, self.curvature = sums[LINE_VALUE] / n, sums[LINE_SLOPE] / n, sums[CURVATURE] / n
        self.value = self.smooth_value + (self.l2 * w) @ w / 2
        self.gradient = gradient[0] / -n + self.l2 * w
        if hessian is not None:
            hessian = hessian / n
            hessian.reshape(-1)[::len(w) + 1] += self.l2
            self.hessian, self.kept = hessian, None

    @property
    def gradient_norm(self):
        """Relative to w = 0."""
        norm = np.linalg.norm(self.gradient)
        return norm / self.norm_at_zero if self.norm_at_zero > 0 else (0.0 if norm == 0 else np.inf)

    def direction(self):
        if not self.curvature > NO_CURVATURE:    # every row on a straight end of rho
            return -self.gradient
        if self.by_products:
            return self.direction_by_products()
        if self.kept is None:
            self.kept, self.steps_kept = KeptCurvature(self.hessian), 0
        return -self.kept.solve(self.gradient)

    @property
    def keeps_curvature(self):
        """Whether the next step is better taken with the curvature at hand."""
        return self.fall > 1 and math.log(self.fall) * (1 + self.rows.n_columns / COLUMNS_A_LOOK) > GAIN

    def after_step(self, step, gradient):
        """``gradient``: that before the step. Mean fall since the curvature was summed, and a pair to correct it by."""
        fall = np.linalg.norm(gradient) / max(np.linalg.norm(self.gradient), 1e-300)
        if self.kept is None:
            self.fall = fall
        else:
            self.kept.add(step, self.gradient - gradient)
            self.fall = (fall * self.fall**self.steps_kept) ** (1 / (self.steps_kept + 1))
            self.steps_kept += 1

    def direction_by_products(self):
        rows, n = self.rows, self.rows.total_weight

        def product(x):
            Hx, share = rows.hessian_product(x, 1.0, 0.0)
            self.reads += share * rows.share
            return Hx / n + self.l2 * x

        diagonal, share = rows.hessian_product(None, 1.0, 0.0)
        self.reads += share * rows.share
        diagonal = diagonal / n + self.l2
        diagonal[~(diagonal > 0)] = 1.0
        residual = min(0.1, np.sqrt(self.gradient_norm)) * np.linalg.norm(self.gradient)
        return conjugate_gradients_of(product, -self.gradient, diagonal, residual**2, MANY_PRODUCTS)[0]

    def newton_step(self):
        """One step; one read of the rows, two where the line has to be searched."""
        d, w, g, before = self.direction(), self.w, self.gradient, self.value
        first = g @ d
        if not first < 0:
            d, first = -g, -(g @ g)
        if not -first > 1e-17 * abs(before):     # no decrease that the value could show
            self.stalled = True
            return
        self.w = w + d
        self.look(d, 1.0, not self.keeps_curvature)
        last, self.step_taken = self.slope + (self.l2 * self.w) @ d, 1.0
        allowed = before + ARMIJO * first + 1e-14 * abs(before)
        if self.value > allowed or not abs(last) <= SLOPE_KEPT * -first:
            n, b, a = self.rows.total_weight, (self.l2 * w) @ d, (self.l2 * d) @ d

            def along(s):
                _, slope, curvature = self.rows.along(s, 1.0)
                return slope / n + b + s * a, curvature / n + a

            self.step_taken = exact_step(along, NO_L1, NO_L1, NO_L1, np.inf, 1e-3)[0]
            self.w = w + self.step_taken * d
            self.look(None, self.step_taken)
        self.after_step(self.w - w, g)
        self.passes += 1

    def margins(self):
        """y_i h(x_i) at the point last looked at; no read of the rows."""
        return 1.0 - self.rows.deficits()

    def rescale(self, n_rows):
        """The one update of the scale from the margins reached (margin pursuit, section 4)."""
        before = self.force_at_zero()
        self.scale = one_shot_scale(self.margins(), self.settings.l2, n_rows)
        self.rows.pursue(self.settings.level, self.scale)
        self.norm_at_zero *= self.force_at_zero() / before
        self.look(np.zeros_like(self.w), 1.0)
        self.fall = 1.0

    def force_at_zero(self):
        """s psi(gamma/s): the gradient at w = 0 is minus that times the mean of s_i y_i x_i."""
        u = min(self.settings.level / self.scale, np.sqrt(2))
        return self.scale * (u - u**3 / 6)


class NewtonClasses:
    """All one-vs-rest problems, one after the other, so that the numbers kept per row are those of one problem."""

    def __init__(self, blocks, settings, start, trace):
        self.blocks, self.settings, self.start, self.trace = blocks, settings, start, trace
        self.clock, self.deadline = time.perf_counter(), settings.deadline
        self.seconds = {"steps": 0.0, "trace": 0.0}
        K, d = blocks.n_problems, blocks.n_features
        W = np.zeros((K, d)) if start.W is None else start.W.astype(float)
        bias = np.zeros(K) if start.bias is None else start.bias.astype(float)
        self.fit = Fit(W, bias, np.full(K, settings.scale), np.full(K, np.inf), np.full(K, np.inf))
        self.point = None                        # (class, its best weights, not yet in the fit)
        self.begun, self.ridge = [], None

    def run(self, on_pass=None):
        """Train; returns the fit and the KeyboardInterrupt that ended it, or None."""
        fit, stopped, interruption = self.fit, [], None
        try:
            if self.deadline is not None or on_pass is not None:
                self.use_ridge()
            self.timed("steps", self.reduce)
            for c in range(self.blocks.n_problems):
                try:
                    stopped.append(self.one_class(c, on_pass))
                except TimeUp:
                    stopped.append("max_time")
                self.publish()
                if stopped[-1] in ("max_time", "callback"):
                    break
        except KeyboardInterrupt as ended:
            interruption, stopped = ended, [*stopped, "interrupted"]
            self.publish()
        # the worst of what became of the classes
        fit.stopped = min(stopped, key=ORDER.index)
        if fit.stopped in ("interrupted", "max_time", "callback"):
            self.use_ridge()
            self.use_where_better()
        return fit, interruption

    def use_ridge(self):
        """Weights for classes not begun: one ridge regression of all, drawn to the level; and Q there."""
        if self.ridge is not None or self.start.W is not None or self.blocks.n_problems < 2:
            return
        fit, s = self.fit, self.settings
        W, bias = (s.level * part for part in self.blocks.ridge_start(s.fit_intercept, s.l2))
        value = self.blocks.sums(W, bias, loss_of(s, fit.scale))[0] / self.blocks.n_rows
        self.ridge = W, bias, value + s.l2 / 2 * (W * W).sum(axis=1)
        waiting = ~np.isin(np.arange(len(fit.W)), self.begun)
        fit.W[waiting], fit.bias[waiting] = W[waiting], bias[waiting]

    def use_where_better(self):
        """The ridge's weights for classes that were stopped where Q is still larger, and for those not begun."""
        self.fit.untrained = [c for c in range(len(self.fit.W)) if c not in self.begun]
        if self.ridge is not None:
            self.fit.keep_best(*self.ridge)

    def reduce(self):
        self.fit.reads += self.blocks.reduce()

    def one_class(self, c, on_pass):
        settings = self.settings
        w = np.append(self.fit.W[c], self.fit.bias[c]) if self.start.W is not None else None
        rows, w = self.blocks.row_pass(c, settings.fit_intercept, w)
        rows.between_slices = self.watch_time
        if self.out_of_time():
            return "max_time"
        self.begun.append(c)
        problem = PursuitNewton(rows, settings, w)
        with single_threaded_blas():
            self.start_on_subset(c, problem)
            self.timed("steps", problem.begin)
            self.keep(c, problem)
            while not problem.gradient_norm <= settings.tol:
                if np.isnan(problem.gradient_norm):
                    return "diverged"
                if problem.passes >= settings.max_passes:
                    return "max_passes"
                if self.out_of_time():
                    return "max_time"
                self.timed("steps", problem.newton_step)
                if problem.stalled:
                    return "stalled"
                if not np.isfinite(problem.value):
                    return "diverged"
                self.keep(c, problem)
                self.fit.passes = max(self.fit.passes, problem.passes)
                self.record(c, problem)
                if on_pass is not None:
                    self.publish()
                    if self.asked_to_stop(on_pass):
                        return "callback"
                if settings.one_shot and problem.passes == 1:
                    self.timed("steps", lambda: problem.rescale(self.blocks.n_rows))
                    self.fit.objective[c] = np.inf
                    self.keep(c, problem)
        return "tol"

    def start_on_subset(self, c, problem):
        """Bring ``problem`` near its minimum where that costs a tenth."""
        part = problem.on_subset()
        if part is None:
            return
        self.timed("steps", part.begin)
        while part.gradient_norm > ENOUGH_OF_A_SUBSET and part.passes < self.settings.max_passes:
            if part.stalled or self.out_of_time():
                break
            self.timed("steps", part.newton_step)
            if not np.isfinite(part.value):
                return
            self.keep(c, part)
            self.fit.objective[c] = self.fit.gradient_norm[c] = np.inf           # a tenth's are not those of all rows
        problem.start, problem.fall = part.w, np.inf

    def out_of_time(self):
        return self.deadline is not None and time.perf_counter() > self.deadline

    def watch_time(self):
        if self.out_of_time():
            raise TimeUp

    def timed(self, phase, work):
        begin = time.perf_counter()
        work()
        self.seconds[phase] += time.perf_counter() - begin

    def keep(self, c, problem):
        """The iterate is the best so far: the line search lets no step raise Q but by rounding."""
        fit = self.fit
        self.point = (c, problem.w.copy())
        fit.objective[c], fit.gradient_norm[c], fit.scale[c] = problem.value, problem.gradient_norm, problem.scale
        fit.reads += (problem.reads - problem.reads_told) / self.blocks.n_problems
        problem.reads_told = problem.reads

    def publish(self):
        """Best weights of the problem in hand into the fit."""
        if self.point is None:
            return
        (c, w), d, intercept = self.point, self.blocks.n_features, self.settings.fit_intercept
        w = self.blocks.out_of(w, intercept)
        self.fit.W[c], self.fit.bias[c] = w[:d], w[d] if intercept else 0.0

    def record(self, c, problem):
        if self.trace is not None:
            self.timed("trace", lambda: self.trace.add(np.ascontiguousarray(problem.margins())[None], [problem.scale]))
        self.fit.record(self.trace, (problem.passes, c, time.perf_counter() - self.clock, self.seconds["steps"],
                                     self.seconds["trace"], problem.value, problem.gradient_norm, problem.step_taken,
                                     problem.scale))

    def asked_to_stop(self, on_pass):
        pause = time.perf_counter()
        stop = on_pass(self.fit)
        pause = time.perf_counter() - pause      # a callback's time is nobody's
        self.clock += pause
        if self.deadline is not None:
            self.deadline += pause
        return stop
