"""Objectives on all rows, minimised by SciPy's L-BFGS-B: the margin-distribution methods margin pursuit is compared to.

Each objective answers ``(value, gradient)`` for one binary problem at v = (w, b), from blocks of rows folded in order.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from cmargin._core.losses._losses import LOSS_IDS, evaluate
from cmargin._core.util import _catoni
from cmargin._core.util._arrays import total
from cmargin._runtime.checkpoint import NO_CHECKPOINTER, Resumable
from cmargin._runtime.clock import RunClock, TimeUp
from cmargin._runtime.deferred import Deferred
from cmargin.solvers.first_order.margin_pursuit import Fit
from cmargin.solvers.first_order.penalty import Penalty

CORRECTIONS = 20             # pairs that L-BFGS keeps
LOOSE_TOL = 1e-3             # tolerance of all smoothing widths but the last
EPS = np.finfo(float).eps
STRAIGHT = 30.0              # exponents beyond which exp is continued by its tangent: nothing overflows


class AskedToStop(Exception):
    """The callback's answer was true."""


class Objective:
    """Rows of problem ``c``: scores at v, and gradients of sums of functions of them.

    Without ``fit_intercept`` b stays 0; ``l1`` is smoothed, see `Penalty`.
    """

    def __init__(self, blocks, c, l2, fit_intercept, l1=0.0):
        self.blocks, self.penalty, self.fit_intercept = blocks, Penalty(l2, l1), fit_intercept
        self.y = 2.0 * blocks.Y[:, [c]].toarray().ravel() - 1.0
        self.weight = np.full(blocks.n_rows, 1 / blocks.n_rows)         # sums to 1
        if blocks.weight is not None:
            self.weight = blocks.weight / blocks.n_rows
        self.reads = 0
        self.seen = None                 # (v, value, gradient norm, margins) of the last call

    def margins(self, v):
        """y_i (<w, x_i> + b): one read."""
        self.reads += 0.5                # the other half is the gradient: a call is one product each way
        parts = list(self.blocks.map(lambda block: np.asarray(self.blocks.rows(block) @ v[:-1])))
        z = parts[0] if len(parts) == 1 else np.concatenate(parts)
        z += v[-1]
        z *= self.y
        return z

    def __call__(self, v):
        z = self.margins(v)
        value, slope = self.of_margins(z)
        gradient = self.gradient(v, slope)
        value = float(value + self.penalty.value(v[:-1]))
        self.seen = (v.copy(), value, np.linalg.norm(gradient), z)
        return value, gradient

    def gradient(self, v, slope):
        """At v, from the derivative ``slope`` in every margin: the other half of a read."""
        r = slope * self.y
        self.reads += 0.5
        gradient = sum(self.blocks.map(lambda block: np.asarray(self.blocks.rows(block).T @ r[block])))
        return np.append(gradient + self.penalty.gradient(v[:-1]), r.sum() * self.fit_intercept)

    def of_margins(self, z):
        """Value of the part without penalty, and its derivative in every margin."""
        raise NotImplementedError


def smoothed_hinge(z, width):
    """Value and slope in z of the smoothed hinge: at most width / 2 above the hinge."""
    value, slope, curvature = np.empty((3, len(z)))
    evaluate(LOSS_IDS["smoothed_hinge"], z, value, slope, curvature, width)
    return value, slope


def influence(losses, at, scale):
    """s ψ((at - l_i)/s) and ψ'((at - l_i)/s) of every loss."""
    value, slope, curvature = np.empty((3, len(losses)))
    evaluate(LOSS_IDS["margin_pursuit"], losses, value, slope, curvature, at, scale)
    return -slope, curvature


def weighted_location(losses, weight, scale):
    """As `_catoni.location`, of losses of unequal weight: the root of Σ w_i ψ((γ - l_i)/s) nearest their median.

    Half of the weight pushes by the most there is at √2 s beyond the median, and the other half against it by no more.
    """
    at = weighted_median(losses, weight)
    lo, hi, last = at - np.sqrt(2) * scale, at + np.sqrt(2) * scale, np.inf
    while True:
        pushes, gives = influence(losses, at, scale)
        push, give = weight @ pushes, weight @ gives
        if abs(push) <= 4 * EPS * (weight @ np.abs(pushes)):     # as near to 0 as rounding lets it be seen
            return at
        lo, hi = (lo, at) if push > 0 else (at, hi)
        step = -push / give if give > 0 else np.inf
        moved = at + step
        if abs(step) <= 1e-13 * scale:               # the step taken leaves an error of its square
            return moved
        if not lo <= moved <= hi or abs(step) > last / 2:
            moved = lo + (hi - lo) / 2
            if not lo < moved < hi:
                return moved
        at, last = moved, abs(moved - at)


