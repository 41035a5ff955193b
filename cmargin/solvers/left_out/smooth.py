"""Left-out margins by the squared hinge and the logistic loss: one Newton step each, its error bounded by leverages.

With H the Hessian at the optimum, H_i that without row i, u = H_i^-1 g_i and l = g_i'u, one Newton step without the row
gives the margin z_i - r_i a_i l (Rad and Maleki 2020; for squares Cook and Weisberg 1982). The dual variables go with
it, a_j + r_i a_i C_j g_j'u, which makes up for the row exactly; so a certificate (`problem`) is left with what the loss
is not of a parabola: bounded for all rows at once (`one_step`), or summed over the rows that matter (`row_by_row`).
"""

import numpy as np
from scipy.optimize import brentq

from cmargin.solvers.left_out.one_step import FAR, Steps, errors
from cmargin.solvers.left_out.problem import Factor, Logistic, curvature_of
from cmargin.solvers.left_out.row_by_row import Metric, RowByRow

NEWTON_STEPS = 60
OPTIMAL = 1e-13                  # gradient, in parts of the sum of the rows' sizes, at an optimum
SHRINKS = 0.2                    # what a step with the Hessian of another point must leave of the gradient at most
FLAT = 0.1                       # of its slope where a step begins, how steeply the objective may rise at its end
NEARLY = 1e-10                   # the same from which one step with a Hessian of its own point is the last


class SmoothLeftOut:
    """Bounds ``low`` and ``high``, (n,), of the margins that rows have when they are left out."""

    def __init__(self, problem, v):
        """``v``: weights near the optimum."""
        self.problem, rows = problem, problem.rows
        largest = max(np.abs(G).max(initial=0.0) for _, G in rows.blocks(np.arange(rows.n_rows)))
        self.scale = largest * (problem.weight @ problem.loss.dual(np.zeros(rows.n_rows)))
        self.v, self.margins, self.factor = self.optimum(problem, v, None)
        self.low, self.high = np.full(problem.rows.n_rows, -np.inf), np.full(problem.rows.n_rows, np.inf)
        self.approximate, self.metric = self.margins.copy(), None

    def stages(self):
        """Pairs of a name and what narrows the bounds of rows, (k,) places, in the order of their price."""
        for tried in range(len(FAR) if self.problem.loss is Logistic else 1):
            yield "bounded", lambda rows, tried=tried: self.bound(rows, tried)
        yield "refined", self.refine
        yield "solved", lambda rows: [self.solve(i) for i in rows]

    # ------------------------------------------------------------ optima

    def optimum(self, problem, v, factor):
        """Weights, margins, and the factor of the last Hessian: by steps with ``factor`` while these shrink enough."""
        rows, loss, last = problem.rows, problem.loss, np.inf
        z = rows.margins(v)
        for _ in range(NEWTON_STEPS):
            gradient = problem.penalty * v - rows.sums(problem.weight * loss.dual(z))
            size = np.abs(gradient).max()
            if size <= OPTIMAL * self.scale and factor is not None:
                break
            own = factor is None or size > SHRINKS * last
            if own:
                factor = Factor(curvature_of(problem, np.flatnonzero(problem.weight > 0), loss.curvature(z)))
            step, last = factor.solve(-gradient), size
            moved = rows.margins(step)
            t = self.length(problem, v, step, z, moved)
            v, z = v + t * step, z + t * moved
            if t == 0.0 or (own and t == 1.0 and size <= NEARLY * self.scale):
                break
        return v, rows.margins(v), factor

    @staticmethod
    def length(problem, v, step, z, moved):
        """1, or where the objective is least along the step if that is well before; 0 where it does not fall.

        It goes by slopes: near an optimum without a row of a rare column, values differ by their rounding alone.
        """
        along, squared = (problem.penalty * v) @ step, (problem.penalty * step) @ step

        def slope(t):
            return along + t * squared - (problem.weight * problem.loss.dual(z + t * moved)) @ moved
        first = slope(0.0)
        if not first < 0:
            return 0.0
        return 1.0 if slope(1.0) <= FLAT * -first else brentq(slope, 0.0, 1.0, rtol=1e-3)

    # ------------------------------------------------------------ bounds of all rows

    def bound(self, rows, tried):
        """The approximation of rows, and its certified interval; ``tried``: how often it has been done before."""
        problem, loss, z = self.problem, self.problem.loss, self.margins
        dual = loss.dual(z)
        rho = problem.rows.sums(problem.weight * dual) - problem.penalty * self.v
        steps = Steps(problem, z, loss.curvature(z), problem.weight * dual, rho)
        if self.metric is None:
            self.metric = Metric(steps)
        error = errors(steps, tried)
        approximate = z - steps.given * steps.leverage + steps.turned
        error = np.where(steps.sound, error + 2 * np.abs(steps.turned), np.inf)
        self.approximate[rows] = np.where(np.isfinite(error), approximate, self.approximate)[rows]
        self.low[rows] = np.fmax(self.low[rows], (approximate - error)[rows])
        self.high[rows] = np.fmin(self.high[rows], (approximate + error)[rows])

    # ------------------------------------------------------------ bounds of one row

    def refine(self, rows):
        """Narrow the bounds of rows by the step of each, and the gaps of the rows that matter to it."""
        self.step = RowByRow(self.problem, self.v, self.margins, self.metric)
        for i in rows:
            self.narrow(i, self.step, self.problem.weight[i] * self.step.a[i])

    def solve(self, i):
        """Narrow the bounds of row i by the optimum without it: its sign is known unless it is rounding."""
        problem, given = self.problem.without(i), self.problem.weight[i] * self.step.a[i]
        row = self.problem.rows.take(np.array([i]))[0]
        v, z, _ = self.optimum(problem, self.v - given * self.step.direction(row, np.array([i])).u, self.factor)
        self.approximate[i] = row @ v
        self.narrow(i, RowByRow(problem, v, z, self.metric), 0.0)

    def narrow(self, i, by, given):
        """Narrow the bounds of row i to those of ``by``, a `RowByRow`; ``given``: what is to be made up for."""
        z, low, high = by.bounds(i, given, max(given, self.problem.weight.mean()))
        self.low[i], self.high[i] = np.fmax(self.low[i], low), np.fmin(self.high[i], high)
        if np.isfinite(high - low):
            self.approximate[i] = z
