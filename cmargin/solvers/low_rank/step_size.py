"""The step of the stochastic passes: doubling and halving on a small random subset, judged on rows held out."""

import numpy as np

from cmargin._core.losses._losses import evaluate
from cmargin._core.stochastic import _class_sgd
from cmargin._workspace import aligned_rows
from cmargin.solvers.low_rank.class_passes import STEP_OVERHEAD, worthwhile_threads
from cmargin.solvers.low_rank.class_weights import ClassWeights

# Measured on two image sets (doc/decisions.md, "Automatic step")
FALLBACK = 0.1  # the step where no class has rows to spare
SMALLEST, LARGEST = 0.0125, 6.4
TRIAL_CLASSES, TRIAL_POSITIVES, TRIAL_NEGATIVES = 8, 256, 2304
TRIAL_PASSES = 5
TRIAL_VISITS = 2000


def split(lists, rng):
    """Draw (training visits of every trial pass, held-out visits) of a few classes with rows to spare.

    Returns
    -------
    classes : list of int
    training : list over passes of lists over classes of int64 arrays
    held_out : list over classes of int64 arrays
    """
    able = np.flatnonzero((lists.n_positives >= 4) & (lists.n_negatives >= 4))
    classes = sorted(rng.permutation(able)[:TRIAL_CLASSES].tolist())
    kept, held_out = [], []
    for c in classes:
        positives = rng.permutation(lists.rows_of(c))[:TRIAL_POSITIVES]
        n_negatives = round(lists.n_negatives[c] * len(positives) / lists.n_positives[c])
        n_negatives = max(4, min(n_negatives, TRIAL_NEGATIVES))
        others = np.setdiff1d(rng.permutation(lists.n_rows)[: 2 * n_negatives + 8 * len(positives)], lists.rows_of(c))
        negatives = rng.permutation(others if len(others) >= 4 else outside(lists, c))[:n_negatives]
        p, q = len(positives) // 4, len(negatives) // 4
        held_out.append(np.concatenate([positives[:p], -1 - negatives[:q]]))
        kept.append(np.concatenate([positives[p:], -1 - negatives[q:]]))
    training = [[rng.permutation(visits) for visits in kept] for _ in range(TRIAL_PASSES)]
    return classes, training, held_out


def outside(lists, c):
    """Rows that are not of class ``c``."""
    return np.setdiff1d(np.arange(lists.n_rows), lists.rows_of(c))


class Trial:
    """Held-out risk after a few passes over a subset, for any step."""

    def __init__(self, passes, Z, inverse, lists, start_bias, bias_rate, scale, rng):
        self.passes, self.Z, self.inverse, self.bias_rate = passes, Z, inverse, float(bias_rate[0])
        classes, self.training, self.held_out = split(lists, rng)
        self.n_classes = len(classes)
        self.start_bias, self.scale = start_bias[classes], scale[classes] if len(scale) > 1 else scale

    def _run(self, visit_lists, weights, step):
        offsets = np.concatenate([[0], np.cumsum([len(v) for v in visit_lists])]).astype(np.int64)
        sums, threads = np.zeros((self.n_classes, 3)), self.passes.home.n_threads
        threads = worthwhile_threads(threads, offsets[-1] * (self.Z.shape[1] + STEP_OVERHEAD))
        work = aligned_rows((threads, 2, self.Z.shape[1]), self.Z.dtype)
        _class_sgd.run_steps(
            self.passes.home.rows, self.Z, self.passes.row_weight, 0, offsets, np.concatenate(visit_lists), 0,
            int(np.diff(offsets).max()), self.passes.loss, step, self.bias_rate, self.inverse.low_sign,
            float(self.inverse.tail_inverse[0]), weights.U, weights.U_mean, weights.V, weights.V_lag, weights.bias,
            weights.n_steps, sums, work, threads)

    def trained(self, relative):
        """(W, bias) after the trial passes at a relative step."""
        weights = ClassWeights.start(self.inverse, self.n_classes, self.Z.dtype, True, bias=self.start_bias)
        for number, lists in enumerate(self.training, 1):
            self._run(lists, weights, np.full(self.n_classes, 1.0) * relative / self.scale / number)
        return weights.linear(self.inverse)

    def losses(self, relative):
        """Weighted loss of every held-out visit under the running mean, at a relative step; inf on overflow."""
        home, (W, bias) = self.passes.home, self.trained(relative)
        parts = []
        for c, visits in enumerate(self.held_out):
            rows = np.where(visits >= 0, visits, -1 - visits)
            margins = home.scores(W[c : c + 1], bias[c : c + 1], rows).ravel() * np.where(visits >= 0, 1.0, -1.0)
            value, slope, curvature = np.empty((3, len(rows)))
            evaluate(self.passes.loss, np.ascontiguousarray(margins), value, slope, curvature)
            parts.append(value * self.passes.row_weight[rows] if len(self.passes.row_weight) else value)
        losses = np.concatenate(parts)
        return np.where(np.isfinite(losses), losses, np.inf)


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
