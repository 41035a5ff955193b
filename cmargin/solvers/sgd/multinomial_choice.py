"""Rank and step of the multinomial passes: short trials on some of the rows, judged by log-loss on rows held out.

The multinomial risk is a proper score of the very model that predicts. Each trial is judged at the one factor on its
scores that suits the rows held out (`held_out`), since a long step would win by larger scores alone. Where two steps
cannot be told apart, the smaller is taken: it ranks the classes better (doc/lab-notebook).
"""

from dataclasses import replace

import numpy as np

from cmargin._core.util._arrays import total
from cmargin._core.util._sampling import held_last
from cmargin.solvers import cost
from cmargin.solvers.sgd.held_out import best_factor, n_folds, surely_worse
from cmargin.solvers.sgd.softmax_passes import SoftmaxPasses
from cmargin.solvers.sgd.softmax_weights import SoftmaxWeights
from cmargin.solvers.sgd.trials import trials
from cmargin.solvers.slnd_plan import chosen_by_trials, ranks_to_try

FALL = 0.75                # the step falls as one over this power of the pass
MEAN_STRIDE = 4            # every fourth batch is a sample of the mean


def batch_size(n_rows, sparse):
    """Rows of a batch, a power of two: as many as a BLAS wants, fewer where a pass would be only a few batches."""
    size = cost.SPARSE_BATCH if sparse else cost.DENSE_BATCH
    while size > cost.LEAST_BATCH:
        if n_rows >= cost.BATCHES_OF_A_PASS[size <= cost.SPARSE_BATCH] * size:
            break
        size //= 2
    return size


def walkers(n_rows, n_classes, sparse):
    """How many walkers side by side take the passes; 1: batches follow each other."""
    most_classes, _, _ = cost.WALKER_SIZES
    if sparse or n_classes > most_classes:
        return 1
    return max([number for rows, number in cost.WALKERS.items() if n_rows >= rows], default=1)


