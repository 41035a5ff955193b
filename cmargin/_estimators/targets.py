"""What y says in a regression: columns of targets, where each begins, and the unit in which it is solved.

A problem is solved for targets t' = (t - centre) / unit and weights w' = w / unit. A loss of degree d in the residual,
F_e(unit u) = unit^d F_(e / unit)(u), makes its objective that of w over unit^d, with

    l2' = unit^(2 - d) l2,      l1' = unit^(1 - d) l1.

So smoothing widths, and what counts as nothing, are relative to the spread of the targets, and no scale of theirs
changes the way. A unit is a power of 2, so that no digit is lost. Only a free intercept can take a centre. The Huber
loss, of degree 1 far beyond its length, has a unit of at most 2^10 lengths, or its objective would be nothing.
"""

from dataclasses import dataclass

import numpy as np

from cmargin._core.losses._losses import evaluate
from cmargin.data.arrays import is_sparse
from cmargin.data.loss import Loss

LARGEST = float(np.finfo(float).max)


@dataclass(frozen=True)
class ResidualLoss:
    """A loss of residuals as users give it, in the targets' own numbers."""

    name: str
    parameter: float
    is_length: bool            # the parameter is in the numbers of the targets
    tilt: float = 0.5          # the quantile of the residuals at which a constant is best, about
    insensitive: float = 0.0   # residuals up to that cost nothing
    degree: int = 1

    def in_units(self, unit):
        """`Loss`, as the problem is solved."""
        return Loss(self.name, (self.parameter / unit if self.is_length else self.parameter,))


def columns_of_targets(y):
    """(n_targets, n) float64 from y (n,) or (n, n_targets), finite; ValueError for what are no numbers."""
    if is_sparse(y):
        raise ValueError("y is a sparse matrix; targets are a dense array: give y.toarray().")
    y = np.asarray(y)
    try:
        if y.dtype.kind not in "biufO" or (y.dtype.kind == "O" and any(isinstance(t, (str, bytes)) for t in y.flat)):
            raise TypeError
        y = np.asarray(y, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y must hold numbers, and its dtype is {y.dtype}.") from None
    if not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity.")
    return np.ascontiguousarray(y.T).reshape(-1, y.shape[0])


class Target:
    """One problem: where a column of targets begins, its unit, and a `ResidualLoss`. ``spread``: mean of half of the
    absolute differences to the centre."""

    def __init__(self, loss, centre, spread):
        self.given, self.centre = loss, centre
        if not spread < (LARGEST / 8)**(1 / loss.degree):
            raise ValueError("y holds values so large that sums of their losses overflow; scale the targets.")
        self.unit = float(np.ldexp(1.0, max(int(np.frexp(2 * spread)[1]), -1000))) if spread > 0 else 1.0
        if loss.name == "huber":               # far beyond its length it is of degree 1
            longest = 2.0**min(int(np.frexp(loss.parameter)[1]) + 10, 1000)
            self.unit = max(min(self.unit, longest), self.unit * 2.0**-400)      # squares of targets have room
        self.loss = loss.in_units(self.unit)

    @property
    def unit_of_objective(self):
        return self.unit**self.given.degree

    def offset(self, column):
        return (column - self.centre) / self.unit

    def penalty(self, penalty):
        degree = self.given.degree
        return penalty.in_units(self.unit**(2 - degree), self.unit**(1 - degree), self.unit)

    def into_units(self, coef, intercept):
        """Weights of a model, (m + 1,)."""
        return np.append(coef, intercept - self.centre) / self.unit

    def losses(self, column):
        """(n,) losses of weights 0, in units."""
        value, slope, curvature = (np.empty(len(column)) for _ in range(3))
        evaluate(self.loss.id, 1 - self.offset(column), value, slope, curvature, *self.loss.numbers)
        return value


def half_distances(column, centre):
    """To a centre: in the range of numbers, where whole ones need not be."""
    return np.abs(column / 2 - centre / 2)


def centre_of(column, loss, weight):
    """A constant whose loss is about least: a quantile of the targets, or the middle of them, where none then costs
    anything. Rows twice are rows of weight 2."""
    counted = column if weight is None or weight.all() else column[weight > 0]
    least, most = float(counted.min()), float(counted.max())
    if most / 2 - least / 2 <= loss.insensitive:
        return least / 2 + most / 2
    if weight is None:
        at = max(int(np.ceil(loss.tilt * len(column))) - 1, 0)
        return float(np.partition(column, at)[at])
    order = np.argsort(column, kind="stable")
    below = np.cumsum(weight[order])
    at = np.searchsorted(below, loss.tilt * below[-1])
    return float(column[order[min(at, len(column) - 1)]])


class TargetProblems:
    """The problems of a fit, one for each column of y and each `ResidualLoss`.

    ``flat``: weights are (m,), as y is (n,) and the loss one.
    """

    has_offsets = True

    def __init__(self, problems, flat):
        self.problems, self.flat = problems, flat

    def __len__(self):
        return len(self.problems)

    def __getitem__(self, c):
        return self.problems[c]


class Targets(TargetProblems):
    """The same with ``columns``, (n_columns, n) of y here."""

    def __init__(self, columns, problems, flat):
        super().__init__(problems, flat)
        self.columns = columns

    @classmethod
    def of(cls, y, losses, several, weight, free):
        """``several``: the losses are a sequence, if of one. ``weight`` (n,) of the rows, or None. ``free``: intercepts
        are not penalised."""
        columns, problems = columns_of_targets(y), []
        check_several(several, len(columns))
        for column in columns:
            for loss in losses:
                centre = centre_of(column, loss, weight) if free else 0.0
                with np.errstate(over="ignore"):
                    spread = float(np.average(half_distances(column, centre), weights=weight))
                problems.append(Target(loss, centre, spread))
        return cls(columns, problems, is_flat(y, several))

    def column(self, c):
        return self.columns[c * len(self.columns) // len(self)]

    def offset_of(self, c):
        """(n,) targets of problem c in units."""
        return self[c].offset(self.column(c))

    def signed_weight(self, c, weights):
        """A new array; a residual has no sign of its own."""
        return np.ones(self.columns.shape[1]) if weights is None else np.array(weights, float)

    def losses_at_zero(self, c):
        return self[c].losses(self.column(c))

    def take(self, rows):
        return Targets(self.columns[:, rows], self.problems, self.flat)


def check_several(several, n_columns):
    if n_columns > 1 and several:
        raise ValueError(f"Several quantiles are for one target; y has {n_columns} columns.")


def is_flat(y, several):
    return np.ndim(y) == 1 and not several
