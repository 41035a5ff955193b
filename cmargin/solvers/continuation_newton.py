"""Newton's method on the smoothed hinge while the smoothing width goes to zero (SmSVM), with a certificate.

Losses that are smooth themselves, squared hinge and logistic, take the same steps; widths mean nothing there.

The loop reads the rows once per Newton step. The step is taken at full length, the rows are summed at its end, and
only if the function along the line says that the end is a poor place (it is known exactly there: value and slope are
among the sums) is the line searched, on numbers kept per row, and the rows are read once more.

The certificate comes from the same read: dual variables a + h du predicted *before* the step for *after* it.
"""

from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from cmargin._core._certificate import ROUNDING, bound, feasible
from cmargin._core._line_search import exact_step
from cmargin._core._losses import LOSS_IDS, gains
from cmargin._core._newton_system import cholesky_solve, curvature_lost, l1_model_minimum
from cmargin.passes.wide import too_wide
from cmargin.solvers.heavy_rows import HeavyRows
from cmargin.solvers.newton_system import conjugate_gradients

SKIP = 1e-6                    # rows with less than this part of the mean curvature stay out of the block
SKIP_FROM = 4096               # rows; fewer are all summed
WIDTH_MIN = 1e-10
ARMIJO = 1e-4
NOTHING = 1e-15                # an objective below counts as 0, beside the 1 that w = 0 has
DRIFT = 1e-10                  # of the objective: rounding of steps added up that calls for a fresh evaluation
GAINS = slice(8, 10)           # of the sums of a look: what the dual variables of both classes are worth
ENOUGH_OF_A_SUBSET = 0.03      # gap of a subset, with a smooth loss: below, its own noise is fitted
STEEPEST = {"hinge": 1.0, "logistic": 1.0, "squared_hinge": 2.0}     # root mean square slope where the objective is 1
RESUMED = 3                    # times that a fit goes on whose certificate, evaluated anew, falls short
SLOPE_KEPT = 0.5               # a full step is kept if the slope at its end is at most this part of the first
SHORT, VERY_SHORT = 0.7, 0.25      # a Newton step is full from the first on, see `width_after`
ENOUGH = 0.5                   # smoothing error, in tolerances, that is small enough: the width stays there
HELD = 3                       # looks without a smaller gap for which it does
AHEAD = 0.3                    # smoothing error, in open gaps, below which the width waits for the certificate
PATIENCE = 8                   # looks without a smaller gap before the width goes up again
WORKING_SET = 400              # columns admitted at first beyond that
FULL_BLOCK = 256               # up to so many columns the block holds all of them, whatever is active
HISTORY = ("passes", "seconds", "seconds_look", "seconds_system", "seconds_search", "objective", "gap", "step",
           "smoothing", "active_features", "active_rows")


class Stopped(Exception):
    """Raised between two slices of a look by whoever wants the fit to end; ``status`` is the result's."""

    def __init__(self, status):
        super().__init__(status)
        self.status = status


@dataclass
class Problem:
    """(l2/2) |w|^2 + (1/N) sum s F(y <w, x>) + l1 |w|_1; column ``free`` is not penalised."""

    l2: float
    l1: float
    free: int | None = None
    loss: str = "hinge"                    # or "squared_hinge", "logistic"


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
    tell: object = None                    # (Result) -> None, called after every look

    def for_subset(self, width_end, whole, stop):
        """``whole``: passes that must be left for a first look at all rows."""
        return replace(self, width_end=width_end, max_passes=self.max_passes - whole, stop=stop)


@dataclass
class Result:
    """What happened; always usable, whenever the loop was left."""

    w: np.ndarray
    objective: float = np.inf              # P at w, not smoothed
    dual: float = 0.0                      # best lower bound
    width: float = 1.0                     # smoothing at which the loop was left
    passes: float = 0.0
    n_iter: int = 0
    # "converged", "decrement" (no certificate exists), "width" (subset done), "max_passes", "max_time", "stopped",
    # "stalled" (the width cannot shrink further), "rounding" (nor can the gap) or, before any of it, "waiting"
    status: str = "running"
    history: list = field(default_factory=list)

    @property
    def gap(self):
        """(P - D) / P, NaN without a certificate; P - D itself where P is nothing beside the 1 that w = 0 has."""
        if self.objective < NOTHING:
            return self.objective - min(self.objective, np.nan_to_num(self.dual))
        if not np.isfinite(self.objective):
            return np.inf
        return (self.objective - min(self.objective, self.dual)) / self.objective if self.dual == self.dual else np.nan


