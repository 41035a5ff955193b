"""Rank and step of the multinomial passes: short trials on some of the rows, judged by log-loss on rows held out.

The multinomial risk is a proper score of the very model that predicts. Where two steps cannot be told apart by it, the
smaller is taken: it ranks the classes better (doc/decisions.md).
"""

import math
from dataclasses import replace

import numpy as np

from cmargin._core.small._arrays import all_finite, difference_moments
from cmargin._core.small._sampling import held_last
from cmargin._runtime.aligned import contiguous
from cmargin.solvers.low_rank.softmax_passes import SoftmaxPasses
from cmargin.solvers.low_rank.softmax_weights import SoftmaxWeights

# Measured on five sets (doc/decisions.md, "Rank, step and passes")
HELD_SHARE, HELD_MOST, HELD_LEAST = 0.2, 2000, 20
TRIAL_ROWS, TRIAL_PASSES = 4096, 2
FIRST_STEP, SMALLEST, LARGEST = 2.0, 1 / 64, 16.0
LOW_RANK = 1               # tried beside the knee
FALL = 0.75                # the step falls as one over this power of the pass
MEAN_STRIDE = 4            # every fourth batch is a sample of the mean
DENSE_BATCH, SPARSE_BATCH, SMALL_BATCH, LEAST_BATCH = 128, 16, 16, 2
BATCHES, FEW_BATCHES = 128, 64     # of a pass; smaller sets take smaller batches, below SMALL_BATCH for the few only


def batch_size(n_rows, sparse):
    """Rows of a batch, a power of two: as many as a BLAS wants, fewer where a pass would be only a few batches."""
    size = SPARSE_BATCH if sparse else DENSE_BATCH
    while size > LEAST_BATCH and n_rows < (BATCHES if size > SMALL_BATCH else FEW_BATCHES) * size:
        size //= 2
    return size


def split_order(truth, n_classes, rng, n_all=None):
    """A random order of the rows that ends with those held out, and how many those are.

    Of every class about the same share, HELD_SHARE or what gives HELD_MOST rows, and never more than a quarter: a class
    of one row is trained on. ``n_all``: how many rows there are where these are a part of them.
    """
    n = len(truth)
    order = rng.permutation(n).astype(np.int64)
    counts = np.bincount(truth, minlength=n_classes)
    share = min(HELD_SHARE, HELD_MOST / max(1, n if n_all is None else n_all))
    wanted = np.minimum(np.floor(counts * share + rng.random(n_classes)), counts // 4).astype(np.int64)
    n_held = int(wanted.sum())
    if n_held < HELD_LEAST and n_all is None:
        return order, 0
    return held_last(order, truth, wanted), n_held


def of_rank(home, inverse, rank, subset, weight):
    """The inverse of the ``rank`` leading pairs of ``inverse``, its tail scaled by the next eigenvalue."""
    lower = replace(inverse, eigenvectors=np.ascontiguousarray(inverse.eigenvectors[:, :, :rank]),
                    eigenvalues=inverse.eigenvalues[:, :rank], tail_eigenvalue=inverse.eigenvalues[:, rank])
    lower.mean_square = home.mean_square(lower, subset, weight)
    return lower


class Trial:
    """Held-out log-loss after TRIAL_PASSES over some rows, for any inverse and relative step.

    Parameters
    ----------
    home : StochasticRows
    truth : (n_rows,) int64 array
    row_weight : (n_rows,) array or None
    order : (n,) int64 array, n_held : int
        As of `split_order`.
    W, bias : arrays
        Where to start from.
    step_of : callable
        ``step_of(inverse, relative)``: eta of the first pass.
    bias_rate : float
    rng : Generator
    batch : int or None
        Rows of a batch; None: as many as for all rows of ``order``.
    """

    def __init__(self, home, truth, row_weight, order, n_held, W, bias, step_of, bias_rate, rng, batch=None):
        self.n_all = len(order) - n_held         # rows to be trained on
        self.n_train = min(TRIAL_ROWS, self.n_all)
        self.home, self.W, self.bias, self.step_of, self.bias_rate = home, W, bias, step_of, bias_rate
        self.rows = np.concatenate([order[:self.n_train], order[self.n_all:]])
        self.truth = truth[self.rows]
        self.weight = None if row_weight is None else row_weight[self.rows]
        self.batch = batch or batch_size(len(order), home.sparse)
        starts = np.arange(0, self.n_train, self.batch, dtype=np.int64)
        self.batches = np.concatenate([rng.permutation(starts) for _ in range(TRIAL_PASSES)])
        self.held = np.arange(self.n_train, len(self.rows), self.batch, dtype=np.int64)
        self.fall = np.repeat(np.arange(1, TRIAL_PASSES + 1.0) ** -FALL, len(starts))
        self.inverse, self.reads = None, 0.0

    def use(self, inverse):
        """Whiten the trial's rows, and those held out, by ``inverse``."""
        self.inverse = inverse
        Z = self.home.whiten(inverse, self.rows)
        self.passes = SoftmaxPasses(self.home, inverse, Z, self.rows, self.truth, self.weight, len(self.bias),
                                    self.batch)
        self.reads += len(self.rows) / self.home.n_rows

    def losses(self, relative):
        """Weighted log-loss of every held-out row, of the running mean; their mean is the held-out loss."""
        weights = SoftmaxWeights.start(self.inverse, self.W, self.bias, True, MEAN_STRIDE)
        self.passes.run(weights, self.batches, self.step_of(self.inverse, relative) * self.fall, self.bias_rate,
                        self.n_train, self.held)
        n, last = self.n_train, len(self.rows)
        self.reads += (TRIAL_PASSES * n + last - n) / self.home.n_rows
        return self.passes.losses(weights, self.held, last) * ((last - n) / self.passes.weight_of(n, last))


def surely_worse(losses, best, errors=1.0):
    """Whether the mean of ``losses`` is above ``best``'s by more than so many standard errors of the difference."""
    losses, best = contiguous(losses, float), contiguous(best, float)
    mean, spread = difference_moments(losses, best)
    if not math.isfinite(mean):
        return all_finite(best)
    return mean > errors * spread / math.sqrt(len(best))


def automatic_rank(trial, inverses, step):
    """The first of ``inverses`` unless the held-out loss of a later one is surely less; by one relative step."""
    chosen, best = None, None
    for inverse in inverses:
        trial.use(inverse)
        losses = trial.losses(step)
        if best is None or surely_worse(best, losses):
            chosen, best = inverse, losses
    if chosen is not trial.inverse:
        trial.use(chosen)
    return chosen, best


def automatic_step(trial, at_first):
    """Relative step for passes over ``trial.n_all`` rows.

    From FIRST_STEP, whose losses are ``at_first``, it is doubled while the held-out loss surely falls, then halved
    while the loss does not surely rise. More rows than the trial's mean more steps, which want to be shorter: by the
    fourth root of the ratio.
    """
    step, best = FIRST_STEP, at_first
    while step < LARGEST:
        losses = trial.losses(2 * step)
        if not surely_worse(best, losses):
            break
        step, best = 2 * step, losses
    while step > SMALLEST:
        losses = trial.losses(step / 2)
        if surely_worse(losses, best):
            break
        step /= 2
        if losses.mean() < best.mean():
            best = losses
    return step * (trial.n_train / trial.n_all)**0.25