def weighted_median(losses, weight):
    """Middle of the losses that half of the weight is at most at, and at least at."""
    order = np.argsort(losses, kind="stable")
    up_to = np.cumsum(weight[order])
    half, slack = up_to[-1] / 2, 1e-12 * up_to[-1]
    lo, hi = np.searchsorted(up_to, (half - slack, half + slack))
    return float(losses[order[lo]] + losses[order[hi]]) / 2


class MarginMoments(Objective):
    """ODM (Zhang and Zhou): variance - mean + hinge of the margins, each with its weight."""

    def __init__(self, blocks, c, l2, fit_intercept, variance, mean, hinge, width):
        super().__init__(blocks, c, l2, fit_intercept)
        self.parts, self.width = (variance, mean, hinge), width

    def of_margins(self, z):
        variance, mean, hinge = self.parts
        centre = self.weight @ z
        value, slope = smoothed_hinge(z, self.width)
        total = variance * (self.weight @ (z - centre) ** 2) - mean * centre + hinge * (self.weight @ value)
        return total, self.weight * (2 * variance * (z - centre) - mean + hinge * slope)


class ProjectionProfile(Objective):
    """Garg and Roth: exp(-alpha h^2) where right, exp(-beta y h) where wrong; both are 1 at h = 0."""

    def __init__(self, blocks, c, l2, fit_intercept, alpha, beta):
        super().__init__(blocks, c, l2, fit_intercept)
        self.alpha, self.beta = alpha, beta

    def of_margins(self, z):
        right, t = z > 0, -self.beta * z
        value = np.exp(np.where(right, -self.alpha * z * z, np.minimum(t, STRAIGHT)))
        slope = value * np.where(right, -2 * self.alpha * z, -self.beta)
        value *= 1 + np.maximum(np.where(right, 0.0, t - STRAIGHT), 0.0)      # its tangent from there on
        return self.weight @ value, self.weight * slope


class CatoniRisk(Objective):
    """Brownlees et al.: Catoni's location estimate of the hinge losses (margin pursuit, eq. 2)."""

    def __init__(self, blocks, c, l2, fit_intercept, scale, width):
        super().__init__(blocks, c, l2, fit_intercept)
        self.scale, self.width = scale, width
        self.alike = bool(np.all(self.weight == self.weight[0]))

    def of_margins(self, z):
        losses, slope = smoothed_hinge(z, self.width)
        if self.alike:
            at = _catoni.location(losses, float(np.median(losses)), self.scale)
        else:
            at = weighted_location(losses, self.weight, self.scale)
        # implicit function: sum w_i psi'((at - l_i)/s) (d at - d l_i) = 0
        influences = influence(losses, at, self.scale)[1]
        if not self.alike:
            influences *= self.weight
        total = influences.sum()
        if total == 0:                   # no loss within reach of the estimate, half of them on either side
            return at, np.zeros_like(z)
        return at, influences / total * slope


@dataclass
class Progress:
    """How far a problem has come by L-BFGS."""

    v: np.ndarray                # where the present width was begun,
    at_zero: float = 0.0         # the gradient norm at w = 0 by it,
    begun: int = 0               # and passes by then
    width: int = 0               # its place in the list
    passes: int = 0
    answers: list = field(default_factory=list)     # (value, gradient) of every point that SciPy has asked for since


