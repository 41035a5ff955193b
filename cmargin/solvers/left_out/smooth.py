"""Left-out margins by the squared hinge and the logistic loss: one Newton step each, its error bounded by leverages.

With H the Hessian at the optimum, H_i that without row i, u = H_i^-1 g_i and l = g_i'u, one Newton step without the row
gives the margin z_i - r_i a_i l (Rad and Maleki 2020; for squares Cook and Weisberg 1982). The dual variables go with
it, a_j + r_i a_i C_j g_j'u, which makes up for the row exactly; so a certificate (`problem`) is left with what the loss
is not of a parabola, and |g_j'u| <= sqrt(l g_j'H^-1 g_j) bounds that of all rows from the largest leverage. A row costs
as many operations as H has entries.
"""

import numpy as np

from cmargin.solvers.left_out.problem import TINY, Factor, Logistic, curvature_of

NEWTON_STEPS = 60
OPTIMAL = 1e-13                  # gradient, in parts of the sum of the rows' sizes, at an optimum
REFINED = 4                      # times that a system is solved again for what is left, and its factor made anew
RIGHT = 1e-4                     # what may be left of it in penalised columns
SHRINKS = 0.2                    # what a step with the Hessian of another point must leave of the gradient at most
NEARLY = 1e-10                   # the same from which one step with a Hessian of its own point is the last
FAR = (0.99, 0.999)              # quantile of how far rows reach above which they are taken apart, first and then
ROUNDING = 1e-9                  # of the sum of a free intercept's column


class SmoothLeftOut:
    """Bounds ``low`` and ``high``, (n,), of the margins that rows have when they are left out."""

    def __init__(self, problem, v):
        """``v``: weights near the optimum."""
        self.problem, rows = problem, problem.rows
        largest = max(np.abs(G).max(initial=0.0) for _, G in rows.blocks(np.arange(rows.n_rows)))
        self.scale = largest * (problem.weight @ problem.loss.dual(np.zeros(rows.n_rows)))
        self.v, self.margins, self.factor = self.optimum(problem, v, None)
        self.low, self.high = np.full(problem.rows.n_rows, -np.inf), np.full(problem.rows.n_rows, np.inf)
        self.approximate = self.margins.copy()

    def stages(self):
        """Pairs of a name and what narrows the bounds of rows, (k,) places, in the order of their price."""
        yield "bounded", lambda rows: self.bound(rows, 0)
        yield "bounded", lambda rows: self.bound(rows, 1)
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
            t = self.length(problem, v, z, step, moved, gradient)
            v, z = v + t * step, z + t * moved
            if t == 0.0 or (own and size <= NEARLY * self.scale):
                break
        return v, rows.margins(v), factor

    @staticmethod
    def length(problem, v, z, step, moved, gradient):
        """The first of 1, 1/2, 1/4, ... at which the objective falls enough (Armijo), or is the same to rounding."""
        value, slope, t = problem.objective(v, z), gradient @ step, 1.0
        for _ in range(40):
            after = problem.objective(v + t * step, z + t * moved)
            if after <= value + 1e-4 * t * slope or (t == 1.0 and abs(after - value) <= 1e-14 * abs(value)):
                return t
            t *= 0.5
        return 0.0

    # ------------------------------------------------------------ bounds of all rows

    def bound(self, rows, tried):
        """The approximation of rows, and its certified interval; ``tried``: how often it has been done before."""
        problem, loss, z = self.problem, self.problem.loss, self.margins
        dual = loss.dual(z)
        rho = problem.rows.sums(problem.weight * dual) - problem.penalty * self.v
        steps = Steps(problem, z, loss.curvature(z), problem.weight * dual, rho)
        error = (error_of_logistic if loss is Logistic else error_of_squares)(steps, rows, tried)
        approximate = z - steps.given * steps.leverage + steps.turned
        error = np.where(steps.sound, error + 2 * np.abs(steps.turned), np.inf)
        self.approximate[rows] = np.where(np.isfinite(error), approximate, self.approximate)[rows]
        self.low[rows] = np.fmax(self.low[rows], (approximate - error)[rows])
        self.high[rows] = np.fmin(self.high[rows], (approximate + error)[rows])

    # ------------------------------------------------------------ the solution without a row

    def solve(self, i):
        """Narrow the bounds of row i by the optimum without it: its sign is known unless it is rounding."""
        problem, loss = self.problem.without(i), self.problem.loss
        v, z, factor = self.optimum(problem, self.v, self.factor)
        row, dual = problem.rows.take(np.array([i]))[0], loss.dual(z)
        self.approximate[i] = row @ v
        u, changes, rest = self.made_up(problem, loss.curvature(z), factor, row)
        if changes is None:
            return
        rho = problem.rows.sums(problem.weight * dual) - problem.penalty * v
        own = problem.cost_of(rho)
        if own == np.inf:
            return
        (rise, fall), best = loss.room(dual), np.sqrt(2 * own / max(row @ u, TINY))
        for side in (1.0, -1.0):
            most = 1 / max((side * changes / np.maximum(rise, TINY)).max(),
                           (-side * changes / np.maximum(fall, TINY)).max(), TINY)
            for nu in (max(min(best, most / 2), 1e-9 * most), min(max(100 * best, 1e-6 * most), most / 2)):
                left = (rho - side * nu * (problem.penalty * u + rest)) * (problem.penalty > 0)
                gap = problem.weight @ loss.gap(z, dual + side * nu * changes) + left @ left / (2 * problem.l2)
                if side > 0:
                    self.low[i] = max(self.low[i], row @ v - gap / nu)
                else:
                    self.high[i] = min(self.high[i], row @ v + gap / nu)

    def made_up(self, problem, curvature, factor, row):
        """x of (sum_j r_j C_j g_j g_j' + D) x = row, by the factor of such a matrix nearby; C_j g_j'x; what is left.

        A free intercept's column has to come out, as its rounding has no penalty to be measured by: where it does not,
        there is no C_j g_j'x.
        """
        x, rest, free = np.zeros(len(row)), row, problem.penalty == 0
        for tried in range(2 * REFINED):
            if tried == REFINED:
                factor = Factor(curvature_of(problem, np.flatnonzero(problem.weight > 0), curvature))
            x = x + factor.solve(rest)
            changes = curvature * problem.rows.margins(x)
            rest = row - problem.penalty * x - problem.rows.sums(problem.weight * changes)
            if (np.abs(rest) <= np.where(free, ROUNDING, RIGHT) * np.abs(row).max()).all():
                return x, changes, rest
        return x, None, rest


