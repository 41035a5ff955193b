"""The step of the stochastic passes: trials of `next_trial` on a small random subset, judged on rows held out."""

from itertools import pairwise

import numpy as np

from cmargin._core.sgd import _class_pass, _class_sgd
from cmargin._core.util._sampling import shuffle
from cmargin._runtime.workspace import aligned_rows
from cmargin.solvers import cost
from cmargin.solvers.per_class import STEP_OVERHEAD, class_streams, worthwhile_threads
from cmargin.solvers.sgd.class_weights import ClassWeights
from cmargin.solvers.sgd.trials import trials
from cmargin.solvers.slnd_plan import TrialStats, chosen_by_trials


def able(n_positives, n_negatives):
    """Classes with rows to spare."""
    return np.flatnonzero((n_positives >= 4) & (n_negatives >= 4))


def split(lists, rng, among=None):
    """Draw visits to train on, and visits to be held out, of a few classes with rows to spare, ``among`` some if given.

    Returns
    -------
    classes : list of int
    kept, held_out : lists over classes of int64 arrays
    """
    there = able(lists.n_positives, lists.n_negatives)
    there = there if among is None else np.intersect1d(there, among)
    classes = sorted(rng.permutation(there)[:cost.TRIAL_CLASSES].tolist())
    kept, held_out = [], []
    taken = np.zeros((1, lists.n_rows), np.uint8)
    for c, stream in zip(classes, class_streams(int(rng.integers(1 << 62)), len(classes)), strict=True):
        rows = lists.rows_of(c)
        n_positives = min(len(rows), cost.TRIAL_POSITIVES)
        n_negatives = round(lists.n_negatives[c] * n_positives / len(rows))
        n_negatives = min(max(4, min(n_negatives, cost.TRIAL_NEGATIVES)), lists.n_rows - len(rows))
        ends = np.array([0, len(rows), len(rows) + n_negatives], np.int64)
        visits = np.empty(ends[2], np.int64)
        _class_sgd.draw_lists(rows, ends[:2], ends[2:] - ends[1:2], stream[None], taken, 0, ends[::2].copy(), visits, 1)
        positive = visits >= 0
        positives, negatives = visits[positive][:n_positives], visits[~positive]
        p, q = n_positives // 4, n_negatives // 4
        held_out.append(np.concatenate([positives[:p], negatives[:q]]))
        kept.append(np.concatenate([positives[p:], negatives[q:]]))
    return classes, kept, held_out


def by_place(drawn):
    """The rows that are ``drawn``, ascending, and the same visits by their places among these."""
    classes, *visits = drawn
    every = np.concatenate([np.empty(0, np.int64), *visits[0], *visits[1]])
    rows = np.unique(np.where(every < 0, -1 - every, every))

    def placed(part):
        return np.where(part < 0, -1 - np.searchsorted(rows, -1 - part), np.searchsorted(rows, part))

    return rows, (classes, *([placed(part) for part in parts] for parts in visits))


def ends_of(parts):
    """(len(parts) + 1,) where each begins and ends when they are put one behind the other."""
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


class Trial:
    """Held-out risk after a few passes over a subset, for any step."""

    def __init__(self, passes, Z, inverse, drawn, start_bias, bias_rate, scale, rng):
        """``drawn``: as of `split`."""
        self.passes, self.Z, self.inverse, self.bias_rate = passes, Z, inverse, bias_rate
        classes, kept, held_out = drawn
        self.n_classes = len(classes)
        self.start_bias, self.scale = start_bias[classes], scale[classes] if len(scale) > 1 else scale
        if classes:
            self._draw_passes(kept, class_streams(int(rng.integers(1 << 62)), 1)[0])
            self.held, self.held_offsets = np.concatenate(held_out), ends_of(held_out)

    def _draw_passes(self, kept, stream):
        """The visits of all classes of every pass, one class behind the other, each in a random order."""
        self.offsets = ends_of(kept)
        self.longest = int(np.diff(self.offsets).max())
        self.passes_drawn, visits = [], np.concatenate(kept)
        for _ in range(cost.CLASS_TRIAL_PASSES):
            visits = visits.copy()
            for first, last in pairwise(self.offsets):
                shuffle(visits[first:last], stream)
            self.passes_drawn.append(visits)
        self.threads = worthwhile_threads(self.passes.source.n_threads,
                                          self.offsets[-1] * (self.Z.shape[1] + STEP_OVERHEAD))
        self.work = aligned_rows((self.threads, 2, self.Z.shape[1]), self.Z.dtype)

    def trained(self, relative):
        """(W, bias) after the trial passes at a relative step."""
        weights = ClassWeights.start(self.inverse, self.n_classes, self.Z.dtype, True, bias=self.start_bias)
        by = weights.as_weights_of(self.passes.pass_into(np.zeros((self.n_classes, 3))), self.inverse, self.bias_rate)
        for n, visits in enumerate(self.passes_drawn, 1):
            step = np.full(self.n_classes, 1.0) * relative / self.scale / n
            _class_sgd.run_steps(by, _class_pass.Visits(0, self.offsets, visits), 0, self.longest, step, self.Z,
                                 self.work, self.threads)
        return weights.linear(self.inverse)

    def losses(self, relative):
        """Weighted loss of every held-out visit under the running mean, at a relative step; inf on overflow."""
        (W, bias), losses = self.trained(relative), np.empty(len(self.held))
        _class_sgd.visit_losses(self.passes.source.rows, W, bias, self.held_offsets, self.held, self.passes.row_weight,
                                self.passes.loss, np.empty(W.shape[1], W.dtype), losses)
        return losses


def automatic_step(trial, late=lambda: False, note=None, rank=None):
    """Smallest relative step whose held-out risk is within a tolerance of the best.

    A longer step is taken where the risk falls, a shorter one where it stays within one standard error of the best: a
    longer step than needed only moves the weights further, and what it gains in risk it loses in ranking the classes
    (doc/lab-notebook). The standard error is that of 2,000 held-out visits where there are fewer, so that a few
    dozen rows do not excuse a poor fit. Deterministic for a given ``random_state``, unless ``late()``: then no further
    step is tried.
    """
    problem = TrialStats(False, trial.n_classes > 0, rank)
    judges = {"longer_step": lambda losses, best: losses.mean() < best.mean(),
              "shorter_step": lambda losses, best: losses.mean() <= best.mean() + standard_error(best)}
    found = trials(problem, lambda stage: trial.losses(stage.step), judges, late, note)
    return chosen_by_trials(problem, found)[1]


def standard_error(losses):
    """Standard error of the mean loss, as it would be with 2,000 visits where there are fewer."""
    if not np.all(np.isfinite(losses)):
        return 0.0
    return losses.std() / np.sqrt(max(len(losses), cost.TRIAL_VISITS))