class ContinuationNewton:
    """One binary problem on its way; `run` does the work, `result` can be looked at whenever it is left."""

    def __init__(self, rows, problem, settings, result=None, width=None, w=None, before=None):
        """``before``: the solver of a subset, or of the dual, whose time and reads count and whose w this one got."""
        p = rows.n_columns
        self.rows, self.settings = rows, settings
        rows.set_loss(problem.loss)
        self.l2, self.l1 = problem.l2, problem.l1
        self.free, self.loss = problem.free, problem.loss
        self.smooth = problem.loss != "hinge"      # nothing to be smoothed
        self.l2_each, self.l1_each = np.full(p, float(problem.l2)), np.full(p, float(problem.l1))
        if problem.free is not None:
            self.l2_each[problem.free] = self.l1_each[problem.free] = 0.0
        self.w = np.zeros(p) if w is None else np.array(w, float)
        self.result = result if result is not None else Result(self.w.copy())
        self.heavy = None                      # rows that the model of a step treats exactly
        self.column_scale = None               # curvature of the columns, where a subset of the rows has told it
        if before is not None and before.hessian is not None and before.hessian.shape == (p, p):
            self.column_scale = np.diag(before.hessian) / before.rows.total_weight + self.l2_each
        self.width = settings.smoothing if width is None else width
        self.decay = settings.smoothing_decay if before is None else before.decay
        self.started = perf_counter() if before is None else before.started
        self.seconds = dict.fromkeys(("look", "system", "search"), 0.0) if before is None else before.seconds
        self.active = None
        self.predicted, self.blind = np.inf, False         # decrease of a step; whether it means anything
        self.stale_gap, self.stale_looks = np.inf, 0
        self.last_gap = self.now_gap = 1.0
        self.spent = 0.0 if before is None else before.spent   # looks; products of conjugate gradients are not limited
        self.mean_curvature = 0.0
        self.best_bound = None                 # (S, v) behind result.dual
        self.rms = None                        # root mean square of every column, or more; None: not known
        self.drift = 0.0                       # what rounding may have done to the objective since the start

    # ------------------------------------------------------------ what one look gives

    def look(self, direction, step, line_width, width, with_hessian=True):
        start = perf_counter()
        rows = self.rows
        sums, gradient, hessian = rows.look(direction, step, line_width, width, self.floor(width),
                                            with_hessian)
        self.result.passes += rows.share
        self.spent += rows.share
        n = rows.total_weight
        self.sums = sums.tolist()
        self.sums[:6] = [value / n for value in self.sums[:6]]
        self.gradient = gradient[0] / -n
        worth = [value / n for value in self.sums[GAINS]] if self.smooth else None
        self.feasible = feasible(gradient[1:] / n, self.sums[4], self.sums[5], self.free, worth)
        self.dual = bound(*self.feasible, self.l2, self.l1)
        self.hessian = hessian
        self.mean_curvature = self.sums[7] / n
        self.seconds["look"] += perf_counter() - start

    def floor(self, width):
        # rows far from the hinge are skipped, but never so many that little of the curvature known last is left
        if self.rows.n_rows < SKIP_FROM:
            return 0.0
        return SKIP * self.mean_curvature

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
        solver = self.settings.linear_solver
        if solver in ("cg", "cholesky"):
            return solver == "cg"
        return not self.l1 and too_wide(self.rows.n_rows, self.rows.n_columns)

    def direction(self):
        """Newton direction, for l1 the minimum of the model with its l1 term."""
        g = self.smooth_gradient
        if self.active is not None and not len(self.active):
            return np.zeros_like(self.w)         # l1 holds every column at 0
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
        self.blind = curvature_lost(np.diag(H), g[index])
        if self.heavy is not None:
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
        self.blind = curvature_lost(diagonal, g)
        diagonal[~(diagonal > 0)] = 1.0
        # a residual r costs the certificate |r|^2 / (2 l2), and one of a free intercept about |r|: keep that to a
        # hundredth of the gap still open
        open_gap = max(self.settings.tol, min(1.0, self.result.gap)) * self.result.objective
        enough = 0.02 * self.l2 * open_gap
        if self.free is not None:
            enough = min(enough, (0.01 * open_gap) ** 2)
        enough = max(enough, 1e-16 * (g @ g))
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
        self.rows.set_active(None)
        wide_l1 = self.l1 and self.rows.n_columns > FULL_BLOCK
        norms = None
        if self.column_scale is not None and not wide_l1 and not self.smooth:
            norms = self.rows.measure_rows(1 / np.maximum(self.column_scale, 1e-300))
        self.begin(self.w, not (wide_l1 or self.use_products()))
        self.measure_columns(norms)
        if norms is not None:
            self.heavy = HeavyRows.among(self.rows, norms)
        if wide_l1 and self.result.status == "running" and not self.use_products():
            self.active = self.choose_columns()
            self.rows.set_active(self.active)
            self.look(np.zeros_like(self.w), 1.0, self.width, self.width)
            self.after_look(1.0)
        self.go_on()
        for _ in range(RESUMED):
            self.settle()
            if self.result.status != "running":
                return self.result
            self.begin(self.w, not self.use_products())        # the rows' numbers afresh, from the numbers returned
            self.go_on()
        self.settle()
        if self.result.status == "running":
            self.result.status = "rounding"
        return self.result

    def begin(self, w, with_hessian):
        self.rows.start()
        self.drift = 0.0
        self.look(w, 1.0, self.width, self.width, with_hessian)
        self.after_look(1.0)

    def go_on(self):
        while self.result.status == "running":
            self.step()

    def measure_columns(self, norms):
        """Sizes of the columns where the first look tells them: at w = 0 every row has the same curvature."""
        rows = self.rows
        if norms is not None:                  # their mean is the sum over the columns of mean square / scale
            mean = np.abs(rows.code) @ norms / rows.total_weight
            self.rms = np.sqrt(mean * np.maximum(self.column_scale, 1e-300))
            self.rms[rows.n_features:] = 1.0
        elif self.hessian is not None and self.active is None and not self.w.any():
            self.rms = np.sqrt(np.diag(self.hessian) / max(self.sums[7], 1e-300))
        self.drift = self.rounding_of(self.w)

    def rounding_of(self, e):
        """What rounding may do to the objective in a product of the rows with e."""
        if self.rms is None:
            return np.inf
        return STEEPEST[self.loss] * ROUNDING * (np.abs(e) @ self.rms)

    def certify(self, a):
        """`settle` with dual variables ``a`` (n_rows,) found elsewhere, or None, before any look at these rows."""
        result, rows, n = self.result, self.rows, self.rows.total_weight
        result.w, result.objective, result.dual = self.w.copy(), np.inf, 0.0 if self.l1 or self.l2 else np.nan
        if a is not None and (self.l1 or self.l2):
            c, positive = a * rows.code, rows.code >= 0
            total = c[positive].sum() / n, -c[~positive].sum() / n
            worth = np.empty(len(a))
            gains(LOSS_IDS[self.loss], a, worth)
            worth *= np.abs(rows.code) / n
            if self.free is None or abs(total[0] - total[1]) <= ROUNDING * total[0]:
                parts = [rows.combine(c) / n, np.zeros_like(self.w)]         # balanced already
            else:
                parts = [rows.combine(np.where(side, c, 0.0)) / n for side in (positive, ~positive)]
            result.passes += rows.share
            self.best_bound = feasible(np.array(parts), *total, self.free,
                                       (worth[positive].sum(), worth[~positive].sum()))
        self.settle()

    def settle(self):
        """The objective and the bound to report: of the rows as given, at the numbers returned.

        A fit that called itself converged and is not, so evaluated, is "running" again.
        """
        result, rows, n = self.result, self.rows, self.rows.total_weight
        if self.settings.width_end > 0:        # a subset's are not reported
            return
        if self.rms is None or not self.drift + self.rounding_of(result.w) <= DRIFT * result.objective:
            hinge, squares = rows.evaluate(result.w, True)
            result.passes += rows.share
            objective = float(hinge / n + sum(self.penalty(result.w)))
            result.objective = objective if np.isfinite(objective) else np.inf
            self.rms = np.sqrt(squares / n)
        if self.best_bound is not None:
            total, v = self.best_bound
            if self.free is not None:          # sum a y is 0 to rounding only, and costs the intercept times that
                total -= ROUNDING * abs(result.w[self.free]) * total
            result.dual = bound(total, v, self.l2, self.l1, ROUNDING * self.rms[:len(v)])
        if result.history:
            result.history[-1][HISTORY.index("passes")] = result.passes
            result.history[-1][HISTORY.index("gap")] = result.gap
        if result.status == "converged" and not result.gap <= self.settings.tol:
            result.status, self.w = "running", result.w.copy()

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
        with_hessian = not self.use_products()
        if self.active is not None:
            self.active = self.choose_columns()
            self.rows.set_active(self.active)
        next_width, decay = self.width_after(1.0)
        if predicted == 0.0:                 # nothing left to gain at this width
            taken, step = np.zeros_like(w), 1.0
            self.look(taken, 1.0, width, next_width, with_hessian)
        else:
            taken, step = d, 1.0
            self.look(d, 1.0, width, next_width, with_hessian)
            if self.poor(w, d, first):
                if self.no_read_left():
                    self.result.status = "max_passes"            # no read left to look at a better step
                    return
                stops = self.l1 > 0 and bool(((w + d == 0) & (w != 0)).any())
                step, hit = self.search(d, 1.0 if stops else 16.0)
                if step != 1.0:
                    taken = step * d
                    if hit >= 0:
                        taken[hit] = -w[hit]
                    next_width, decay = self.width_after(step)
                    self.look(None, step, width, next_width, with_hessian)
            self.w = w + taken
            self.drift += self.rounding_of(taken)
        self.width, self.decay = next_width, decay
        self.after_look(step)
        if not self.smooth:
            self.back_up()
        elif predicted == 0.0 and self.result.status == "running":
            self.result.status = "rounding"

    def width_after(self, step):
        """(width, decay) of the next Newton step if this one is taken ``step`` long.

        Full steps: the path is followed, so go faster along it. Shorter ones: the model was not true this far, so
        stay, and after very short ones go back. Longer ones too, unless the gap has ceased to fall: then the width is
        what keeps it open (doc/decisions.md).
        """
        if self.smooth:
            return self.width, self.decay
        if SHORT <= step and (step <= 1 / SHORT or self.stale_looks):
            if self.ahead():
                return self.width, self.decay
            decay = max(0.8 * self.decay, 0.25)
            error = self.smoothing_error()
            need = ENOUGH * self.settings.tol * abs(self.result.objective) if self.stale_looks < HELD else 0.0
            by = max(decay, min(1.0, (need / error) ** 0.5)) if error > 0 else decay
            return max(self.width * by, WIDTH_MIN), decay
        if step < VERY_SHORT:
            return min(2 * self.width, self.settings.smoothing), 0.6
        decay = min(0.85, self.decay ** 0.5)
        return (max(self.width * decay, WIDTH_MIN) if step > 0.5 else self.width), decay

    def smoothing_error(self):
        """How much the smoothed objective is too large at the present width and point."""
        return self.sums[3] - self.sums[2]

    def ahead(self):
        """Is the width not what keeps the gap open? Then shrinking it would only make the steps harder."""
        gap = self.result.gap
        return 0.5 * self.last_gap < gap < 0.5 and self.smoothing_error() < AHEAD * gap * self.result.objective

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
        if self.dual > result.dual:
            result.dual, self.best_bound = self.dual, self.feasible
        elif self.dual != self.dual:
            result.dual = self.dual
        result.width = self.width
        result.n_iter += 1
        seconds = self.seconds
        result.history.append([result.passes, perf_counter() - self.started, seconds["look"], seconds["system"],
                               seconds["search"], objective, result.gap, step, self.width,
                               int(np.count_nonzero(w)), int(self.sums[6])])
        if self.settings.tell is not None:
            self.settings.tell(result)
        self.judge()

    def judge(self):
        result, settings = self.result, self.settings
        if result.gap <= settings.tol:
            result.status = "converged"
        elif self.dual != self.dual and not self.blind and self.predicted <= 0.1 * settings.tol * result.objective \
                and self.smoothing_error() <= settings.tol * result.objective:
            result.status = "decrement"        # no certificate without a penalty: the Newton decrement says so
        elif self.subset_done():
            result.status = "width"
        elif self.width <= WIDTH_MIN:
            result.status = "stalled"
        elif settings.stop is not None and settings.stop():
            result.status = "stopped"
        elif perf_counter() > settings.deadline:
            result.status = "max_time"
        elif self.no_read_left():
            result.status = "max_passes"

    def subset_done(self):
        end = self.settings.width_end
        return self.width <= end or (self.smooth and end > 0 and self.result.gap < ENOUGH_OF_A_SUBSET)

    def no_read_left(self):
        """None for another look and, where the columns' sizes are not known, for the evaluation at the end."""
        looks = 1 if self.rms is not None else 2
        return self.spent + looks * self.rows.share > self.settings.max_passes