class FullBatch(Resumable):
    """All problems of an estimator, one after the other, by L-BFGS-B on ``make(problem, smoothing width)``.

    ``widths`` of the smoothing are gone through, each from the optimum of the one before; (0,) where nothing is
    smoothed. The state of L-BFGS is SciPy's own and cannot be taken out. A checkpoint has the answers it was given
    instead: given again, without a read of the rows, they lead it to the same point.
    """

    made_again: tuple[str, ...] = ("blocks", "make", "widths", "settings", "trace", "checkpointer")

    def __init__(self, blocks, make, widths, settings, start, trace):
        self.blocks, self.make, self.widths, self.settings = blocks, make, widths, settings
        self.trace, self.clock = trace, RunClock(settings.deadline)
        K, d = blocks.n_problems, blocks.n_features
        W = np.zeros((K, d)) if start.W is None else start.W.astype(float)
        bias = np.zeros(K) if start.bias is None else start.bias.astype(float)
        self.fit = Fit(W, bias, np.full(K, settings.scale), np.full(K, np.inf), np.full(K, np.inf))
        self.reads = np.zeros(K)         # of every problem
        self.n_done, self.progress = 0, None             # problems at their end, and how far the next has come
        self.checkpointer = NO_CHECKPOINTER

    def run(self, on_pass=None, checkpointer=NO_CHECKPOINTER):
        """Train; returns the fit and the KeyboardInterrupt that ended it, `Deferred`, or None."""
        if checkpointer.found is not None:
            self.clock.go_on_from(checkpointer.found.pop("clock"))
            self.go_on_from(checkpointer.found)
        fit, self.checkpointer = self.fit, checkpointer
        try:
            for c in range(self.n_done, self.blocks.n_problems):
                self.one_class(c, on_pass)
                self.n_done, self.progress = c + 1, None
        except TimeUp:
            fit.stopped = "max_time"
            self.use_ridge()
        except AskedToStop:
            fit.stopped = "callback"
            self.use_ridge()
        except KeyboardInterrupt as interruption:
            fit.stopped = "interrupted"
            self.use_ridge()
            return fit, Deferred(interruption)
        else:
            fit.stopped = "tol" if np.all(fit.gradient_norm <= self.settings.tol) else "max_passes"
        checkpointer.end(fit.stopped)
        return fit, None

    def use_ridge(self):
        """For problems without an iteration, and without weights of a fit before: 0 would call every row the same."""
        fit, trained = self.fit, self.n_done + (self.progress is not None and self.progress.passes > 0)
        fit.untrained = [c for c in range(trained, len(fit.W)) if not fit.W[c].any()]
        if fit.untrained:
            W, bias = self.blocks.ridge_start(self.settings.fit_intercept, 0.0)      # l2 is no squared loss's
            fit.W[fit.untrained], fit.bias[fit.untrained] = W[fit.untrained], bias[fit.untrained]
            fit.objective[fit.untrained] = fit.gradient_norm[fit.untrained] = np.inf

    def one_class(self, c, on_pass):
        if self.progress is None:
            self.progress = Progress(np.append(self.fit.W[c], self.fit.bias[c]))
        at = self.progress
        for k in range(at.width, len(self.widths)):
            last, objective = k == len(self.widths) - 1, self.make(c, self.widths[k])
            objective.reads = self.reads[c]              # those of the widths before count on
            if not at.answers:
                at.width, at.begun = k, at.passes
                objective(np.zeros_like(at.v))
                at.at_zero = max(objective.seen[2], np.finfo(float).tiny)
                objective(at.v)
                self.keep(c, at.passes, at.v, objective, at.at_zero, None)
            room = self.settings.max_passes - at.begun
            if room < 1:
                break
            at.v = self.minimised(c, objective, room, self.settings.tol if last else max(self.settings.tol, LOOSE_TOL),
                                  on_pass)
            at.answers = []
            if not last:
                self.fit.gradient_norm[c] = np.inf       # not yet the objective that was asked for
            self.count(c, objective)

    def minimised(self, c, objective, room, tol, on_pass):
        """The minimum of one width, from where it was begun, or from where its answers lead."""
        at, reported, again = self.progress, self.progress.passes, iter(list(self.progress.answers))
        at.passes = at.begun

        def value(v):
            answer = next(again, None)
            if answer is None:
                self.clock.watch()
                answer = objective(v)
                if self.checkpointer.active:
                    at.answers.append((answer[0], answer[1].copy()))
            return answer

        def after(v):
            at.passes += 1
            if at.passes > reported:
                self.keep(c, at.passes, v, objective, at.at_zero, on_pass)
                self.checkpointer.offer(self.fit.reads, self.snapshot)

        # the largest entry of the gradient is looked at: its norm is at most sqrt(d) times that
        return minimize(value, at.v, jac=True, method="L-BFGS-B", callback=after, options={
            "gtol": tol * at.at_zero / np.sqrt(len(at.v)), "ftol": 0.0, "maxiter": room, "maxfun": 20 * room,
            "maxcor": CORRECTIONS}).x

    def count(self, c, objective):
        self.reads[c] = objective.reads
        self.fit.reads = total(self.reads) / len(self.reads)

    def keep(self, c, passes, v, objective, at_zero, on_pass):
        """Weights of problem ``c`` after so many iterations: L-BFGS only takes steps that lower the objective."""
        fit = self.fit
        if objective.seen is None or (objective.seen[0] is not v and not np.array_equal(objective.seen[0], v)):
            objective(v)
        _, value, norm, z = objective.seen
        self.count(c, objective)
        fit.W[c], fit.bias[c], fit.passes = v[:-1], v[-1], max(fit.passes, passes)
        fit.objective[c], fit.gradient_norm[c] = value, norm / at_zero
        if not passes:
            return
        if self.trace is not None:
            self.clock.timed("trace", lambda: self.trace.add(z[None], fit.scale[c:c + 1]))
        seconds, in_trace = self.clock.seconds, self.clock.phases["trace"]
        fit.record(self.trace, (passes, c, self.reads[c], seconds, seconds - in_trace, in_trace, value, norm / at_zero,
                                np.nan, fit.scale[c]))
        if on_pass is not None and self.clock.asked_to_stop(on_pass, fit):
            raise AskedToStop
