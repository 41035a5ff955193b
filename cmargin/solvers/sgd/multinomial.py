"""SLND on the multinomial risk: mini-batch Newton descent with one low-rank inverse for all classes (ours).

Order of a fit: draw the rows behind H and invert their covariance, try ranks and steps on some rows, whiten every row
once, in a random order; then passes over random batches. With an automatic step some rows are held out: passes end
where their log-loss is least, and where they were more than a few, as many passes over all rows follow; unless the
numbers are few and a penalised optimum (`penalised_end`) has less log-loss: then that of all rows is the end, and so it
is without any pass where rows are too few to hold some out: a class of three rows cannot spare one for that. CSR rows
have no such optimum: those in memory are passed over once more, in another order, and the mean of both is the end.
"""

import numpy as np
from scipy.special import softmax

from cmargin._core.util._arrays import all_finite, copied, total, zeros
from cmargin._core.util._sampling import shuffle
from cmargin._runtime.clock import RunClock
from cmargin.solvers import cost
from cmargin.solvers.per_class import STREAM_WORDS, class_streams
from cmargin.solvers.plan import Outcome
from cmargin.solvers.sgd.held_out import best_factor, sure_factor
from cmargin.solvers.sgd.low_rank import build_inverse, lower_rank_will_do
from cmargin.solvers.sgd.low_rank_newton import PHASES, Fit, Run
from cmargin.solvers.sgd.multinomial_choice import (
    FALL,
    MEAN_STRIDE,
    Trial,
    batch_size,
    choose,
    of_rank,
    split_order,
    walkers,
)
from cmargin.solvers.sgd.penalised_end import (
    NO_PART,
    Problem,
    parts_left_out,
    strength_beside_passes,
    strength_of_few,
)
from cmargin.solvers.sgd.softmax_passes import SoftmaxPasses
from cmargin.solvers.sgd.softmax_weights import SoftmaxWeights
from cmargin.solvers.slnd_plan import (
    SoftmaxStats,
    TrialStats,
    chosen_by_trials,
    next_softmax_stage,
    next_trial,
    ranks_to_try,
)


