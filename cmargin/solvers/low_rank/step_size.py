"""The step of the stochastic passes: doubling and halving on a small random subset, judged on rows held out."""

from itertools import pairwise

import numpy as np

from cmargin._core.losses._losses import evaluate
from cmargin._core.small._sampling import shuffle
from cmargin._core.stochastic import _class_sgd
from cmargin._workspace import aligned_rows
from cmargin.solvers.low_rank.class_passes import STEP_OVERHEAD, class_streams, worthwhile_threads
from cmargin.solvers.low_rank.class_weights import ClassWeights

# Measured on two image sets (doc/decisions.md, "Automatic step")
FALLBACK = 0.1  # the step where no class has rows to spare
SMALLEST, LARGEST = 0.0125, 6.4
TRIAL_CLASSES, TRIAL_POSITIVES, TRIAL_NEGATIVES = 8, 256, 2304
TRIAL_PASSES = 5
TRIAL_VISITS = 2000


def split(lists, rng):
    """Draw visits to train on, and visits to be held out, of a few classes with rows to spare.

    Returns
    -------
    classes : list of int
    kept, held_out : lists over classes of int64 arrays
    """
    able = np.flatnonzero((lists.n_positives >= 4) & (lists.n_negatives >= 4))
    classes = sorted(rng.permutation(able)[:TRIAL_CLASSES].tolist())
    kept, held_out = [], []
    for c in classes:
        positives = rng.permutation(lists.rows_of(c))[:TRIAL_POSITIVES]
        n_negatives = round(lists.n_negatives[c] * len(positives) / lists.n_positives[c])
        n_negatives = max(4, min(n_negatives, TRIAL_NEGATIVES))
        others = rng.permutation(lists.n_rows)[: 2 * n_negatives + 8 * len(positives)]
        others = np.sort(others[outside(lists, c)[others]])
        if len(others) < 4:
            others = np.flatnonzero(outside(lists, c))
        negatives = rng.permutation(others)[:n_negatives]
        p, q = len(positives) // 4, len(negatives) // 4
        held_out.append(np.concatenate([positives[:p], -1 - negatives[:q]]))
        kept.append(np.concatenate([positives[p:], -1 - negatives[q:]]))
    return classes, kept, held_out


def outside(lists, c):
    """(n_rows,) whether a row is not of class ``c``."""
    out = np.ones(lists.n_rows, bool)
    out[lists.rows_of(c)] = False
    return out


class Trial:
    """Held-out risk after a few passes over a subset, for any step."""

    def __init__(self, passes, Z, inverse, lists, start_bias, bias_rate, scale, rng):
        self.passes, self.Z, self.inverse, self.bias_rate = passes, Z, inverse, float(bias_rate[0])
        classes, kept, held_out = split(lists, rng)
        self.n_classes = len(classes)
        self.start_bias, self.scale = start_bias[classes], scale[classes] if len(scale) > 1 else scale
        if classes:
            self._draw_passes(kept, class_streams(int(rng.integers(1 << 62)), 1)[0])
            self._hold_out(held_out)

    def _draw_passes(self, kept, stream):
        """The visits of all classes of every pass, one class behind the other, each in a random order."""
        self.offsets = np.concatenate([[0], np.cumsum([len(visits) for visits in kept])]).astype(np.int64)
        self.longest = int(np.diff(self.offsets).max())
        self.passes_drawn, visits = [], np.concatenate(kept)
        for _ in range(TRIAL_PASSES):
            visits = visits.copy()
            for first, last in pairwise(self.offsets):
                shuffle(visits[first:last], stream)
            self.passes_drawn.append(visits)
        self.threads = worthwhile_threads(self.passes.home.n_threads,
                                          self.offsets[-1] * (self.Z.shape[1] + STEP_OVERHEAD))
        self.work = aligned_rows((self.threads, 2, self.Z.shape[1]), self.Z.dtype)

    def _hold_out(self, held_out):
        visits, weight = np.concatenate(held_out), self.passes.row_weight
        self.held_rows, self.sign = np.where(visits >= 0, visits, -1 - visits), np.where(visits >= 0, 1.0, -1.0)
        self.held_class = np.repeat(np.arange(self.n_classes), [len(part) for part in held_out])
        self.held_weight = weight[self.held_rows] if len(weight) else 1.0

    def trained(self, relative):
        """(W, bias) after the trial passes at a relative step."""
        weights = ClassWeights.start(self.inverse, self.n_classes, self.Z.dtype, True, bias=self.start_bias)
        sums = np.zeros((self.n_classes, 3))
        for n, visits in enumerate(self.passes_drawn, 1):
            step = np.full(self.n_classes, 1.0) * relative / self.scale / n
            _class_sgd.run_steps(
                self.passes.home.rows, self.Z, self.passes.row_weight, 0, self.offsets, visits, 0, self.longest,
                self.passes.loss, step, self.bias_rate, self.inverse.low_sign, float(self.inverse.tail_inverse[0]),
                weights.U, weights.U_mean, weights.V, weights.V_lag, weights.bias, weights.n_steps, sums, self.work,
                self.threads)
        return weights.linear(self.inverse)

    def losses(self, relative):
        """Weighted loss of every held-out visit under the running mean, at a relative step; inf on overflow."""
        W, bias = self.trained(relative)
        scores = self.passes.home.scores(W, bias, self.held_rows)
        margins = self.sign * scores[np.arange(len(scores)), self.held_class]
        value, slope, curvature = np.empty((3, len(margins)))
        evaluate(self.passes.loss, margins, value, slope, curvature)
        value *= self.held_weight
        value[~np.isfinite(value)] = np.inf
        return value


def automatic_step(trial):
    """Smallest relative step whose held-out risk is within a tolerance of the best.

    Doubles from 0.1 while the risk falls, then halves while it stays within one standard error of the best: a longer
    step than needed only moves the weights further, and what it gains in risk it loses in ranking the classes
    (doc/decisions.md). The standard error is that of 2,000 held-out visits where there are fewer, so that a few
    dozen rows do not excuse a poor fit. Deterministic for a given ``random_state``.
    """
    if trial.n_classes == 0:
        return FALLBACK
    step, best = FALLBACK, trial.losses(FALLBACK)
    while step < LARGEST:
        losses = trial.losses(2 * step)
        if not losses.mean() < best.mean():
            break
        step, best = 2 * step, losses
    while step > SMALLEST:
        losses = trial.losses(step / 2)
        if not losses.mean() <= best.mean() + standard_error(best):
            break
        step /= 2
        if losses.mean() < best.mean():
            best = losses
    return step


def standard_error(losses):
    """Standard error of the mean loss, as it would be with TRIAL_VISITS visits where there are fewer."""
    if not np.all(np.isfinite(losses)):
        return 0.0
    return losses.std() / np.sqrt(max(len(losses), TRIAL_VISITS))