class Steps:
    """One Newton step for every row that is left out: all that is said of it by H^-1 and the row."""

    def __init__(self, problem, z, curvature, given, rho):
        """``given``: r_j a_j, (n,); ``rho``: what is left of the stationarity condition in penalised columns."""
        self.problem, self.z, self.given, self.rho = problem, z, given, rho * (problem.penalty > 0)
        self.curvature, self.counted = curvature, problem.weight > 0
        self.optimality = problem.cost_of(rho)
        self.step_by(curvature)

    def step_by(self, curvature, crossing=None):
        """Of every row: g'H^-1 g (``lengths``), and with H without the row (u, ``leverage`` g'u, ``reach`` |u| in H's
        metric, ``turned`` rho'u, ``crossing`` u'crossing u).
        """
        rows, problem = self.problem.rows, self.problem
        self.factor = Factor(curvature_of(problem, np.flatnonzero(self.counted & (curvature > 0)), curvature))
        lengths, turned, crossed = np.empty((3, rows.n_rows))
        for some, G in rows.blocks(np.arange(rows.n_rows)):
            U = self.factor.solve_rows(G)
            lengths[some], turned[some] = np.einsum("ij,ij->i", G, U), U @ self.rho
            crossed[some] = 0.0 if crossing is None else np.einsum("ij,ij->i", U @ crossing, U)
        left = 1 - problem.weight * curvature * lengths
        sound = left > 1e-9                      # without the row there would be no curvature in its direction
        left = np.where(sound, left, 1.0)
        self.lengths, self.turned, self.crossing = lengths, turned / left, crossed / left**2
        self.leverage, self.sound = np.maximum(lengths / left, TINY), sound
        self.reach = np.sqrt(np.maximum(lengths, 0.0)) / left


def error_of_logistic(steps, rows, tried):
    """How far the approximations may be off, where a curvature changes by e^k at most, k the change of a margin.

    Then a_j is off by no more than C_j (k e^k zeta_j / 2 + nu g_j'u) for changes zeta of the margins, and the relative
    entropy that this costs is at most e^k / (1 - `relative`) times half its square over C_j. Rows of the largest
    leverage would make k large for all: they keep their dual variables, which costs at most zeta_j^2 / 8.
    """
    problem, lengths = steps.problem, steps.lengths
    far = steps.counted & (lengths > np.quantile(lengths[steps.counted], FAR[tried]))
    steps.step_by(np.where(far, 0.0, steps.curvature), problem.sums_of_squares(far, 0.125))
    given, leverage = steps.given, steps.leverage
    farthest = steps.reach * np.sqrt(steps.lengths[steps.counted & ~far].max(initial=0.0))
    k = np.minimum(given * farthest, 10.0)
    grown = np.exp(k)
    off, gap = 0.5 * k * grown * given, given**2 * steps.crossing + steps.optimality
    nu = np.sqrt(off**2 + 2 * gap / (grown * leverage))
    relative = (0.5 * grown * k**2 + nu * farthest) * grown
    known = relative < 0.9
    factor = np.where(known, grown / np.where(known, 1 - relative, 1.0), 1.0)
    error = (0.5 * factor * (off + nu) ** 2 * leverage + gap) / np.maximum(nu, TINY)
    return np.where(known, error, np.inf)


def error_of_squares(steps, rows, tried):
    """The same where the loss is a parabola but for rows that may cross the kink.

    These, ``near``, keep their dual variables: a pair costs at most (r_i a_i)^2 u' (sum over them of r_j g_j g_j') u.
    All others stay on their side as long as (r_i a_i + nu) sqrt(l_i l_j) is below |1 - z_j|.
    """
    problem, z = steps.problem, steps.z
    limit = 2 * np.quantile((steps.given * steps.reach)[rows], FAR[tried])
    near = steps.counted & (np.abs(1 - z) <= limit * np.sqrt(steps.lengths))
    steps.step_by(np.where(near, 0.0, steps.curvature), problem.sums_of_squares(near, 1.0))
    others = steps.counted & ~near
    limit = (np.abs(1 - z[others]) / np.sqrt(np.maximum(steps.lengths[others], TINY))).min(initial=np.inf)
    gap = steps.given**2 * steps.crossing + steps.optimality
    nu = np.minimum(np.sqrt(2 * gap / steps.leverage), limit / np.maximum(steps.reach, TINY) - steps.given)
    possible = nu > 0
    nu = np.where(possible, nu, 1.0)
    return np.where(possible | (gap == 0), gap / nu + nu * steps.leverage / 2 * (gap > 0), np.inf)
