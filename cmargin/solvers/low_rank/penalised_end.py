"""The penalised optimum of a fit of few numbers, of the strengths that rows left out ask for (ours).

    P(U, b) = (1/N) sum_i s_i [ln sum_c exp(h_c(z_i)) - h_{y_i}(z_i)] + (l2/2) |U|^2,   h_c(z) = <u_c, z> + b_c

over whitened rows, so that l2 means the same whatever the columns' scales: l2 = (mean z'z / width) / (C N), which is
LogisticRegression's C for rows whose entries have mean square 1. Passes of a few thousand rows over a table of
correlated columns end long before its narrow directions are learnt; Newton steps do not care. C grows from strong
penalties to weak ones, each optimum the start of the next, until the log-loss of rows left out surely rises: some
hundred cannot tell the best, so that others are left out in their turn, and all of them choose. One thread: products of
so few numbers are over before two have met.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cmargin._runtime.clock import TimeUp
from cmargin.homes.open import open_rows
from cmargin.solvers.low_rank.multinomial_choice import surely_worse
from cmargin.solvers.low_rank.softmax_weights import SoftmaxWeights
from cmargin.solvers.newton.multinomial_newton import Optima, Settings

FOLDS, JUDGED = 5, 2000    # parts of the rows left out in turn, as few as have so many rows
MOST_FLOPS = 3e7           # of a product with all rows: with more a path takes longer than the passes, and they do well
NO_PART = 0, 0
FIRST_C, RATIO, MOST = 10**-1.5, 10**0.5, 10  # up to C = 1,000
ALIKE = 2.0                # standard errors of log-loss within which errors choose (doc/decisions.md)
ROUGH = 0.03               # relative gap of an optimum; 0.1 loses a little, 0.01 gains nothing (doc/decisions.md)


def worth_trying(n, inverse, n_classes):
    """Whether a path over n rows is cheap, and whitened rows are all there is of them."""
    return not inverse.tail_inverse[0] > 0 and 4.0 * n * inverse.width * n_classes <= MOST_FLOPS


def parts_left_out(n, n_held):
    """Runs of rows that are left out in turn, the last ``n_held`` first."""
    count = min(FOLDS, -(-JUDGED // n_held), n // n_held)
    return [(n - (k + 1) * n_held, n - k * n_held) for k in range(count)]


@dataclass
class Problem:
    """Whitened rows and what they are to be, in the order of the passes.

    Parameters
    ----------
    Z : (n, width) array
    truth : (n,) int64 array
    weight : (n,) float64 array, or (0,) for ones
    n_classes : int
    mean_square : float
        Mean of z'z.
    intercept : bool
    stride : int
        Of the weights' mean, as `SoftmaxWeights` has it.
    deadline : float or None
    """

    Z: np.ndarray
    truth: np.ndarray
    weight: np.ndarray
    n_classes: int
    mean_square: float
    intercept: bool
    stride: int
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

    def optimum(self, C):
        """(U, b); and reads of all rows."""
        of = self.problem
        l2 = of.l2(C, len(self.rows))
        if self.optima is None:
            settings = Settings(l2, ROUGH, of.intercept, certified=len(self.rows) == len(of.Z), deadline=of.deadline)
            self.optima = Optima(open_rows(self.rows), self.truth, self.weight if len(self.weight) else None,
                                 of.n_classes, settings, self.start)
            result, interruption = self.optima.found()
        else:
            result, interruption = self.optima.at(l2)
        if interruption is not None:
            raise interruption.taken()
        if result.stopped == "max_time":
            raise TimeUp
        return (result.W, result.bias), result.reads * len(self.rows) / len(of.Z)


def best_strength(problem, parts, judged):
    """The C that rows left out prefer: with the fewest errors of those whose log-loss is about the least.

    Parameters
    ----------
    problem : Problem
    parts : list of (int, int)
        Runs of rows to be left out, each to be judged by the optimum of the others.
    judged : callable
        ``judged(weights, lo, hi)``: (2, hi - lo) log-losses and errors of a run of rows.

    Returns
    -------
    C : float
    point : (U, b)
        The optimum of all rows but the first part,
    losses : array
        and what the rows of that part lose by it.
    reads : float
    """
    rests, path, reads = [problem.without(part) for part in parts], [], 0.0
    for C in FIRST_C * RATIO ** np.arange(MOST):
        points, found = [], []
        for rest, part in zip(rests, parts, strict=True):
            point, spent = rest.optimum(C)
            points.append(point)
            reads += spent
            found.append(judged(problem.weights(point), *part)[:, problem.learnt(part)])
        path.append((C, points[0], found[0][0], *np.concatenate(found, axis=1)))
        least = min((losses for *_, losses, _ in path), key=np.mean)
        if surely_worse(path[-1][3], least):
            break
    good = [stop for stop in path if not surely_worse(stop[3], least, ALIKE)]
    chosen = min(good, key=lambda stop: (stop[4].mean(), stop[3].mean()))
    return *chosen[:3], reads
