"""Newton's method on the smoothed hinge while the smoothing width goes to zero (SmSVM), with a certificate.

The loop reads the rows once per Newton step. The step is taken at full length, the rows are summed at its end, and
only if the function along the line says that the end is a poor place (it is known exactly there: value and slope are
among the sums) is the line searched, on numbers kept per row, and the rows are read once more.

The certificate comes from the same read: dual variables a + h du predicted *before* the step for *after* it.
"""

from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from cmargin._core._line_search import exact_step
from cmargin.solvers.certificate import dual_value
from cmargin.solvers.heavy_rows import HeavyRows
from cmargin.solvers.newton_system import cholesky_solve, conjugate_gradients, l1_model_minimum

SKIP = 1e-6                    # rows with curvature below SKIP / width stay out of the block; 1e-3 is too coarse
SKIP_FROM = 4096               # rows; fewer are all summed
WIDTH_MIN = 1e-10
ARMIJO = 1e-4
# Where the kink holds many rows, curvature is taken at a multiple of the width: the same curvature on average, from
# more rows, so that it bends less from step to step. Passes to a certified 1e-4 on forest cover, class 2, at l2 = 1e-3
# and 1e-5: 5.2 and 6.5 with 1.0, 5.1 and 5.1 with 1.6, 6.2 and 5.1 with 2.0.
BLUR = 1.6
SLOPE_KEPT = 0.5               # a full step is kept if the slope at its end is at most this part of the first
HOLD = 2.0                     # predicted decrease, in smoothing errors, above which the width stays
AHEAD = 0.3                    # smoothing error, in open gaps, below which the width stays
PATIENCE = 8                   # looks without a smaller gap before the width goes up again
WORKING_SET = 400              # columns admitted at first beyond that
MANY_COLUMNS = 4000            # columns from which on, without l1, conjugate gradients solve the Newton system,
MANY_ROWS = 600                # and from which on they do where there are no more rows than columns
FULL_BLOCK = 256               # up to so many columns the block holds all of them, whatever is active
HISTORY = ("passes", "seconds", "seconds_look", "seconds_system", "seconds_search", "objective", "gap", "step",
           "smoothing", "active_features", "active_rows")


@dataclass
class Problem:
    """(l2/2) |w|^2 + (1/N) sum s max(0, 1 - y <w, x>) + l1 |w|_1; column ``free`` is not penalised."""

    l2: float
    l1: float
    free: int | None = None


@dataclass
class Settings:
    """What the user chose; see `cmargin.smsvm.SmSVMClassifier`."""

    tol: float = 1e-4
    max_passes: float = 100.0
    smoothing: float = 1.0
    smoothing_decay: float = 0.5
    linear_solver: str = "auto"
    deadline: float = np.inf               # on the clock of perf_counter
    stop: object = None                    # () -> bool, asked after every step
    width_end: float = 0.0                 # leave once the smoothing is below: for subsets

    def for_subset(self, width_end, stop):
        return replace(self, width_end=width_end, stop=stop)


@dataclass
class Result:
    """What happened; always usable, whenever the loop was left."""

    w: np.ndarray
    objective: float = np.inf              # P at w, not smoothed
    dual: float = 0.0                      # best lower bound
    width: float = 1.0                     # smoothing at which the loop was left
    passes: float = 0.0
    n_iter: int = 0
    # "converged", "decrement" (no certificate exists), "width" (subset done), "max_passes", "max_time", "stopped" or
    # "stalled" (the width cannot shrink further)
    status: str = "running"
    history: list = field(default_factory=list)

    @property
    def gap(self):
        """(P - D) / P, NaN without a certificate."""
        if self.objective == 0 or not np.isfinite(self.objective):
            return 0.0 if self.objective == 0 else np.inf
        return (self.objective - self.dual) / self.objective


