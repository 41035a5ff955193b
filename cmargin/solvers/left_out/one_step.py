"""Bounds of all left-out margins at once by smooth losses: one Newton step each, its error bounded by leverages."""

import numpy as np

from cmargin.solvers.left_out.problem import TINY, Factor, Logistic, curvature_of

FAR = (0.99, 0.999)              # quantile of how far rows reach above which they are taken apart, first and then
APART = 2.0                      # times as far as that, from which rows are taken apart after others are
ROUNDS = 8                       # in which rows are taken apart


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


def errors(steps, tried):
    """(n,) how far the approximations may be off; ``tried``: how often that has been asked before."""
    return (error_of_logistic if steps.problem.loss is Logistic else error_of_squares)(steps, tried)


def taken_apart(steps, factor, chosen):
    """Rows, (n,) of bool, that keep their dual variables: what ``chosen`` says of ``steps`` without their curvature.

    Without it other rows of the same rare columns reach further, and may have to be taken apart too.
    """
    apart = np.zeros(len(steps.z), bool)
    for _ in range(ROUNDS):
        more = steps.counted & ~apart & chosen(apart)
        if not more.any():
            break
        apart |= more
        steps.step_by(np.where(apart, 0.0, steps.curvature), steps.problem.sums_of_squares(apart, factor))
    return apart


def error_of_logistic(steps, tried):
    """How far the approximations may be off, where a curvature changes by e^k at most, k the change of a margin.

    Then a_j is off by no more than C_j (k e^k zeta_j / 2 + nu g_j'u) for changes zeta of the margins, and the relative
    entropy that this costs is at most e^k / (1 - `relative`) times half its square over C_j. Rows of the largest
    leverage would make k large for all: they keep their dual variables, which costs at most zeta_j^2 / 8.
    """
    limit = np.quantile(steps.lengths[steps.counted], FAR[tried])
    far = taken_apart(steps, 0.125, lambda apart: steps.lengths > (APART if apart.any() else 1.0) * limit)
    given, leverage = steps.given, steps.leverage
    farthest = steps.reach * np.sqrt(steps.lengths[steps.counted & ~far].max(initial=0.0))
    gap, off = given**2 * steps.crossing + steps.optimality, given * shifted(given * farthest)
    nu = np.sqrt(off**2 + 2 * gap / leverage)
    return (entropy(given, farthest, nu) * leverage + gap) / np.maximum(nu, TINY)


def shifted(k):
    """How far a dual variable is off its linear prediction, in parts of this: curvatures change by e^k at most."""
    return 0.5 * k * np.exp(np.minimum(k, 10.0))


def entropy(given, farthest, nu):
    """What the relative entropy of a row is at most, in parts of r_j C_j (g_j'u)^2, as `error_of_logistic` says.

    ``farthest``: the largest |g_j'u|; infinite where nothing is known.
    """
    k = np.minimum(given * farthest, 10.0)
    grown = np.exp(k)
    relative = (k * shifted(k) + nu * farthest) * grown
    known = relative < 0.9
    return np.where(known, 0.5 * grown / np.where(known, 1 - relative, 1.0) * (given * shifted(k) + nu) ** 2, np.inf)


def error_of_squares(steps, tried):
    """The same where the loss is a parabola but for rows that may cross the kink.

    These, ``near``, keep their dual variables: a pair costs at most (r_i a_i)^2 u' (sum over them of r_j g_j g_j') u.
    All others stay on their side as long as (r_i a_i + nu) sqrt(l_i l_j) is below |1 - z_j|.
    """
    z = steps.z

    def may_cross(_):
        limit = 2 * np.quantile(steps.given * steps.reach, FAR[tried])
        return np.abs(1 - z) <= limit * np.sqrt(steps.lengths)
    near = taken_apart(steps, 1.0, may_cross)
    others = steps.counted & ~near
    limit = (np.abs(1 - z[others]) / np.sqrt(np.maximum(steps.lengths[others], TINY))).min(initial=np.inf)
    gap = steps.given**2 * steps.crossing + steps.optimality
    nu = np.minimum(np.sqrt(2 * gap / steps.leverage), limit / np.maximum(steps.reach, TINY) - steps.given)
    possible = nu > 0
    nu = np.where(possible, nu, 1.0)
    return np.where(possible | (gap == 0), gap / nu + nu * steps.leverage / 2 * (gap > 0), np.inf)
