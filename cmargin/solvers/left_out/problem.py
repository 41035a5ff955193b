"""One penalised problem, its Fenchel gaps, and the certificate that bounds the margin of a row that is left out.

With rows g_j = y_j (x_j, 1), weights s_j (of mean 1 over N rows) and D = l2 in the penalised columns, 0 in a free
intercept's, the problem without row i is

    P(v) = v'Dv/2 + (1/N) sum_{j != i} s_j F(g_j'v):

the term of the row is gone, while l2 and N stay. The weights of the rows are r_j = s_j/N from here on.

For any v, any a_j in the domain of F's conjugate and any nu > 0, Lagrangian duality of "z_i <= t" (ours) says that no
optimum has a margin z_i below

    g_i'v - (1/nu) [sum_{j != i} r_j gap(g_j'v, a_j) + |rho|^2 / (2 l2)],

    rho = sum_{j != i} r_j a_j g_j - nu g_i - Dv,

where gap(z, a) = F(z) + F*(-a) + a z >= 0, and rho is 0 in the column of a free intercept. With nu < 0 it is a bound
from above. So every choice of a and nu proves something; what is worth proving depends on how well the a_j of other
rows make up for row i. All is up to the rounding of doubles.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, solve_triangular
from scipy.special import expit, xlog1py

from cmargin._core.losses._losses import LOSS_IDS, evaluate

FREE = 1e-4                      # of a row's weight or room, what may be left in a free intercept's column
TINY = 1e-300                    # below which a number counts as 0 where it would be divided by


def evaluated(name, z):
    """(3, n): value, slope and curvature of a smooth loss at the margins z, as fits have them."""
    found = np.empty((3, len(z)))
    evaluate(LOSS_IDS[name], np.ascontiguousarray(z, float), *found)
    return found


class Hinge:
    """F(z) = max(0, 1 - z); 0 <= a <= 1."""

    smooth = False

    @staticmethod
    def value(z):
        return np.maximum(0.0, 1.0 - z)

    @staticmethod
    def gap(z, a):
        return np.maximum(0.0, 1.0 - z) - a * (1.0 - z)

    @staticmethod
    def room(a):
        """How far a may rise, and fall."""
        return 1.0 - a, a


class Smooth:
    """Base of smooth losses: those that fits have, by their ``name`` there."""

    smooth, name = True, ""

    @classmethod
    def value(cls, z):
        return evaluated(cls.name, z)[0]

    @classmethod
    def dual(cls, z):
        return -evaluated(cls.name, z)[1]

    @classmethod
    def curvature(cls, z):
        return evaluated(cls.name, z)[2]


class SquaredHinge(Smooth):
    """F(z) = max(0, 1 - z)^2; a >= 0."""

    name = "squared_hinge"

    @staticmethod
    def gap(z, a):
        return np.where(z < 1.0, (a / 2 - (1.0 - z)) ** 2, a * (a / 4 + z - 1.0))

    @staticmethod
    def room(a):
        return np.full(len(a), np.inf), a


class Logistic(Smooth):
    """F(z) = ln(1 + e^-z); 0 <= a <= 1."""

    name = "logistic"

    @staticmethod
    def gap(z, a):
        """The relative entropy of a beside the a of z, summed so that near 0 no digits are lost."""
        own, other = expit(-z), expit(z)
        more = a - own
        return np.maximum(xlog1py(a, more / np.maximum(own, TINY)) +
                          xlog1py(1.0 - a, -more / np.maximum(other, TINY)), 0.0)

    @staticmethod
    def room(a):
        return 1.0 - a, a


LOSSES = {"hinge": Hinge, SquaredHinge.name: SquaredHinge, Logistic.name: Logistic}


@dataclass
class Problem:
    """Rows (`MarginRows`), their weights over N, the penalty of each column, and the loss."""

    rows: Any
    weight: np.ndarray               # (n,) r_j
    penalty: np.ndarray              # (n_columns,) the diagonal of D
    l2: float
    loss: Any

    def objective(self, v, z):
        return 0.5 * (self.penalty * v) @ v + self.weight @ self.loss.value(z)

    def cost_of(self, rho):
        """|rho|^2 / (2 l2); infinite where a free intercept's column does not come out.

        What rounding leaves there, far less than a row's weight, a row with room for it could make up for.
        """
        free = self.penalty == 0
        if (np.abs(rho[free]) > FREE * self.weight.mean()).any():
            return np.inf
        return rho[~free] @ rho[~free] / (2 * self.l2)

    def sums_of_squares(self, chosen, factor):
        """factor sum_j r_j g_j g_j' over the rows j that ``chosen``, (n,) of bool, says."""
        return curvature_of(self, np.flatnonzero(chosen), np.full(len(chosen), factor)) - np.diag(self.penalty)

    def without(self, i):
        """The problem of all rows but i."""
        weight = self.weight.copy()
        weight[i] = 0.0
        return Problem(self.rows, weight, self.penalty, self.l2, self.loss)


class Factor:
    """Cholesky factor of a positive definite matrix, columns in units of the root of their diagonal."""

    def __init__(self, H):
        diagonal = np.diag(H)
        self.unit = 1 / np.sqrt(np.where(diagonal > TINY, diagonal, 1.0))
        scaled = H * self.unit[:, None] * self.unit
        try:
            self.lower = np.linalg.cholesky(scaled)
        except LinAlgError:          # dependent columns beside which the penalty is rounding
            self.lower = np.linalg.cholesky(scaled + 1e-13 * len(H) * np.eye(len(H)))

    def solve(self, B):
        """H^-1 B of a vector or of columns."""
        unit = self.unit if B.ndim == 1 else self.unit[:, None]
        return unit * cho_solve((self.lower, True), B * unit, overwrite_b=True, check_finite=False)

    def half(self, B):
        """L^-1 B, with H = LL', of a vector or of columns: its lengths are those in the metric of H^-1."""
        unit = self.unit if B.ndim == 1 else self.unit[:, None]
        return solve_triangular(self.lower, B * unit, lower=True, check_finite=False, overwrite_b=True)

    def length(self, v):
        """sqrt(v'H v), of the H that was factorised, of a vector or of the rows of v."""
        return np.linalg.norm((v / self.unit) @ self.lower, axis=-1)

    def solve_rows(self, G):
        """Rows of G times H^-1."""
        return self.solve(G.T).T


def curvature_of(problem, rows, curvature):
    """sum_j r_j C_j g_j g_j' over the places ``rows``, plus D."""
    H = np.diag(problem.penalty)
    for some, G in problem.rows.blocks(rows):
        c = problem.weight[some] * curvature[some]
        H += (G * c[:, None]).T @ G
    return H