def split_order(truth, n_classes, rng, n_all=None):
    """A random order of the rows that ends with those held out, and how many those are.

    Of every class about the same share, a fifth or what gives 2,000 rows, and never more than a quarter: a class of one
    row is trained on. ``n_all``: how many rows there are where these are a part of them.
    """
    n = len(truth)
    order = rng.permutation(n).astype(np.int64, copy=False)
    counts = np.bincount(truth, minlength=n_classes)
    share = min(cost.HELD_SHARE, cost.HELD_MOST / max(1, n if n_all is None else n_all))
    wanted = np.minimum(np.floor(counts * share + rng.random(n_classes)), counts // 4).astype(np.int64)
    n_held = int(wanted.sum())
    if n_held < cost.HELD_LEAST and n_all is None:
        return order, 0
    return held_last(order, truth, wanted), n_held


def trial_rows(n_classes):
    """Rows that a trial is trained on, where there are so many."""
    return max(cost.TRIAL_ROWS, cost.TRIAL_ROWS_PER_CLASS * n_classes)


def of_rank(source, inverse, rank, subset, weight):
    """The inverse of the ``rank`` leading pairs of ``inverse``, its tail scaled by the next eigenvalue."""
    lower = replace(inverse, eigenvectors=np.ascontiguousarray(inverse.eigenvectors[:, :, :rank]),
                    eigenvalues=inverse.eigenvalues[:, :rank], tail_eigenvalue=inverse.eigenvalues[:, rank])
    lower.mean_square = source.mean_square(lower, subset, weight)
    return lower


class Trial:
    """Held-out log-loss after a few passes over some rows, for any inverse and relative step.

    Few rows held out cannot tell steps apart: others are then held out in their stead, in a few splits, until there are
    enough of them (`cmargin.solvers.cost`).

    Parameters
    ----------
    source : StochasticRows
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

    def __init__(self, source, truth, row_weight, order, n_held, W, bias, step_of, bias_rate, rng, batch=None):
        self.n_all = len(order) - n_held         # rows to be trained on
        self.n_train = min(trial_rows(len(bias)), self.n_all)
        self.source, self.W, self.bias, self.step_of, self.bias_rate = source, W, bias, step_of, bias_rate
        self.rows = np.concatenate([order[:self.n_train], order[self.n_all:]])
        self.truth = truth[self.rows]
        self.weight = None if row_weight is None else row_weight[self.rows]
        self.batch = batch or batch_size(len(order), source.sparse)
        splits = [(np.arange(len(self.rows)), n_held)]
        if self.n_train == self.n_all:
            more = min(n_folds(), -(-cost.TRIAL_JUDGED // n_held)) - 1
            splits += [split_order(self.truth, len(bias), rng, len(order)) for _ in range(more)]
        self.splits = [Split(at, len(at) - n, self.batch, rng) for at, n in splits if n]
        self.inverse, self.reads = None, 0.0

    def use(self, inverse):
        """Whiten the trial's rows, and those held out, by ``inverse``, unless they are."""
        if inverse is self.inverse:
            return
        self.inverse = inverse
        Z = self.source.whiten(inverse, self.rows)
        for k, one in enumerate(self.splits):
            at, weight = one.at, None if self.weight is None else self.weight[one.at]
            one.passes = SoftmaxPasses(self.source, inverse, Z[at] if k else Z, self.rows[at], self.truth[at], weight,
                                       len(self.bias), self.batch)
        self.reads += len(self.rows) / self.source.n_rows

    def losses(self, relative):
        """Weighted log-loss of every held-out row, of the running mean at the factor that suits all of them; the mean
        is the held-out loss."""
        step = self.step_of(self.inverse, relative)
        scores = np.concatenate([self._scores(one, step) for one in self.splits])
        truth = np.concatenate([one.passes.truth[one.n_train:] for one in self.splits])
        weight = np.concatenate([one.passes.weight[one.n_train:] for one in self.splits])
        _, losses, _ = best_factor(scores, truth, weight)
        return losses if not len(weight) else losses * (len(weight) / total(weight))

    def _scores(self, split, step):
        """Of the rows that a split holds out, by the running mean."""
        n, last = split.n_train, len(split.at)
        weights = SoftmaxWeights.start(self.inverse, self.W, self.bias, True, MEAN_STRIDE)
        split.passes.run(weights, split.batches, step * split.fall, self.bias_rate, n, split.held)
        self.reads += (cost.TRIAL_PASSES * n + last - n) / self.source.n_rows
        return split.passes.scores(weights, split.held, last)


class Split:
    """The rows of a `Trial` in an order ``at`` of their own, the first ``n_train`` to be trained on.

    ``passes`` over them are made for an inverse.
    """

    passes: SoftmaxPasses

    def __init__(self, at, n_train, batch, rng):
        self.at, self.n_train = at, n_train
        starts = np.arange(0, n_train, batch, dtype=np.int64)
        self.batches = np.concatenate([rng.permutation(starts) for _ in range(cost.TRIAL_PASSES)])
        self.held = np.arange(n_train, len(at), batch, dtype=np.int64)
        self.fall = np.repeat(np.arange(1, cost.TRIAL_PASSES + 1.0) ** -FALL, len(starts))


def choose(trial, problem, inverses, note=None):
    """The inverse and the relative step for passes over ``trial.n_all`` rows, by the trials of `next_trial`.

    Another rank, or a longer step, is taken where the held-out loss is surely less; a shorter step where it is not
    larger. That it must surely be less would lead to the shortest steps, which all go along the first gradient: at the
    best factor few rows cannot tell what that loses. More rows than the trial's mean more steps, which want to be
    shorter: by the fourth root of the ratio.

    Parameters
    ----------
    trial : Trial
    problem : TrialStats
    inverses : list of LowRankInverse, for the ranks of `ranks_to_try`
    note : callable or None, called with every trial
    """
    of_rank = dict(zip(ranks_to_try(problem), inverses, strict=True))
    judges = {"rank": lambda losses, best: surely_worse(best, losses),
              "longer_step": lambda losses, best: surely_worse(best, losses, cost.STEP_STANDARD_ERRORS),
              "shorter_step": lambda losses, best: losses.mean() <= best.mean()}

    def losses_of(stage):
        trial.use(of_rank[stage.rank])
        return trial.losses(stage.step)

    rank, step = chosen_by_trials(problem, trials(problem, losses_of, judges, note=note))
    return of_rank[rank], step if problem.step is not None else step * (trial.n_train / trial.n_all)**0.25
