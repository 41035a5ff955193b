"""SLND and BSN: one-vs-rest stochastic Newton descent with a low-rank inverse Hessian (doc/methods/slnd.md).

Order of a fit: draw the rows behind H, invert it (`build_inverse`), whiten every row once, choose the step, then
passes: each class visits its list, the weights moving by SLND eq. (11) in whitened coordinates.
"""

from dataclasses import dataclass, field

import numpy as np

from cmargin._core.losses._losses import AT_ZERO, LARGEST_CURVATURE, LOSS_IDS, evaluate
from cmargin._runtime.checkpoint import NO_CHECKPOINTER, Resumable
from cmargin._runtime.clock import RunClock, TimeUp
from cmargin._runtime.deferred import Deferred
from cmargin.solvers import cost
from cmargin.solvers.history import SLND, add_entry
from cmargin.solvers.per_class import STREAM_WORDS, class_streams, constant_score
from cmargin.solvers.sgd.class_passes import ClassPasses
from cmargin.solvers.sgd.class_weights import ClassWeights
from cmargin.solvers.sgd.low_rank import LowRankInverse, build_inverse, default_samples
from cmargin.solvers.sgd.step_size import Trial, automatic_step, split

THEORY_POSITIVES, THEORY_NEGATIVES = 64, 192
PHASES = ("hessian", "whiten", "steps")      # whose seconds are among them


@dataclass(frozen=True)
class Settings:
    """What the user chose; names and meaning as in `SLNDClassifier`."""

    loss: str
    rank: str | int
    tail: str
    hessian_samples: int | None
    curvature: str
    hessian_refresh: int | None
    step_size: str | float
    average: bool
    max_passes: int
    tol: float | None
    fit_intercept: bool
    deadline: float | None
    interrupted: bool = False        # a Ctrl-C came before the run began
    note: object = None              # (Stage) -> None, called as a stage or trial begins


@dataclass
class Start:
    """Where to go on from; all None is a fresh start."""

    W: np.ndarray | None = None
    bias: np.ndarray | None = None
    inverse: LowRankInverse | None = None
    streams: np.ndarray | None = None
    step: float | None = None
    passes_done: int = 0
    decay: str = "pass"


@dataclass
class Fit:
    """What a run leaves, complete at every moment: an interrupted run is read the same way."""

    W: np.ndarray
    bias: np.ndarray
    inverse: LowRankInverse | None
    spectrum: np.ndarray
    streams: np.ndarray
    step: float | None
    passes: int = 0
    reads: float = 0.0
    diverged: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    stopped: str = "max_passes"
    from_ridge: bool = False         # stopped before a pass had ended, and no better than ridge regression was then
    history: dict = field(default_factory=lambda: {name: [] for name in SLND})

    def drop_what_is_half_recorded(self):
        """An interrupt may fall between two columns of the history, or between a pass and its record."""
        whole = min((len(column) for column in self.history.values()), default=0)
        for column in self.history.values():
            del column[whole:]
        self.passes = whole


def train(source, lists, row_weight, settings, entropy, start=None, on_pass=None, make=None,
          checkpointer=NO_CHECKPOINTER):
    """Train every class of ``lists`` on the rows of ``source``, by a `Run`, or what ``make`` makes of its arguments.

    ``row_weight``: (n_rows,) float64 array or None; ``entropy`` seeds every random draw. ``on_pass`` is called with the
    `Fit` so far after every pass, and stops the run by a true answer. Returns the `Fit`, and the KeyboardInterrupt that
    ended the run, `Deferred` until the fit is stored, or None.
    """
    run = (make or Run)(source, lists, row_weight, settings, entropy, start or Start())
    interrupted = None
    try:
        if settings.interrupted:
            raise KeyboardInterrupt
        if checkpointer.found is None:
            run.prepare()
        else:
            run.go_on_from(checkpointer.found)
        run.passes(on_pass, checkpointer)
    except TimeUp:
        run.fit.stopped = "max_time" if run.fit.passes < settings.max_passes else "max_passes"
        run.undo_divergence()
    except KeyboardInterrupt as interruption:
        run.fit.stopped, interrupted = "interrupted", Deferred(interruption)
        run.fit.drop_what_is_half_recorded()
        run.undo_divergence()
    run.keep_weights()
    checkpointer.end(run.fit.stopped)
    return run.fit, interrupted


