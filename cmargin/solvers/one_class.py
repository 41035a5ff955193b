"""Schoelkopf's one-class problem as the Newton driver has it: a hinge over positive rows, and a linear term.

    minimise over w, rho:   1/2 |w|^2 - rho + 1/(nu N) sum s_i max(0, rho - <w, x_i>),        sum s_i = N

becomes, for w = ``unit`` omega, rho = ``unit`` r, b = 1 - r and times nu / ``unit``,

    (nu unit / 2) |omega|^2 + nu (b - 1) + (1/N) sum s_i max(0, 1 - <omega, x_i> - b):

the hinge with l2 = nu unit, a free intercept and a slope of nu in it. The unit, about the length of a row times that of
their mean, makes scores of size 1, as the first smoothing width is. The dual, by which a fit is certified, is

    maximise over a:    -1/2 |v|^2,    v = 1/(nu N) sum s_i a_i x_i,    0 <= a_i <= 1,    sum s_i a_i = nu N.

Its maximum is the minimum, never positive: minus half the squared distance of the origin from such averages of rows.
"""

from dataclasses import dataclass, replace

import numpy as np

from cmargin.data.loss import HINGE
from cmargin.solvers.penalty import ElasticNet

SMALL = 1e-6                   # part of the rows' mean square below which |w|^2 counts as 0: gaps are relative to it


@dataclass(frozen=True)
class OneClass:
    """``nu`` in (0, 1), ``unit`` of weights and offset, ``mean_square``, (1/N) sum s_i |x_i|^2, of the rows."""

    nu: float
    unit: float
    mean_square: float

    @classmethod
    def of_rows(cls, nu, rows):
        """``rows``: a `RowPass` of all rows, with a column of ones. Two reads."""
        _, squares = rows.objective(np.zeros(rows.n_columns), True)
        n, m = rows.total_weight, rows.n_features
        mean_square = float(squares[:m].sum()) / n
        mean = float(np.linalg.norm(row_sum(rows)[:m])) / n
        length = np.sqrt(mean_square)
        return cls(nu, length * max(mean, np.sqrt(SMALL) * length) or 1.0, mean_square)

    @property
    def penalty(self):
        return ElasticNet(self.nu * self.unit)

    @property
    def least(self):
        """The objective, as users see it, below whose size a gap is relative to this number."""
        return max(SMALL * self.mean_square / 2, np.finfo(float).tiny)

    @property
    def numbers(self):
        """What the driver takes: nu, and `least` in its units."""
        return self.nu, self.least * self.nu / self.unit

    loss = HINGE

    def finer(self, dual):
        """The same in a unit for weights as small as that bound says, or None where this one is as fine.

        The first unit is too large where the rows' averages that the optimum may choose are far shorter than the mean:
        the narrowest smoothing width and the digits of b are parts of it.
        """
        unit = np.sqrt(-2 * min(dual, -self.least) * self.mean_square)
        return replace(self, unit=unit) if 2 * unit < self.unit else None

    def dual_vector(self, rows, a):
        """The driver's v (n_features,) of dual variables ``a`` (n_rows,) in [0, 1], made feasible."""
        n, s = rows.total_weight, rows.signed_weight
        held = float(s @ a)
        if held > self.nu * n:
            a = a * (self.nu * n / held)
        elif n > held:
            a = a + (self.nu * n - held) / (n - held) * (1 - a)
        return rows.combine(a * s)[:rows.n_features] / n

    def outside(self, value):
        """An objective or a bound of the driver, as users see it."""
        return value * self.unit / self.nu

    def inside(self, value):
        """An objective or a bound that users see, as the driver has it."""
        return value * self.nu / self.unit

    def gap(self, objective, dual):
        """Relative gap of numbers as users see them."""
        return (objective - min(objective, dual)) / max(-dual, self.least)


def row_sum(rows):
    """(n_columns,) sum of s x of a `RowPass` whose rows are positive; a read.

    Rows that are elsewhere say it as the slope of the hinge at w = 0, once; they begin anew then.
    """
    if hasattr(rows, "combine"):
        return rows.combine(rows.signed_weight)
    if not hasattr(rows, "row_sum"):
        rows.set_loss(HINGE)
        rows.start()
        rows.row_sum = np.array(rows.evaluate(np.zeros(rows.n_columns), 1.0, 1e-12, 1e-12, 0.0, False)[1][0])
        rows.start()
    return rows.row_sum