class MultinomialRun(Run):
    """One call of `train` for the multinomial risk; ``truth`` (n_rows,) int64 holds the class of every row."""

    made_again: tuple[str, ...] = (
        "source", "row_weight", "settings", "start", "truth", "passes_over", "Z", "rng")
    trial_batch = None         # rows of a trial's batch; None: as many as a pass over all rows takes
    passes_of: type = SoftmaxPasses
    may_walk = True            # whether rows are in memory, for walkers side by side
    in_one_memory = True       # whether a penalised end may be tried, on `_whiten_few`

    def __init__(self, source, lists, row_weight, settings, entropy, start, truth, n_classes):
        self.source, self.row_weight, self.settings, self.start = source, row_weight, settings, start
        self.truth, self.n_classes, self.entropy = truth, n_classes, entropy
        self.clock = RunClock(settings.deadline, PHASES)
        self.rng = np.random.default_rng(np.random.SeedSequence([entropy, 1]))
        self.stream = class_streams([entropy, 2, start.passes_done], 1)[0]             # of the batches' order
        self.weights = self.passes_over = self.best = self.kept = self.Z = None
        self.outcomes, self.chosen = [], False   # of the stages so far; whether how many passes are best is found out
        self.sweep, self.n_swept, self.halvings = "plain", 0, 0       # what the passes are for, how many there were
        self.idle = 0              # passes in a row that hardly lowered the held-out loss
        self.factor = 1.0          # that suits the scores of the weights which were best on the rows held out
        source.between_chunks = self.clock.watch
        self.W, self.bias = self._start_weights()
        n_problems = lists.n_classes
        self.fit = Fit(self._problems(self.W), self._problems(self.bias), start.inverse, np.zeros(0),
                       np.zeros((n_problems, STREAM_WORDS), np.uint64), start.step,
                       diverged=np.zeros(n_problems, bool))

    # ---- classes and problems: two classes make one problem, the difference of their scores

    def _problems(self, a):
        return a[1:] - a[:1] if self.n_classes == 2 else a

    def _start_weights(self):
        """(W, bias) of all classes: those of the start, or zero and the log shares."""
        start, n = self.start, self.n_classes
        if start.W is None:
            return zeros((n, self.source.n_features), self.source.dtype), self._log_shares()
        if start.W.shape != (1 if n == 2 else n, self.source.n_features):
            raise ValueError("the fit to go on from has other classes or features")
        if n > 2:
            return start.W, np.asarray(start.bias, dtype=float)
        return np.concatenate([-start.W / 2, start.W / 2]), np.concatenate([-start.bias / 2, start.bias / 2])

    def _log_shares(self):
        """Scores that predict the shares of the classes; one not met counts as half a row."""
        if not self.settings.fit_intercept:
            return np.zeros(self.n_classes)
        shares = np.bincount(self.truth, self.row_weight, self.n_classes) / len(self.truth)
        return np.log(np.maximum(shares, 0.5 / len(self.truth)))

    # ---- before the first pass

    def prepare(self):
        s, start, fit = self.settings, self.start, self.fit
        self.order, n_held = self._split()
        if start.inverse is None:
            fit.inverse, fit.spectrum = self.clock.timed("hessian", self._invert, None)
        asked = None if s.step_size == "auto" else float(s.step_size)
        problem = TrialStats(True, n_held > 0, fit.inverse.rank,
                             start.inverse is None and s.rank == "auto" and s.tail == "scale",
                             lower_rank_will_do(fit.spectrum, cost.LOW_RANK), self.source.sparse,
                             fit.step if asked is None else asked)
        inverses = [self._of_rank(rank) for rank in ranks_to_try(problem)]
        fit.inverse, (_, fit.step) = inverses[0], chosen_by_trials(problem, ())
        if next_trial(problem, ()) is not None:
            fit.inverse, fit.step = self.clock.timed("steps", self._choose, problem, inverses, n_held)
        chosen = asked is None and start.decay == "pass" and s.max_passes >= cost.CHOSEN_PASSES_FROM
        self.n_held, self.best, self.chosen = n_held if chosen else 0, (np.inf, 0), chosen
        self.sweep = "monitored" if self.n_held else "plain"
        if next_softmax_stage(self._stats(), ()).kind == "optimum":
            self.sweep = "none"
        self.Z = self.clock.timed("whiten", self._whiten)
        self._begin(self.W, self.bias)

    def _split(self):
        """A random order of the rows that ends with those held out, and how many those are."""
        return split_order(self.truth, self.n_classes, self.rng)

    def _of_rank(self, rank):
        inverse = self.fit.inverse
        return inverse if rank == inverse.rank else of_rank(self.source, inverse, rank, self.subset, self.subset_weight)

    def _choose(self, problem, inverses, n_held):
        trial = self._trial(self.source, self.truth, self.row_weight, self.order, n_held)
        found = choose(trial, problem, inverses, self.settings.note)
        self.fit.reads += trial.reads
        return found

    def _trial(self, source, truth, row_weight, order, n_held):
        return Trial(source, truth, row_weight, order, n_held, self.W, self.bias, self._eta, self._bias_rate(),
                     np.random.default_rng(self.rng.integers(1 << 62)), self.trial_batch)

    def _whiten(self, out=None):
        self.fit.reads += 1
        return self.source.whiten(self.fit.inverse, self.order, out)

    def _begin(self, W, bias):
        """Weights in the basis of the inverse there is, and the passes that move them."""
        self.weights = self.passes_over = None               # let go of before others are made
        self.weights = self._starting(W, bias)
        batch = self._open_passes()
        self.held = np.arange(self.source.n_rows - self.n_held, self.source.n_rows, batch, dtype=np.int64)

    def _starting(self, W, bias):
        average = self.settings.average and self.sweep != "again"      # whose last weights are asked for
        return SoftmaxWeights.start(self.fit.inverse, W, bias, average, MEAN_STRIDE)

    def _open_passes(self):
        weight = None if self.row_weight is None else self.row_weight[self.order]
        batch = self._batch()
        self.passes_over = self.passes_of(self.source, self.fit.inverse, self.Z, self.order, self.truth[self.order],
                                          weight, self.n_classes, batch)
        return batch

    def go_on_from(self, state):
        super().go_on_from(state)
        self._open_passes()

    def _share_again(self):
        pass

    def _batch(self):
        """Rows of one."""
        if self._walkers() > 1:
            _, batch, _ = cost.WALKER_SIZES
            return batch
        return batch_size(self.source.n_rows, self.source.sparse)

    def _walkers(self):
        return walkers(self.source.n_rows, self.n_classes, self.source.sparse) if self.may_walk else 1

    def _invert(self, scores_from):
        """Covariance of a fresh random subset, inverted; weighted by mean p(1 - p) at weights, if so asked."""
        s, source, subset = self.settings, self.source, self._rows_behind()
        m = len(subset)
        weight = np.ones(m) if self.row_weight is None else self.row_weight[subset]
        curvature = weight
        if scores_from is not None and s.curvature == "loss":
            curvature = weight * self._curvature_at(subset, *scores_from)
        if not total(curvature) > 0:
            curvature = weight if total(weight) > 0 else np.ones(m)
        if curvature is not weight or self.row_weight is not None:
            curvature = curvature * (m / total(curvature))
        weight = weight if total(weight) > 0 else np.ones(m)
        centre = source.mean_row(subset, curvature) if s.fit_intercept else np.zeros(source.n_features)
        rank = s.rank if scores_from is None else self.fit.inverse.rank
        self.subset, self.subset_weight = subset, weight
        return build_inverse(source, subset, copied(curvature[None, :]), rank, s.tail, weight, centre)

    def _curvature_at(self, subset, W, bias):
        """(m,) mean over the classes of p (1 - p)."""
        p = softmax(self.source.scores(W, bias, subset), axis=1)
        return (p * (1 - p)).mean(axis=1)

    # ---- the size of a step

    def _bias_rate(self):
        return float(self.settings.fit_intercept)

    def _eta(self, inverse, relative):
        """Step of one row in the first pass: relative step / (mean z'z + 1). Without a bias every z may be 0."""
        return relative / (float(inverse.mean_square[0]) + self._bias_rate() or 1.0)

    def _step(self, number):
        """eta of pass ``number`` of this sweep."""
        number += self.start.passes_done
        fall = number**FALL if self.start.decay == "pass" else np.sqrt(number)
        return self._eta(self.fit.inverse, self.fit.step) / fall * 0.5**self.halvings

    # ---- passes

    def passes(self, on_pass, checkpointer):
        """What `next_softmax_stage` says, stage by stage."""
        while (stage := next_softmax_stage(self._stats(), self.outcomes)) is not None:
            if self.settings.note is not None:
                self.settings.note(stage)
            self.outcomes.append(getattr(self, f"_{stage.kind}")(on_pass, checkpointer))

    def _stats(self):
        inverse = self.fit.inverse
        return SoftmaxStats(self._n_rows(), self.n_classes, inverse.width, bool(inverse.tail_inverse[0] > 0),
                            self.n_held, self.chosen, self.start.W is not None, self._few_in_memory,
                            self.in_one_memory, not self.settings.hessian_refresh)

    def _passes(self, on_pass, checkpointer):
        stopped = self._sweep(self.settings.max_passes, on_pass, checkpointer)
        return Outcome("passes", "stopped" if stopped or not self.best[1] else "done", numbers=(self.n_held,))

    def _refit(self, on_pass, checkpointer):
        if self.sweep != "all rows":             # else it goes on from a checkpoint
            self.n_held, self.sweep, self.n_swept = 0, "all rows", 0
            self._begin(self.W, self.bias)
        self._sweep(self.best[1], on_pass, checkpointer)
        return Outcome("refit")

    def _again(self, on_pass, checkpointer):
        """As many passes from the start as there were before: the end is the mean of their last weights and those kept.

        Those kept were to be the best on rows held out; the last ones have learnt the rows better, and in another
        order, so that the two err on other rows.
        """
        if self.sweep != "again":                # else it goes on from a checkpoint
            self.sweep, self.n_swept = "again", 0
            self._begin(self.W, self.bias)
        self._sweep(self.fit.passes - self.n_swept, on_pass, checkpointer)
        return Outcome("again")

    def _path(self, on_pass, checkpointer):
        """Go to the penalised optimum of all rows unless passes are better on those held out."""
        fit = self.fit
        problem = self._problem(self._whiten_few())
        parts = parts_left_out(self.source.n_rows, self.n_held)
        best, reads = self.clock.timed("steps", strength_beside_passes, problem, parts, self._point_kept(),
                                       self.best_losses)
        fit.reads += reads
        if best is None:
            return Outcome("path", "left")
        self._end_at_optimum(problem, best, on_pass)
        return Outcome("path")

    def _point_kept(self):
        """(U, b) of the weights kept, in the basis of the inverse there is; U is 0 where that lacks them."""
        weights, inverse = self.kept
        begun = SoftmaxWeights.start(self.fit.inverse, *weights.linear(inverse), False, MEAN_STRIDE)
        return begun.U.astype(float), begun.bias[:, 0]

    @property
    def _few_in_memory(self):
        """Whether `_whiten_few` has all rows where they are few."""
        return True

    def _whiten_few(self):
        return self.Z

    def _optimum(self, on_pass, checkpointer):
        """The penalised optimum of rows too few to hold any out for passes."""
        problem = self._problem(self._whiten_few())
        strength, reads = self.clock.timed("steps", strength_of_few, problem)
        self.fit.reads += reads
        self._end_at_optimum(problem, strength, on_pass)
        return Outcome("optimum")

    def _problem(self, Z):
        """Of all rows, whitened, in the order of the passes."""
        weight = np.zeros(0) if self.row_weight is None else self.row_weight[self.order]
        return Problem(Z, self.truth[self.order], weight, self.n_classes, float(self.fit.inverse.mean_square[0]),
                       self.settings.fit_intercept, MEAN_STRIDE, self.clock.deadline)

    def _end_at_optimum(self, problem, strength, on_pass):
        """The optimum of all rows becomes the end, as the last entry of the history."""
        fit, n = self.fit, len(problem.truth)
        point, reads = self.clock.timed("steps", problem.without(NO_PART, strength.point).optimum, strength.C)
        fit.reads += reads
        self.factor = strength.factor
        self._keep(problem.weights(point))
        fit.passes, fit.stopped = fit.passes + 1, "held-out loss"
        scores, errors = problem.judged(point, 0, n)
        losses = best_factor(scores, problem.truth, problem.weight)[2]
        weight = total(problem.weight) if len(problem.weight) else float(n)
        self._record((total(losses), total(errors), weight, int(reads * n)), 0.0)
        if on_pass is not None:
            self._published()
            on_pass(fit)

    def _sweep(self, n_passes, on_pass, checkpointer):
        """Passes until there were ``n_passes`` of this kind, at most; True if the callback or tol ended them."""
        kind, s, fit = self.sweep, self.settings, self.fit
        for number in range(self.n_swept + 1, n_passes + 1):
            self.n_swept = number - 1
            checkpointer.offer(fit.reads, self.snapshot)
            if s.hessian_refresh and number > 1 and (number - 1) % s.hessian_refresh == 0:
                self.clock.timed("hessian", self._refresh)
            step = self._step(number)
            sums = self.clock.timed("steps", self._one_pass, step)
            self.undo_divergence()
            fit.passes += 1
            self._record(sums, step)
            over = kind == "monitored" and self._judge(number)
            if kind == "plain" or (kind == "all rows" and number == n_passes):
                self._keep()
            if kind == "again" and number == n_passes:
                self._join(n_passes)
            if on_pass is not None:
                self._published()
                if self.clock.asked_to_stop(on_pass, fit):
                    fit.stopped = "callback"
                    return True
            if kind in ("monitored", "plain") and self._settled():
                fit.stopped = "tol"
                return True
            if over:
                fit.stopped = "held-out loss"
                break
            self.clock.watch()
        return False

    def _one_pass(self, step):
        n_train, passes = self.source.n_rows - self.n_held, self.passes_over
        self.fit.reads += n_train / self.source.n_rows
        batches = self._drawn(n_train, passes.batch)
        if self._walkers() > 1 and self.weights.base is None:
            passes.walk(self.weights, batches, step, self._bias_rate(), n_train, self._walkers())
        else:
            passes.run(self.weights, batches, np.full(len(batches), step), self._bias_rate(), n_train, self.held)
        return (*self.passes_over.met(n_train), n_train)

    def _drawn(self, n_train, batch):
        """First rows of the batches of a pass. Small ones that lie side by side stay so: they are read in one go."""
        run = max(batch, cost.DENSE_BATCH) if self._walkers() > 1 else batch
        batches = np.arange(0, n_train, run)
        shuffle(batches, self.stream)
        if run > batch:
            batches = (batches[:, None] + np.arange(0, run, batch)).ravel()
            batches = batches[batches < n_train]
        return batches

    def _judge(self, number):
        """Keep the weights if they are the best on the held-out rows, each at its best factor; whether they have long
        been hardly better."""
        if self.fit.diverged.any():
            return False
        mean = self.weights.mean(self.fit.inverse, copy=False)
        factor, losses, plain = self._of_held(mean)
        loss = total(losses) / self.passes_over.weight_of(self.source.n_rows - self.n_held, self.source.n_rows)
        self.idle = 0 if loss < (1 - cost.PASS_GAIN) * self.best[0] else self.idle + 1
        if loss < self.best[0]:
            self.best, self.factor, self.best_losses = (loss, number), sure_factor(factor, losses, plain), losses
            self._keep(mean)
        return self.idle >= (cost.PASSES_WITHOUT_GAIN if self._n_rows() * cost.HELD_SHARE < cost.HELD_MOST else 1)

    def _of_held(self, mean):
        """`best_factor` of the rows held out."""
        n_train, n = self.source.n_rows - self.n_held, self.source.n_rows
        rows = self.order[n_train:]
        weight = np.zeros(0) if self.row_weight is None else self.row_weight[rows]
        return best_factor(self.passes_over.scores(self.weights, self.held, n, mean), self.truth[rows], weight)

    def _refresh(self):
        """A new inverse at the weights reached, and every row whitened anew."""
        W, bias = self.weights.linear(self.fit.inverse)
        inverse, spectrum = self._invert((W, bias))
        self.weights, out = None, self.Z if self.Z is not None and inverse.width == self.Z.shape[1] else None
        self.fit.inverse, self.fit.spectrum = inverse, spectrum
        self.Z = self._whiten(out)
        self._begin(W, bias)

    def undo_divergence(self):
        """Go on from the weights last published, with half the step, where these overflowed."""
        if self.weights is None:
            return
        lost = not self.weights.finite()
        if lost:
            self.halvings += 1
            W, bias = self._published() or (self.W, self.bias)
            self.weights = self._starting(W, bias)
        self.fit.diverged[:] = lost

    def _keep(self, mean=None):
        """Keep the weights, if they are finite, times the factor that suits them, to be those of the fit once they
        are asked for; ``mean``: if known."""
        kept = self.weights.mean(self.fit.inverse, copy=False) if mean is None else mean
        if kept.finite():
            self.kept = None                     # let go of first: `keep_weights` would keep these, were this the end
            self.kept = (kept.apart_from(self.weights) if self.factor == 1 else kept.times(self.factor),
                         self.fit.inverse)

    def _join(self, n_passes):
        """Keep the mean of the weights kept and of the last ones, after ``n_passes``, each counted by its passes.

        All are as large as those kept, whose size suits the rows held out.
        """
        (kept, inverse), last = self.kept, self.weights
        size = last.size(inverse)
        if last.finite() and size > 0:
            last.join(kept, kept.size(inverse) / size, n_passes / (n_passes + self.best[1]))
            self.kept = last.mean(inverse, copy=False), inverse

    def _published(self):
        """(W, bias) of the weights kept, stored in the fit; None where none were."""
        if self.kept is None:
            return None
        weights, inverse = self.kept
        W, bias = weights.linear(inverse)
        if all_finite(W.reshape(-1)) and all_finite(bias):
            self.fit.W, self.fit.bias = self._problems(W), self._problems(bias)
        return W, bias

    def keep_weights(self):
        """The weights of an end inside a pass: the last ones of a plain sweep, else those that were best."""
        if self.weights is not None and (self.sweep == "plain" or self.kept is None):
            self._keep()
        self.weights = self.passes_over = self.Z = None      # let go of before W is made
        self._published()

    def _record(self, sums, step):
        loss, wrong, weight, visits = sums
        self._enter(loss / weight, wrong / weight, step, visits)

    def _settled(self):
        """Whether the risk met on the way fell by less than tol ln(n_classes)."""
        risks, tol = self.fit.history["objective"], self.settings.tol
        return tol is not None and len(risks) > 1 and risks[-2] - risks[-1] < tol * np.log(self.n_classes)