class Run(Resumable):
    """One call of `train`: its data, its weights, its clock."""

    made_again: tuple[str, ...] = (
        "source", "lists", "row_weight", "settings", "start", "runner", "earlier", "Z", "rng")
    tried = None               # classes that steps are tried on some of; None: any

    def __init__(self, source, lists, row_weight, settings, entropy, start):
        self.source, self.lists, self.row_weight = source, lists, row_weight
        self.settings, self.start, self.entropy = settings, start, entropy
        self.clock = RunClock(settings.deadline, PHASES)
        self.rng = np.random.default_rng(np.random.SeedSequence([entropy, 1]))
        n, streams = lists.n_classes, start.streams
        if streams is None:
            streams = class_streams([entropy, 0], n)
        W = np.zeros((n, source.n_features), source.dtype) if start.W is None else start.W
        bias = self._constant_bias() if start.bias is None else start.bias
        self.fit = Fit(W, bias, start.inverse, np.zeros(0), streams, start.step, diverged=np.zeros(n, bool))
        self.runner = ClassPasses(source, lists, row_weight, settings.loss, streams)
        self.weights = self.Z = self.earlier = None
        source.between_chunks = self.clock.watch
        if W.shape != (n, source.n_features) or len(bias) != n or streams.shape != (n, STREAM_WORDS):
            raise ValueError("the fit to go on from has other classes or features")
        self.halvings = np.zeros(n)

    def _constant_bias(self):
        if not self.settings.fit_intercept:
            return np.zeros(self.lists.n_classes)
        _, positive, visited = self.lists.shares(self.row_weight)
        known = (positive > 0) & (positive < visited)         # a class not met yet, or met alone, starts at even odds
        share = np.where(known, positive / np.where(known, visited, 1), 0.5)
        return constant_score(self.settings.loss, share)

    # ---- before the first pass

    def prepare(self):
        s, start, fit = self.settings, self.start, self.fit
        if start.inverse is None:
            fit.inverse, fit.spectrum = self.clock.timed("hessian", self._invert, None)
        keep_base = start.W is not None and not fit.inverse.spans(start.W)
        average = s.average and s.step_size != "theory"
        self.weights = ClassWeights.start(fit.inverse, self.lists.n_classes, self.source.dtype, average, start.W,
                                          fit.bias, keep_base)
        if keep_base:
            if s.step_size == "theory":
                raise ValueError("step_size='theory' cannot go on from weights outside the new preconditioner's span; "
                                 "fit without warm_start, or keep rank and tail.")
            fit.step = fit.step or self._fixed_step()
            return
        self.Z = self.clock.timed("whiten", self._whiten)
        if s.step_size == "theory":
            self.subset_offsets, self.subset = self._theory_subsets()
        elif fit.step is None:
            fit.step = self._fixed_step() if s.step_size != "auto" else self.clock.timed("steps", self._choose_step)
            self.clock.watch()                   # a search cut short is no state to go on from

    def _whiten(self):
        self.fit.reads += 1
        return self.source.whiten(self.fit.inverse)

    def _fixed_step(self):
        return cost.CLASS_STEP if isinstance(self.settings.step_size, str) else float(self.settings.step_size)

    def _invert(self, scores_from):
        """Second moment of a fresh random subset, inverted; per class where curvature at weights is asked for."""
        s, subset = self.settings, self._rows_behind()
        m = len(subset)
        weight = np.ones(m) if self.row_weight is None else self.row_weight[subset]
        weight = weight * (m / weight.sum()) if weight.sum() > 0 else np.ones(m)
        at_zero = LARGEST_CURVATURE[s.loss] if s.curvature == "loss" else 1.0
        curvature = at_zero * weight[None, :]
        if scores_from is not None and s.curvature == "loss":
            curvature = self._curvature_at(subset, *scores_from) * weight[None, :]
        rank = s.rank if scores_from is None else self.fit.inverse.rank
        return build_inverse(self.source, subset, np.ascontiguousarray(curvature), rank, s.tail, weight)

    def _rows_behind(self):
        """A random subset of the rows, ascending, that H is estimated on; what is read of them counts."""
        s, source = self.settings, self.source
        wanted = s.hessian_samples or default_samples(source.n_rows, source.n_features, s.rank, s.tail)
        subset = np.sort(self.rng.choice(source.n_rows, min(wanted, source.n_rows), replace=False)).astype(np.int64)
        self.fit.reads += len(subset) / source.n_rows
        return subset

    def _curvature_at(self, subset, W, bias):
        """c_i = F''(y_i <w_c, x_i>) of every class, (n_classes, m); F'' is even for these losses."""
        scores = np.ascontiguousarray(self.source.scores(W, bias, subset).T)
        out = [np.empty(scores.size) for _ in range(3)]
        evaluate(LOSS_IDS[self.settings.loss], scores.ravel(), *out)
        return out[2].reshape(scores.shape)

    def _choose_step(self):
        rng = np.random.default_rng(self.rng.integers(1 << 62))
        trial = self._trial(self.runner, self.Z, split(self.lists, rng, self.tried), rng)
        return automatic_step(trial, lambda: self.clock.late, self.settings.note, self.fit.inverse.rank)

    def _trial(self, passes, Z, drawn, rng):
        return Trial(passes, Z, self.fit.inverse, drawn, self._constant_bias(), self._bias_rate(), self._scale(), rng)

    def _theory_subsets(self):
        """Fixed random visits of every class that the sums of theorem 2 run over, in the proportion of its list."""
        parts = []
        for c in range(self.lists.n_classes):
            positives = self.rng.permutation(self.lists.rows_of(c))[:THEORY_POSITIVES]
            share = self.lists.n_negatives[c] / max(self.lists.n_positives[c], 1)
            count = min(THEORY_NEGATIVES, max(1, round(share * len(positives)))) if len(positives) else 0
            others = np.setdiff1d(np.arange(self.lists.n_rows), self.lists.rows_of(c))
            negatives = self.rng.permutation(others)[:count]
            parts.append(np.concatenate([positives, -1 - negatives]).astype(np.int64))
        offsets = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int64)
        return offsets, np.concatenate(parts)

    # ---- a checkpoint

    def snapshot(self):
        return {**super().snapshot(), "rng": self.rng.bit_generator.state, "whitened": self.Z is not None}

    def go_on_from(self, state):
        self.rng.bit_generator.state = state.pop("rng")
        self.clock.go_on_from(state.pop("clock"))
        whitened = state.pop("whitened")
        super().go_on_from(state)
        self._share_again()
        if whitened:
            reads = self.fit.reads
            self.Z = self._whiten()
            self.fit.reads = reads                # which counts what this answer took to find, once

    def _share_again(self):
        """What is made anew has arrays of the state."""
        self.runner.streams = self.fit.streams

    # ---- the size of a step

    def _bias_rate(self):
        """(n_groups,) inverse second moment of the intercept's column of ones, 0 without intercept."""
        mean = self.fit.inverse.mean_curvature
        return np.divide(1.0, mean, where=mean > 0, out=np.ones_like(mean)) * self.settings.fit_intercept

    def _scale(self):
        """(n_groups,) F''(0) mean z'z, the intercept's share included: the curvature that relative step 1 inverts."""
        mean_square = self.fit.inverse.mean_square + self._bias_rate()
        return np.maximum(LARGEST_CURVATURE[self.settings.loss] * mean_square, 1e-12)

    def _step(self):
        """(n_classes,) eta of this pass: relative step / scale, falling as 1 / pass."""
        number = self.start.passes_done + self.fit.passes + 1
        fall = number if self.start.decay == "pass" else np.sqrt(number)
        step = self.fit.step / self._scale() / fall
        return np.ascontiguousarray(np.broadcast_to(step, self.lists.n_classes) * 0.5**self.halvings)

    # ---- passes

    def passes(self, on_pass, checkpointer):
        s, fit = self.settings, self.fit
        while fit.passes < s.max_passes:
            checkpointer.offer(fit.reads, self.snapshot)
            if s.hessian_refresh and fit.passes and fit.passes % s.hessian_refresh == 0:
                self.clock.timed("hessian", self._refresh)
            self.earlier = self.weights.copy()
            step = np.zeros(self.lists.n_classes) if fit.step is None else self._step()
            sums = self.clock.timed("steps", self._one_pass, step)
            self.undo_divergence()
            fit.passes += 1
            fit.reads += self._read_in_a_pass()
            self._record(sums, step)
            if on_pass is not None:
                self.keep_weights()
                if self.clock.asked_to_stop(on_pass, fit):
                    fit.stopped = "callback"
                    return
            if self._settled():
                fit.stopped = "tol"
                return
            self.clock.watch()

    def _n_rows(self):
        """That the passes are over."""
        return self.source.n_rows

    def _read_in_a_pass(self):
        """Part of the data, on average over the classes."""
        return self.lists.lengths.sum() / (self._n_rows() * self.lists.n_classes)

    def _one_pass(self, step):
        if self.weights.base is not None:
            return self.runner.refreshed(self.fit.inverse, self.weights, step, self._bias_rate())
        if self.settings.step_size == "theory":
            curvature = LARGEST_CURVATURE[self.settings.loss]
            return self.runner.theory(self.Z, self.fit.inverse, self.weights, self.subset_offsets, self.subset,
                                      curvature, self._bias_rate())
        return self.runner.plain(self.Z, self.fit.inverse, self.weights, step, self._bias_rate())

    def _refresh(self):
        """A new inverse at the weights reached; from here on rows are whitened as they are visited."""
        W, bias = self.weights.linear(self.fit.inverse)
        inverse, spectrum = self._invert((W, bias))
        weights = ClassWeights.start(inverse, self.lists.n_classes, self.source.dtype, self.settings.average, W, bias,
                                     keep_base=True)
        # all at once: a Ctrl-C must not find the weights of one basis beside the other
        self.earlier, self.Z, self.fit.spectrum = None, None, spectrum
        self.fit.inverse, self.weights = inverse, weights

    def undo_divergence(self):
        """Put classes whose weights overflowed back to where the pass began, with half the step from now on."""
        if self.weights is None or self.earlier is None:
            return
        lost = ~self.weights.finite()
        if lost.any():
            self.weights.put_back(lost, self.earlier)
            self.halvings[lost] += 1
        self.fit.diverged, self.earlier = lost, None

    def _record(self, sums, step):
        total = sums.sum(axis=0)
        weight = total[2] if total[2] > 0 else 1.0
        risk = total[0] / weight
        self._enter(risk if np.isfinite(risk) else np.inf, total[1] / weight, float(np.mean(step)),
                    int(self.lists.lengths.sum()))

    def _enter(self, *numbers):
        """An entry of the history: objective, error, step and visits of the pass that has ended."""
        add_entry(self.fit.history, (self.fit.passes, -1, self.fit.reads, self.clock.seconds,
                                     *self.clock.phases.values(), *numbers))

    def _settled(self):
        """Whether the risk met on the way fell by less than tol F(0); never where the loss runs away to -infinity."""
        risks, tol = self.fit.history["objective"], self.settings.tol
        if tol is None or len(risks) < 2:
            return False
        if self.settings.loss == "calibrated_hinge" and self.fit.history["error"][-1] == 0:
            return False
        return risks[-2] - risks[-1] < tol * AT_ZERO[self.settings.loss]

    def _linear(self):
        return self.weights.linear(self.fit.inverse)

    def keep_weights(self):
        """Store the weights in the fit; the last finite ones if a class is in the middle of overflowing."""
        if self.weights is None:
            return
        W, bias = self._linear()
        lost = ~(np.isfinite(W).all(axis=1) & np.isfinite(bias))
        W[lost], bias[lost] = self.fit.W[lost], self.fit.bias[lost]
        self.fit.W, self.fit.bias = W.astype(self.source.dtype, copy=False), bias
