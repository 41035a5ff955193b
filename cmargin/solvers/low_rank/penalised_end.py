"""The penalised optimum of a fit of few numbers, of the strength that rows held out ask for (ours).

    P(U, b) = (1/N) sum_i s_i [ln sum_c exp(h_c(z_i)) - h_{y_i}(z_i)] + (l2/2) |U|^2,   h_c(z) = <u_c, z> + b_c

over whitened rows, so that l2 means the same whatever the columns' scales: l2 = (mean z'z / width) / (C N), which is
LogisticRegression's C for rows whose entries have mean square 1. Passes of a few thousand rows over a table of
correlated columns end long before its narrow directions are learnt; Newton steps do not care. C grows from strong
penalties to weak ones, each optimum the start of the next, until the log-loss of the rows held out rises. One thread:
products of so few numbers are over before two have met.
"""

from dataclasses import dataclass

import numpy as np

from cmargin._runtime.clock import TimeUp
from cmargin.homes.open import open_rows
from cmargin.solvers.low_rank.multinomial_choice import surely_worse
from cmargin.solvers.low_rank.softmax_weights import SoftmaxWeights
from cmargin.solvers.newton.multinomial_newton import Settings, solve

LEAST_HELD = 100           # rows held out; fewer cannot tell strengths apart
MOST_FLOPS = 3e7           # of a product with all rows: with more a path takes longer than the passes, and they do well
FIRST_C, RATIO, MOST = 0.1, 10**0.5, 9        # up to C = 1,000
ROUGH = 0.03               # relative gap of an optimum; 0.1 loses a little, 0.01 gains nothing (doc/decisions.md)


def worth_trying(Z, inverse, n_classes, n_held):
    """Whether a path is cheap and can be judged, and whitened rows are all there is of the rows."""
    return (Z is not None and not inverse.tail_inverse[0] > 0 and 4.0 * Z.size * n_classes <= MOST_FLOPS
            and n_held >= LEAST_HELD)


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

    def optimum(self, C, n, start):
        """Over the first ``n`` rows, from ``start``: (U, b), or None; and reads of all rows."""
        l2 = max(self.mean_square, 1e-300) / self.Z.shape[1] / (C * n)
        weight = self.weight[:n] if len(self.weight) else None
        settings = Settings(l2, ROUGH, self.intercept, deadline=self.deadline, n_threads=1)
        result, interruption = solve(open_rows(self.Z[:n]), self.truth[:n], weight, self.n_classes, settings, start)
        if interruption is not None:
            raise interruption
        if result.stopped == "max_time":
            raise TimeUp
        return (result.W, result.bias), result.reads * n / len(self.Z)

    def weights(self, point):
        U, bias = point
        dtype = self.Z.dtype
        none = np.empty((0, 0), dtype)
        return SoftmaxWeights(np.ascontiguousarray(U, dtype=dtype), np.empty((0, U.shape[1]), dtype), none, none,
                              np.zeros((0, 3)), np.repeat(bias[:, None], 2, axis=1), self.stride)


def best_strength(problem, n_train, held_losses):
    """The strongest penalty whose ``held_losses(weights)``, after the first ``n_train`` rows, are not surely worse than
    the least; among some hundred rows the least alone is one of chance, and mostly weaker.

    Returns
    -------
    C : float
    point : (U, b)
    losses : (n_held,) array
    reads : float
    """
    path, start, reads = [], None, 0.0
    for C in FIRST_C * RATIO ** np.arange(MOST):
        start, spent = problem.optimum(C, n_train, start)
        reads += spent
        path.append((C, start, held_losses(problem.weights(start))))
        if len(path) > 1 and not path[-1][2].mean() < path[-2][2].mean():
            path.pop()
            break
    least = path[-1][2]
    chosen = next(stop for stop in path if not surely_worse(stop[2], least))
    return *chosen, reads
