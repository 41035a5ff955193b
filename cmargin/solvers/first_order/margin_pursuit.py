"""Margin pursuit by first-order descent: gradient steps on all rows, or projected steps on one row at a time.

    Q(w) = (1/n) sum_i s_i s^2 rho((gamma - y_i h(x_i)) / s) + (l2/2) |w|^2            (margin pursuit, eq. 5)

Pegasos is the projected solver with the hinge for a loss. All one-vs-rest problems go through a pass together.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from cmargin._core.losses._losses import LOSS_IDS, mean_losses
from cmargin._core.sgd import _alias, _gradient_rules, _projected_sgd
from cmargin._core.util._arrays import all_finite, lines_finite
from cmargin._runtime.checkpoint import NO_CHECKPOINTER, Resumable
from cmargin._runtime.clock import RunClock, TimeUp
from cmargin._runtime.deferred import Deferred
from cmargin._runtime.workspace import aligned_rows
from cmargin.solvers.first_order.chosen import settled
from cmargin.solvers.first_order.penalty import L1_WIDTH
from cmargin.solvers.history import PURSUIT, add_entry
from cmargin.solvers.per_class import SLICE_NUMBERS, STEP_OVERHEAD, class_streams, worthwhile_threads

ONE_SHOT_DELTA = 0.05        # delta of the data-driven scale


@dataclass
class Start:
    """Where to go on from."""

    W: np.ndarray | None = None
    bias: np.ndarray | None = None
    steps_taken: int = 0


@dataclass
class Fit:
    """What a run leaves, complete at every moment: the best iterate of every problem by its objective."""

    W: np.ndarray
    bias: np.ndarray
    scale: np.ndarray
    objective: np.ndarray
    gradient_norm: np.ndarray        # relative to that at w = 0; NaN where not known
    passes: int = 0
    reads: float = 0.0
    steps_taken: int = 0
    l2: float = 0.0
    lost: tuple = ()                 # columns that have lost their digits,
    far: int | None = None           # and the largest where steps do not cope with others far smaller
    stopped: str = "max_passes"
    untrained: list = field(default_factory=list)      # problems that were not begun
    history: dict = field(default_factory=dict)

    def keep_best(self, W, bias, objective):
        """Take the iterates of those problems whose objective is the smallest so far."""
        W = W.astype(self.W.dtype, copy=False)
        _gradient_rules.take_lower(W, bias, objective, self.W, self.bias, self.objective)

    def record(self, trace, row):
        self.add_to_history(trace, (*row, *(trace.take() if trace is not None else ())))

    def name_history(self, trace):
        """Its columns, there although no pass came to its end."""
        for name in PURSUIT + (trace.names if trace is not None else ()):
            self.history.setdefault(name, [])

    def add_to_history(self, trace, row):
        self.name_history(trace)
        add_entry(self.history, row)


def one_shot_scale(margins, l2, n_rows, delta=ONE_SHOT_DELTA):
    """s = sqrt(n v / (2 l2 ln(1/delta))), v the 75 % quantile of |margins| (margin pursuit, section 4)."""
    v = float(np.quantile(np.abs(margins), 0.75))
    return math.sqrt(n_rows * v / (2 * l2 * math.log(1 / delta))) if v > 0 else 1.0


def loss_of(settings, scale):
    """What the data source's sums take for a loss: its number, its level, and each problem's own scale."""
    return LOSS_IDS[settings.loss], float(settings.level), scale


class FirstOrder(Resumable):
    """What the two first-order solvers share: the loop over passes, the evaluation after each, the clock."""

    made_again: tuple[str, ...] = ("blocks", "settings", "start", "trace")

    def __init__(self, blocks, settings, start, trace, dtype):
        self.blocks, self.settings, self.start, self.trace = blocks, settings, start, trace
        self.clock = RunClock(settings.deadline)
        K, d = blocks.n_problems, blocks.n_features
        self.W = np.zeros((K, d), dtype) if start.W is None else start.W.astype(dtype)
        self.bias = np.zeros(K) if start.bias is None else start.bias.astype(float)
        self.scale = np.full(K, settings.scale)
        self.step = np.nan
        self.fit = Fit(self.W.copy(), self.bias.copy(), self.scale, np.full(K, np.inf), np.full(K, np.nan),
                       steps_taken=start.steps_taken)

    def run(self, on_pass=None, checkpointer=NO_CHECKPOINTER):
        """Train; returns the fit and the KeyboardInterrupt that ended it, `Deferred`, or None."""
        if checkpointer.found is not None:
            self.go_on_from(checkpointer.found)
        fit, settings = self.fit, self.settings
        try:
            if checkpointer.found is None:
                self.prepare()
            while fit.passes < settings.max_passes and not self.converged():
                checkpointer.offer(fit.reads, self.snapshot)
                self.clock.timed("steps", self.one_pass)
                fit.passes += 1
                objective = self.clock.timed("trace", self.evaluate)
                if not (lines_finite(self.W) and all_finite(objective)):
                    fit.stopped = "diverged"
                    break
                fit.keep_best(self.W, self.bias, objective)
                self.record(objective)
                if on_pass is not None and self.clock.asked_to_stop(on_pass, fit):
                    fit.stopped = "callback"
                    break
                self.clock.watch()
                if settings.one_shot and fit.passes == 1 < settings.max_passes:
                    self.rescale()
        except TimeUp:
            fit.stopped = "max_time"
            self.keep_something()
        except KeyboardInterrupt as interruption:
            fit.stopped = "interrupted"
            self.keep_something()
            return fit, Deferred(interruption)
        if self.converged():
            fit.stopped = "tol"
        checkpointer.end(fit.stopped)
        return fit, None

    def go_on_from(self, state):
        self.clock.go_on_from(state.pop("clock"))
        super().go_on_from(state)

    def keep_something(self):
        """Before the first evaluation there is no best iterate: what has been reached is better than nothing."""
        if not self.fit.passes:
            W, bias = self.reached()
            if np.isfinite(W).all():
                self.fit.W[:], self.fit.bias[:] = W, bias

    def reached(self):
        return self.W, self.bias

    def evaluate(self):
        """(n_problems,) objective at the weights reached, and the margins into the trace: one read."""
        s, objective = self.settings, np.empty(len(self.W))
        weight = np.zeros(0) if self.blocks.weight is None else self.blocks.weight
        for group, margins in self.blocks.margins(self.W.astype(float, copy=False), self.bias):
            mean_losses(LOSS_IDS[s.loss], margins, weight, s.level, self.scale[group], objective[group])
            if np.isnan(objective[group]).any():
                return np.full(len(self.W), np.nan)
            if self.trace is not None:
                self.trace.add(margins, self.scale[group])
        return objective + self.penalty()

    def penalty(self):
        return self.settings.penalty.value(self.W.astype(float, copy=False))

    def rescale(self):
        """The one update of the scale from the margins reached (margin pursuit, section 4)."""
        for group, margins in self.blocks.margins(self.W.astype(float, copy=False), self.bias):
            self.scale[group] = [one_shot_scale(q, self.settings.l2, self.blocks.n_rows) for q in margins]
        self.fit.reads += 1
        self.fit.objective[:] = np.inf           # Q is another function from here on

    def record(self, objective):
        fit, clock = self.fit, self.clock
        fit.record(self.trace, (fit.passes, -1, fit.reads, clock.seconds, clock.phases["steps"], clock.phases["trace"],
                                objective.mean(), fit.gradient_norm.max(), float(self.step), self.scale.mean()))


class GradientDescent(FirstOrder):
    """Algorithm 1: w <- w + (s alpha / n) sum_i s_i psi((gamma - z_i)/s) y_i x_i, minus alpha l2 w.

    Steps are compiled, for in NumPy each is a dozen operations, between which other threads of Python come in.
    """

    made_again = (*FirstOrder.made_again, "W", "bias")

    def __init__(self, blocks, settings, start, trace):
        super().__init__(blocks, settings, start, trace, np.float64)
        self.evaluate_at(np.column_stack([self.W, self.bias]))
        self.G = np.zeros_like(self.V)

    def evaluate_at(self, V):
        self.V = V
        self.W, self.bias = V[:, :-1], V[:, -1]                      # views: a step moves both

    def go_on_from(self, state):
        super().go_on_from(state)
        self.settle()
        self.evaluate_at(self.V)

    def settle(self):
        self.settings = settled(self.blocks, self.settings)
        self.fit.l2, self.fit.lost = self.settings.l2, self.settings.lost

    def prepare(self):
        self.settle()
        self.step = self.longest_step() if self.settings.step_size is None else self.settings.step_size
        self.at_zero()
        self.gradients()
        self.fit.keep_best(self.W, self.bias, self.objective)

    def longest_step(self):
        # rho'' <= 1: the curvature of Q is at most the largest eigenvalue of the second moment, plus l2
        top = self.blocks.largest_curvature(self.settings.fit_intercept) + self.settings.l2
        self.fit.reads += 8
        return 1 / top if top > 0 else 1.0

    def at_zero(self):
        """Gradient norm at w = 0, which ``tol`` is relative to, whatever the start."""
        self.norm_at_zero = self.gradient_at(np.zeros_like(self.V))[1]

    def gradients(self):
        """Gradients at the weights reached: one read, which the next step uses."""
        value, norm = self.gradient_at(self.V)
        self.objective = value / self.blocks.n_rows + self.penalty()
        zero = self.norm_at_zero
        self.fit.gradient_norm = np.divide(norm, zero, out=np.where(norm > 0, np.inf, 0.0), where=zero > 0)

    def gradient_at(self, V):
        """Sums of the losses of every problem, and the norms of their gradients, which lie in ``G`` then."""
        s, norm = self.settings, np.empty(len(V))
        value, G, g = self.blocks.sums(V[:, :-1], V[:, -1], loss_of(s, self.scale))
        _gradient_rules.mean_gradient(G, g, self.blocks.n_rows, V, s.l2, s.l1, L1_WIDTH, s.fit_intercept, self.G)
        columns, G = s.columns, self.G
        if columns is not None:                  # where one column's units would rule, the norm is that in units
            G = np.column_stack([(G[:, :-1] - columns.centre * G[:, -1:]) / columns.unit, G[:, -1]])
        _gradient_rules.norms(G, norm)           # an infinite one is told from the weights, a pass later
        self.fit.reads += 1
        return value, norm

    def one_pass(self):
        # a problem that has converged stays where it is
        self.move((self.fit.gradient_norm <= self.settings.tol).astype(np.uint8))
        self.gradients()

    def move(self, still):
        _gradient_rules.descent(self.V, self.G, self.step, still)

    def evaluate(self):
        if self.trace is not None:
            for group, margins in self.blocks.margins(self.W, self.bias):
                self.trace.add(margins, self.scale[group])
        # a point that meets tol is the one to return, whatever the last digit of its objective
        self.fit.objective[self.fit.gradient_norm <= self.settings.tol] = np.inf
        return self.objective

    def rescale(self):
        super().rescale()
        self.at_zero()
        self.gradients()

    def converged(self):
        return bool(np.all(self.fit.gradient_norm <= self.settings.tol))


def weighted_draws(weight):
    """Table by which rows are drawn in proportion to ``weight`` (n_rows,) of mean 1; empty for None, equal weights."""
    if weight is None:
        return np.zeros(0), np.zeros(0, np.int64)
    cut, other = weight.astype(float), np.empty(len(weight), np.int64)
    _alias.alias_table(cut, other, np.empty(len(weight), np.int64))
    return cut, other


class ProjectedSGD(FirstOrder):
    """One random row a step, then onto the ball of radius 1 / sqrt(l2); a row is drawn as often as its weight says.

    Step (s sqrt(l2) (1 + t))^-1 of margin pursuit; of the hinge (Pegasos) (l2 (1 + t) + E|x|^2)^-1. Pegasos's own,
    1 / (l2 (1 + t)), takes the weights from one end of the ball to the other until t is about E|x|^2 / l2.
    """

    made_again = (*FirstOrder.made_again, "source", "squares", "cut", "other", "positives", "starts", "smooth", "delay")

    def __init__(self, blocks, settings, start, trace, source, entropy):
        super().__init__(blocks, settings, start, trace, source.dtype)
        self.source = source
        K, d = self.W.shape
        self.streams = class_streams([entropy, 0], K)
        self.radius = 1 / math.sqrt(settings.l2) if settings.l2 > 0 else np.inf
        if start.W is None:
            # w_0 random, as in the experiments: any direction, of length 1 or on the ball
            for c in range(K):
                w = np.random.default_rng(np.random.SeedSequence([entropy, 1, c])).standard_normal(d)
                self.W[c] = w * (min(1.0, self.radius) / max(np.linalg.norm(w), 1e-300))
        self.state = np.zeros((K, 2))
        self.state[:, 0] = self.bias
        self.t = np.full(K, start.steps_taken, np.int64)

    def prepare(self):
        found, self.fit.l2 = settled(self.blocks, self.settings), self.settings.l2
        self.fit.lost, self.fit.far = found.lost, None if found.columns is None else found.columns.largest
        self.measure_rows()
        self.fit.reads += 1

    def go_on_from(self, state):
        self.measure_rows()
        super().go_on_from(state)

    def measure_rows(self):
        blocks, s = self.blocks, self.settings
        self.squares = blocks.row_squares()
        self.cut, self.other = weighted_draws(blocks.weight)
        Y = blocks.Y.tocsc()
        self.positives, self.starts = Y.indices.astype(np.int64), Y.indptr.astype(np.int64)
        if not len(self.positives):
            self.positives = np.zeros(1, np.int64)
        mean_square = np.average(self.squares, weights=blocks.weight) + s.fit_intercept
        self.smooth = mean_square if mean_square > 0 else 1.0
        self.delay = self.smooth / s.l2 if s.loss == "hinge" and s.step_size is None else 0.0

    def first_steps(self):
        """(n_problems,) step at t = 0."""
        s = self.settings
        if s.step_size is not None:
            return np.full(len(self.W), s.step_size)
        if s.l2 == 0:
            return np.full(len(self.W), 1 / self.smooth)       # Q's smoothness is at most E|x|^2 (Lemma 14)
        return 1 / (self.scale * math.sqrt(s.l2)) if s.loss == "margin_pursuit" else np.full(len(self.W), 1 / s.l2)

    def one_pass(self):
        s, source, K = self.settings, self.source, len(self.W)
        numbers = source.n_features + STEP_OVERHEAD
        threads = worthwhile_threads(min(source.n_threads, K), source.n_rows * K * numbers)
        per_slice = max(64, int(SLICE_NUMBERS / numbers / K))
        positive = np.zeros((threads, source.n_rows), np.uint8)
        work = aligned_rows((threads, 2, source.n_features), source.dtype)
        first = np.ascontiguousarray(self.first_steps(), dtype=float)
        rows = _projected_sgd.ProjectedPass(source.rows, self.squares, self.cut, self.other, self.positives,
                                            self.starts)
        rows.rule(LOSS_IDS[s.loss], s.level, self.scale, s.l2, first, self.delay, s.l2 > 0, self.radius,
                  s.fit_intercept)
        for lo in range(0, source.n_rows, per_slice):
            rows.take(min(per_slice, source.n_rows - lo), self.streams, self.W, self.state, self.t, positive, work,
                      threads)
            self.clock.watch()
        self.bias = self.state[:, 0].copy()
        self.fit.reads += 1
        self.fit.steps_taken = int(self.t.max())
        self.step = float(np.mean(first)) / (1 + self.delay + self.t[0] if s.l2 > 0 else math.sqrt(1 + self.t[0]))

    def reached(self):
        return self.W, self.state[:, 0]

    def penalty(self):
        # the intercept is one more weight here
        return super().penalty() + self.settings.l2 / 2 * self.bias**2 * self.settings.fit_intercept

    def converged(self):
        return False
