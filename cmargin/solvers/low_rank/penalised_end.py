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

import numpy as np

from cmargin._runtime.clock import TimeUp
from cmargin.homes.open import open_rows
from cmargin.solvers.low_rank.multinomial_choice import surely_worse
from cmargin.solvers.low_rank.softmax_weights import SoftmaxWeights
from cmargin.solvers.newton.multinomial_newton import Settings, solve

FOLDS, JUDGED = 5, 2000    # parts of the rows left out in turn, as few as have so many rows
MOST_FLOPS = 3e7           # of a product with all rows: with more a path takes longer than the passes, and they do well
NO_PART = 0, 0
FIRST_C, RATIO, MOST = 0.1, 10**0.5, 9        # up to C = 1,000
ROUGH = 0.03               # relative gap of an optimum; 0.1 loses a little, 0.01 gains nothing (doc/decisions.md)


def worth_trying(Z, inverse, n_classes):
    """Whether a path is cheap, and whitened rows are all there is of the rows."""
    return Z is not None and not inverse.tail_inverse[0] > 0 and 4.0 * Z.size * n_classes <= MOST_FLOPS


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

    def optimum(self, C, left_out, start):
        """Over all rows but the run ``left_out``, from ``start``: (U, b); and reads of all rows."""
        Z, truth, weight = (without(rows, left_out) for rows in (self.Z, self.truth, self.weight))
        l2 = max(self.mean_square, 1e-300) / self.Z.shape[1] / (C * len(Z))
        settings = Settings(l2, ROUGH, self.intercept, deadline=self.deadline, n_threads=1)
        result, interruption = solve(open_rows(Z), truth, weight if len(weight) else None, self.n_classes, settings,
                                     start)
        if interruption is not None:
            raise interruption
        if result.stopped == "max_time":
            raise TimeUp
        return (result.W, result.bias), result.reads * len(Z) / len(self.Z)

    def learnt(self, left_out):
        """Which rows of a part are of a class that has others."""
        lo, hi = left_out
        return (np.bincount(without(self.truth, left_out), minlength=self.n_classes) > 0)[self.truth[lo:hi]]

    def weights(self, point):
        U, bias = point
        dtype = self.Z.dtype
        none = np.empty((0, 0), dtype)
        return SoftmaxWeights(np.ascontiguousarray(U, dtype=dtype), np.empty((0, U.shape[1]), dtype), none, none,
                              np.zeros((0, 3)), np.repeat(bias[:, None], 2, axis=1), self.stride)


def without(rows, left_out):
    """The rows but one run of them; a copy unless that run is at an end."""
    lo, hi = left_out
    if lo == 0:
        return rows[hi:]
    return rows[:lo] if hi == len(rows) else np.concatenate([rows[:lo], rows[hi:]])


def best_strength(problem, parts, judged):
    """The C that rows left out prefer: with the fewest errors of those whose log-loss is not surely above the least.

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
    points, path, reads = [None] * len(parts), [], 0.0
    for C in FIRST_C * RATIO ** np.arange(MOST):
        found = []
        for k, part in enumerate(parts):
            points[k], spent = problem.optimum(C, part, points[k])
            reads += spent
            found.append(judged(problem.weights(points[k]), *part)[:, problem.learnt(part)])
        path.append((C, points[0], found[0][0], *np.concatenate(found, axis=1)))
        least = min((losses for *_, losses, _ in path), key=np.mean)
        if surely_worse(path[-1][3], least):
            break
    good = [stop for stop in path if not surely_worse(stop[3], least)]
    chosen = min(good, key=lambda stop: (stop[4].mean(), stop[3].mean()))
    return *chosen[:3], reads
