"""The penalised optimum of a fit of few numbers, of the strengths that rows left out ask for (ours).

    P(U, b) = (1/N) sum_i s_i [ln sum_c exp(h_c(z_i)) - h_{y_i}(z_i)] + (l2/2) |U|^2,   h_c(z) = <u_c, z> + b_c

over whitened rows, so that l2 means the same whatever the columns' scales: l2 = (mean z'z / width) / (C N), which is
LogisticRegression's C for rows whose entries have mean square 1. Passes over a few thousand rows end long before the
narrow directions of correlated columns are learnt; Newton steps do not care. The path of strengths begins at the one
whose optimum the weights of the passes are nearest, and goes on to weaker penalties, else to stronger ones, each
optimum the start of the next, while the log-loss of rows left out falls: some hundred cannot tell the best, so that
others are left out in their turn where products are cheap, and all of them choose. One thread: products of so few
numbers are over before two have met.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.clock import TimeUp
from cmargin.data.open import open_rows
from cmargin.solvers import cost
from cmargin.solvers.multinomial.newton import Optima, Settings
from cmargin.solvers.sgd.held_out import best_factor, n_folds, sure_factor, surely_worse
from cmargin.solvers.sgd.softmax_weights import SoftmaxWeights

FEW_C = 0.01               # where a path begins without passes; the strength where it is dear, or nothing is left out
NO_PART = 0, 0
C_LIMITS, RATIO = (1e-3, 1e3), 10**0.5
GAIN = 0.01                # share of the log-loss of rows left out that another strength lowers
LOOSE_GAP = 0.03           # relative gap of an optimum; 0.1 loses a little, 0.01 gains nothing (doc/lab-notebook)


def strength_of_few(problem):
    """The `Strength` for rows too few to hold any out for passes, and reads: by a fifth left out in turn.

    Where each class has one row, no row is of a class that has others; then it is FEW_C.
    """
    n = len(problem.Z)
    parts = parts_left_out(n, max(1, n // n_folds()))
    n_judged = sum(np.count_nonzero(problem.learnt(part)) for part in parts)
    if n_judged < cost.HELD_LEAST or problem.is_dear:
        nothing = np.zeros(0)
        return Strength(FEW_C, None, nothing, nothing, 1.0, nothing), 0.0
    return best_strength(problem, parts, [problem.without(part) for part in parts], FEW_C)


def strength_beside_passes(problem, parts, start, losses):
    """The `Strength` for rows whose passes ended at ``start``, a pair (U, b), or None where they do better; and reads.

    ``losses`` (n,) are those of the first part's rows after the passes, at the best factor on the scores. Where
    products are dear, that part judges alone, and there is no other optimum unless the first does better, and none at
    all where the passes ended nearer to no penalty than to any of the path.
    """
    parts = parts[:1] if problem.is_dear else parts
    losses = losses[problem.learnt(parts[0])]
    rests = [problem.without(part) for part in parts]
    C = rests[0].begin_at(start)
    if C > C_LIMITS[1] and problem.is_dear:
        return None, 1.0
    C, spent = C if C <= C_LIMITS[1] else 1.0, 1.0
    if problem.is_dear:
        point, reads = rests[0].optimum(C)
        spent += reads
        if not strength_of(problem, parts, C, [point]).first.mean() < losses.mean():
            return None, spent
    best, reads = best_strength(problem, parts, rests, C)
    return None if surely_worse(best.first, losses) else best, spent + reads


def parts_left_out(n, n_held):
    """Runs of rows that are left out in turn, the last ``n_held`` first, as few as have enough to judge by."""
    count = min(n_folds(), -(-cost.HELD_MOST // n_held), n // n_held)
    return [(n - (k + 1) * n_held, n - k * n_held) for k in range(count)]


@dataclass
class Problem:
    """Whitened rows and what they are to be, in the order of the passes."""

    Z: np.ndarray                  # (n, width)
    truth: np.ndarray              # (n,) int64
    weight: np.ndarray             # (n,) float64, or (0,) for ones
    n_classes: int
    mean_square: float             # mean of z'z
    intercept: bool
    stride: int                    # of the weights' mean, as `SoftmaxWeights` has it
    deadline: float | None

    def without(self, left_out, start=None):
        return Rest(self, left_out, start)

    def l2(self, C, n):
        """Of n rows."""
        return max(self.mean_square, 1e-300) / self.Z.shape[1] / (C * n)

    def learnt(self, left_out):
        """Which rows of a part are of a class that has others."""
        lo, hi = left_out
        return (np.bincount(self.but(left_out)[1], minlength=self.n_classes) > 0)[self.truth[lo:hi]]

    def balanced(self, truth, weight):
        """Weights of a part of the rows by which its classes have the shares that they have of all rows: else the
        intercepts would hold against a class what it lacks, and most of all under strong penalties."""
        here, all_rows = (np.bincount(labels, s if len(s) else None, self.n_classes)
                          for labels, s in ((truth, weight), (self.truth, self.weight)))
        factor = np.divide(all_rows, here, where=here > 0, out=np.ones(self.n_classes))[truth]
        return factor * weight if len(weight) else factor

    @cached_property
    def twice(self):
        return [np.concatenate([rows, rows]) for rows in (self.Z, self.truth, self.weight)]

    def but(self, left_out):
        """Z, truth and weight without one run of the rows: in turn, from the row behind it on, so that none is copied
        for each part."""
        lo, hi = left_out
        n, at_an_end = len(self.Z), lo == 0 or hi == len(self.Z)
        start = hi % n if at_an_end else hi
        rows = (self.Z, self.truth, self.weight) if at_an_end else self.twice
        return [one[start:start + n - (hi - lo)] for one in rows]

    @single_threaded_blas()
    def judged(self, point, lo, hi):
        """Of the rows from ``lo`` to ``hi``: scores (n, n_classes), and errors by weight (n,)."""
        U, bias = point
        dtype, truth = self.Z.dtype, self.truth[lo:hi]
        scores = self.Z[lo:hi] @ U.T.astype(dtype) + bias.astype(dtype)
        weight = self.weight[lo:hi] if len(self.weight) else 1.0
        return scores, weight * (scores[np.arange(hi - lo), truth] < scores.max(axis=1))

    @property
    def is_dear(self):
        """Whether a path takes as long as the passes, or longer, with one part left out."""
        return 4.0 * self.Z.size * self.n_classes > cost.PATH_FLOPS[0]

    def weights(self, point):
        U, bias = point
        dtype = self.Z.dtype
        none = np.empty((0, 0), dtype)
        return SoftmaxWeights(np.ascontiguousarray(U, dtype=dtype), np.empty((0, U.shape[1]), dtype), none, none,
                              np.zeros((0, 3)), np.repeat(bias[:, None], 2, axis=1), self.stride)


class Rest:
    """All rows but the run ``left_out``, at one strength after another, from ``start``.

    An optimum of all rows is certified, and has the best intercepts; those that others are judged by need not be.
    """

    def __init__(self, problem, left_out, start):
        self.problem, self.optima, self.start = problem, None, start
        self.rows, self.truth, self.weight = problem.but(left_out)
        if left_out != NO_PART:
            self.weight = problem.balanced(self.truth, self.weight)

    def optimum(self, C):
        """(U, b); and reads of all rows."""
        of = self.problem
        l2 = of.l2(C, len(self.rows))
        if self.optima is None:
            self._open(l2)
            result, interruption = self.optima.found()
        else:
            result, interruption = self.optima.at(l2)
        if interruption is not None:
            raise interruption.taken()
        if result.stopped == "max_time":
            raise TimeUp
        return (result.W, result.bias), result.reads * len(self.rows) / len(of.Z)

    def _open(self, l2):
        of = self.problem
        settings = Settings(l2, LOOSE_GAP, of.intercept, certified=len(self.rows) == len(of.Z), deadline=of.deadline)
        self.optima = Optima(open_rows(self.rows), self.truth, self.weight if len(self.weight) else None,
                             of.n_classes, settings, self.start)

    def begin_at(self, start):
        """Begin at ``start``; the C whose optimum it is nearest, by a read of the rows.

        An optimum has G + l2 U = 0, G the gradient of the risk; the least squares of that are at l2 = -<U, G> / |U|^2.
        """
        of, self.start = self.problem, start
        self._open(1.0)
        U, G = self.optima.weights_and_gradient()
        slope, square = -np.sum(U * G), np.sum(U**2)
        return max(C_LIMITS[0], square / slope * of.l2(1.0, len(self.rows))) if slope > 0 else math.inf


@dataclass
class Strength:
    """What rows left out say of one strength."""

    C: float
    # (U, b), the optimum of all rows but the first part; None if unknown, or if that part has all rows of a class: from
    # an intercept that keeps a class from being predicted no optimum is found
    point: tuple | None
    # (n,) of rows of all parts whose class has others, each by the optimum of the others, at the best factor on scores
    losses: np.ndarray
    errors: np.ndarray             # (n,) of the same rows, by weight
    factor: float                  # for the scores of the optimum of all rows
    first: np.ndarray              # losses of the first part's rows


def best_strength(problem, parts, rests, first):
    """The `Strength` that rows left out prefer: with the fewest errors of those whose log-loss is about the least.

    ``parts``: runs of rows to be left out, each to be judged by the optimum of its `Rest`, the others; ``first``: the C
    that the path begins with. Returns the reads that it took, too.
    """
    path, reads = {}, 0.0

    def loss(k):
        nonlocal reads
        C = first * RATIO**k
        if k not in path:
            points, spent = zip(*(rest.optimum(C) for rest in rests), strict=True)
            path[k] = strength_of(problem, parts, C, points)
            reads += sum(spent)
        return path[k].losses.mean()

    for way in (1, -1):
        before, k = loss(0), way
        while C_LIMITS[0] <= first * RATIO**k <= C_LIMITS[1] and (now := loss(k)) < (1 - GAIN) * before:
            before, k = now, k + way
        if k != way:
            break
    least = min((one.losses for one in path.values()), key=np.mean)
    good = [one for one in path.values() if not surely_worse(one.losses, least, cost.STEP_STANDARD_ERRORS)]
    return min(good, key=lambda one: (one.errors.mean(), one.losses.mean())), reads


def strength_of(problem, parts, C, points):
    """The `Strength` C by the optimum of each part's others."""
    learnt = [problem.learnt(part) for part in parts]
    found = [[numbers[known] for numbers in problem.judged(point, *part)]
             for point, part, known in zip(points, parts, learnt, strict=True)]
    scores, errors = (np.concatenate(column) for column in zip(*found, strict=True))
    truth, weight = (np.concatenate([rows[lo:hi][known] for (lo, hi), known in zip(parts, learnt, strict=True)])
                     if len(rows) else rows for rows in (problem.truth, problem.weight))
    factor, losses, plain = best_factor(scores, truth, weight)
    whole = len(np.unique(problem.but(parts[0])[1])) == len(np.unique(problem.truth))
    return Strength(C, points[0] if whole else None, losses, errors, sure_factor(factor, losses, plain),
                    losses[:len(found[0][1])])