class ContinuationNewton:
    """One binary problem on its way; `run` does the work, `result` can be looked at whenever it is left."""

    def __init__(self, rows, problem, settings, result=None, width=None, w=None, scout=None):
        p = rows.n_columns
        self.rows, self.settings = rows, settings
        self.l2, self.l1 = problem.l2, problem.l1
        self.free = problem.free
        self.l2_each, self.l1_each = np.full(p, float(problem.l2)), np.full(p, float(problem.l1))
        if problem.free is not None:
            self.l2_each[problem.free] = self.l1_each[problem.free] = 0.0
        self.w = np.zeros(p) if w is None else np.array(w, float)
        self.result = result if result is not None else Result(self.w.copy())
        self.reserve = None
        self.heavy = None                      # rows that the model of a step treats exactly
        self.scout = scout                     # subset of the rows that already is at w: tries steps out cheaply
        self.width = settings.smoothing if width is None else width
        self.decay = settings.smoothing_decay
        self.started = perf_counter()
        self.seconds = dict.fromkeys(("look", "system", "search"), 0.0)
        self.active = None
        self.predicted = np.inf
        self.column_scale = np.ones(p)
        self.stale_gap, self.stale_looks = np.inf, 0
        self.last_gap = self.now_gap = 1.0
        self.spent = 0.0                       # looks; products of conjugate gradients are not limited
        self.blur = 1.0
        self.mean_curvature = np.inf

    # ------------------------------------------------------------ what one look gives

    def look(self, direction, step, line_width, width, with_hessian=True, newton_scale=1.0):
        start = perf_counter()
        rows = self.rows
        sums, gradient, hessian = rows.look(direction, step, newton_scale, line_width, width, self.floor(width),
                                            with_hessian, self.blur * width)
        self.result.passes += rows.share
        self.spent += rows.share
        n = rows.total_weight
        self.sums = sums.tolist()
        self.sums[:6] = [value / n for value in self.sums[:6]]
        self.gradient = gradient[0] / -n
        self.dual = dual_value(gradient[1:] / n, self.sums[4], self.sums[5], self.l2, self.l1, self.free)
        self.hessian = hessian
        self.mean_curvature = self.sums[7] / n
        in_kink = 2 * width * self.sums[7]       # a row in the middle of the kink counts 1, one far from it nothing
        self.blur_used = self.blur               # what the curvature block at hand was made with
        self.blur = BLUR if in_kink > 20 * rows.n_columns else 1.0
        self.seconds["look"] += perf_counter() - start

    def floor(self, width):
        # rows far from the hinge are skipped, but never so many that little of the curvature known last is left
        if self.rows.n_rows < SKIP_FROM:
            return 0.0
        return min(SKIP / width, 1e-3 * self.mean_curvature)

    def penalty(self, w):
        return (self.l2_each * w) @ w / 2, (self.l1_each @ np.abs(w) if self.l1 else 0.0)

    # ------------------------------------------------------------ the direction

    def choose_columns(self):
        """Columns of the block at the next look: those in use and those about to be (gradient near the l1 weight)."""
        if not self.l1 or self.rows.n_columns <= FULL_BLOCK or self.use_products():
            return None
        size = np.abs(self.smooth_gradient)
        size[(self.w != 0) | (self.l1_each == 0)] = np.inf
        near = np.flatnonzero(size > 0.8 * self.l1_each)
        room = max(WORKING_SET, 2 * np.count_nonzero(self.w))
        if len(near) > room:                  # the steepest first; the others get their turn
            near = np.sort(near[np.argsort(-size[near], kind="stable")[:room]])
        return near

    def use_products(self):
        solver, p = self.settings.linear_solver, self.rows.n_columns
        if solver in ("cg", "cholesky"):
            return solver == "cg"
        # a factor costs p^3 / 3, its block n p^2: too much for many columns, or for many with as few rows
        return not self.l1 and p > (MANY_COLUMNS if p < self.rows.n_rows else MANY_ROWS)

    def direction(self):
        """Newton direction, for l1 the minimum of the model with its l1 term."""
        g = self.smooth_gradient
        if self.hessian is None:
            return self.direction_by_products()
        n = self.rows.total_weight
        H = self.hessian / n
        if self.active is None:
            index = slice(None)
            diagonal = self.l2_each
        else:
            index = self.active
            diagonal = self.l2_each[index]
        H.reshape(-1)[::H.shape[0] + 1] += diagonal
        if self.heavy is not None and self.active is None:
            return self.heavy.direction(self, H)
        d = np.zeros_like(self.w)
        if self.l1:
            d[index] = l1_model_minimum(H, g[index], self.w[index], self.l1_each[index])
        else:
            d[index] = -cholesky_solve(H, g[index])[0]
        return d

    def direction_by_products(self):
        """Newton direction by conjugate gradients; without l1 only."""
        rows, n, width = self.rows, self.rows.total_weight, self.width
        g, floor = self.smooth_gradient, self.floor(width)

        def product(x):
            Hx, share = rows.hessian_product(x, width, floor)
            self.result.passes += share * rows.share
            return Hx / n + (self.l2_each if x is None else self.l2_each * x)

        diagonal = product(None)
        diagonal[~(diagonal > 0)] = 1.0
        # a residual r costs the certificate |r|^2 / (2 l2): keep that to a hundredth of the gap still open
        open_gap = max(self.settings.tol, min(1.0, self.result.gap)) * self.result.objective
        enough = max(0.02 * self.l2 * open_gap, 1e-8 * (g @ g))
        return conjugate_gradients(product, -g, diagonal, enough, 100)[0]

    # ------------------------------------------------------------ the line

    def l1_slope(self, w, e, side):
        """Derivative of the l1 term along e at w, from the right (side 1) or from the left (side -1)."""
        if not self.l1:
            return 0.0
        sign = np.where(w != 0, np.sign(w), side * np.sign(e))
        return (self.l1_each * sign) @ e

    def poor(self, w, e, first):
        """Is the end of e a poor place to stay? Value and slope there are among the sums; ``first``: slope at w."""
        new = w + e
        l2_part, l1_part = self.penalty(new)
        value = self.sums[0] + l2_part + l1_part
        last = self.sums[1] + (self.l2_each * new) @ e + self.l1_slope(new, e, -1)
        return value > self.value + ARMIJO * first or not abs(last) <= SLOPE_KEPT * -first

    def scout_step(self, d):
        """A step along d from the subset of the rows, its slope at 0 corrected to that of all; 1 without a subset."""
        scout, width, w = self.scout, self.width, self.w
        if scout is None:
            return 1.0, -1
        start = perf_counter()
        scout.look(d, 1.0, 1.0, width, width, np.inf, False)
        self.result.passes += scout.share
        n = scout.total_weight
        b, a = (self.l2_each * w) @ d, (self.l2_each * d) @ d
        b += self.gradient @ d - scout.along(0.0, width)[1] / n

        def along(s):
            _, slope, curvature = scout.along(s, width)
            return slope / n + b + s * a, curvature / n + a

        step, hit = exact_step(along, w, d, self.l1_each, 4.0, 1e-2)
        self.seconds["search"] += perf_counter() - start
        if hit < 0 and (step == 0 or 0.7 < step < 1.4):
            step = 1.0                       # the Newton step itself: its certificate is the sharper one
        return step, hit

    def search(self, e, s_max):
        start = perf_counter()
        n, w = self.rows.total_weight, self.w
        b, a = (self.l2_each * w) @ e, (self.l2_each * e) @ e

        def along(s):
            _, slope, curvature = self.rows.along(s, self.width)
            return slope / n + b + s * a, curvature / n + a

        found = exact_step(along, w, e, self.l1_each, s_max, 1e-4)
        self.seconds["search"] += perf_counter() - start
        return found

    # ------------------------------------------------------------ the loop

    def run(self):
        result = self.result
        self.rows.start()
        self.rows.set_active(None)
        wide_l1 = self.l1 and self.rows.n_columns > FULL_BLOCK
        norms = None
        if self.scout is not None and not wide_l1 and not self.use_products():
            norms = self.rows.measure_rows(1 / np.maximum(self.column_scale, 1e-300))
        self.look(self.w, 1.0, self.width, self.width, not (wide_l1 or self.use_products()))
        self.after_look(1.0)
        if norms is not None:
            self.heavy = HeavyRows.among(self.rows, norms)
            if self.heavy is not None:         # full steps are good now; the scout waits for the first that is not
                self.scout, self.reserve = None, self.scout
        if wide_l1 and result.status == "running" and not self.use_products():
            self.active = self.choose_columns()
            self.rows.set_active(self.active)
            self.look(np.zeros_like(self.w), 1.0, self.width, self.width)
            self.after_look(1.0)
        while result.status == "running":
            self.step()
        return result

    def step(self):
        start = perf_counter()
        d = self.direction()
        self.seconds["system"] += perf_counter() - start
        w, width = self.w, self.width
        first = self.smooth_gradient @ d + self.l1_slope(w, d, 1)
        predicted = -first
        if not predicted > 1e-16 * max(abs(self.value), 1e-300) or not np.isfinite(predicted):
            predicted = 0.0
        self.predicted = predicted
        next_width = self.next_width(predicted)
        with_hessian = not self.use_products()
        if self.active is not None:
            self.active = self.choose_columns()
            self.rows.set_active(self.active)
        if predicted == 0.0:                 # nothing left to gain at this width
            d = np.zeros_like(w)
            self.look(d, 1.0, width, next_width, with_hessian)
            taken, step = d, 0.0
        else:
            guess, hit = self.scout_step(d)
            taken = guess * d
            if hit >= 0:
                taken[hit] = -w[hit]
            self.look(taken, 1.0, width, next_width, with_hessian, 1 / guess)
            step = 1.0
            if self.poor(w, taken, guess * first):
                if self.spent + self.rows.share > self.settings.max_passes:
                    self.result.status = "max_passes"            # no read left to look at a better step
                    return
                stops = hit >= 0 or (self.l1 > 0 and bool(((w + taken == 0) & (w != 0)).any()))
                step, hit = self.search(taken, 1.0 if stops else 16.0)
                if step != 1.0:
                    taken = step * taken
                    if hit >= 0:
                        taken[hit] = -w[hit]
                    next_width = width if guess * step < 0.5 else max(next_width, 0.7 * width)
                    self.look(None, step, width, next_width, with_hessian, 1 / guess)
            step *= guess
            self.w = w + taken
            if self.scout is not None:
                self.scout.settle(step)
            elif self.reserve is not None and step != 1.0:
                self.scout, self.reserve = self.reserve, None
                self.scout.start()
                self.scout.look(self.w, 1.0, 1.0, width, width, np.inf, False)
                self.result.passes += self.scout.share
        self.adapt(step)
        self.width = next_width
        self.after_look(step)
        self.back_up()

    def next_width(self, predicted):
        """Width of the next Newton step, chosen before the present one is seen.

        The paper reduces it when the predicted decrease is below eta times it. Measured against the smoothing error,
        which the sums give, the test knows the scale of the problem: while more than half of that error could still
        be won at this width, the width stays.
        """
        error = self.sums[3] - self.sums[2]
        share = predicted / error if error > 0 else 0.0
        if self.result.n_iter > 2 and share > HOLD:
            return self.width
        gap = self.result.gap
        if 0.5 * self.last_gap < gap < 0.5 and error < AHEAD * gap * self.result.objective:
            return self.width                # the certificate does not follow: do not run away from it
        decay = self.decay if share < HOLD / 4 else max(self.decay, 0.6)
        return max(self.width * decay, WIDTH_MIN)

    def adapt(self, step):
        if 0.8 <= step <= 1.25:
            self.decay = max(0.8 * self.decay, 0.25)
        else:
            self.decay = min(0.85, self.decay ** 0.5)

    def back_up(self):
        """Off the path: where the gap no longer falls the width was reduced too soon."""
        gap = self.result.gap
        self.last_gap, self.now_gap = self.now_gap, gap
        if not gap > 0.8 * self.stale_gap:
            self.stale_gap, self.stale_looks = gap, 0
            return
        self.stale_looks += 1
        if self.stale_looks >= PATIENCE:
            self.width, self.decay = min(4 * self.width, self.settings.smoothing), 0.6
            self.stale_gap, self.stale_looks = gap, 0

    def after_look(self, step):
        result, w = self.result, self.w
        l2_part, l1_part = self.penalty(w)
        self.smooth_gradient = self.gradient + self.l2_each * w
        self.value = self.sums[3] + l2_part + l1_part
        objective = self.sums[2] + l2_part + l1_part
        if objective < result.objective:
            result.objective, result.w = objective, w.copy()
        if self.dual > result.dual or self.dual != self.dual:
            result.dual = self.dual
        result.width = self.width
        result.n_iter += 1
        seconds = self.seconds
        result.history.append([result.passes, perf_counter() - self.started, seconds["look"], seconds["system"],
                               seconds["search"], objective, result.gap, step, self.width,
                               int(np.count_nonzero(w)), int(self.sums[6])])
        self.judge()

    def judge(self):
        result, settings = self.result, self.settings
        if result.gap <= settings.tol:
            result.status = "converged"
        elif self.dual != self.dual and self.predicted <= 0.1 * settings.tol * result.objective \
                and self.width <= settings.tol * result.objective:
            result.status = "decrement"        # no certificate without a penalty: the Newton decrement says so
        elif self.width <= settings.width_end:
            result.status = "width"
        elif self.width <= WIDTH_MIN:
            result.status = "stalled"
        elif settings.stop is not None and settings.stop():
            result.status = "stopped"
        elif perf_counter() > settings.deadline:
            result.status = "max_time"
        elif self.spent + self.rows.share > settings.max_passes:
            result.status = "max_passes"
