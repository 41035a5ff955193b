"""The penalty of a problem as a value, from the estimator to the compiled solver (``_core/penalties``)."""

from dataclasses import dataclass, replace

import numpy as np

from cmargin.solvers.constraints import Constraints

SMALLEST, LARGEST = float(np.finfo(float).tiny), float(np.finfo(float).max)


def times(weight, factor):
    """Weights of a penalty times a factor; what is above 0 stays so, and finite."""
    with np.errstate(over="ignore"):
        return np.where(weight > 0, np.clip(weight * np.float64(factor), SMALLEST, LARGEST), 0.0)


class ColumnGroups:
    """Groups of the columns of a problem, each column in one: as arrays, for the compiled solver."""

    def __init__(self, of, weight=None):
        """``of``: (n_penalised,) the number of every column's group, from 0 up, none left out.

        ``weight``: (n_groups,) of their norms; None: sqrt(k) of k columns (Yuan and Lin 2006).
        """
        self.of, sizes = np.ascontiguousarray(of, np.intp), np.bincount(of)
        self.member = np.argsort(self.of, kind="stable")
        self.first = np.append(0, np.cumsum(sizes))
        self.weight = np.sqrt(sizes) if weight is None else weight

    def norms(self, w):
        """(n_groups,) of weights (n_penalised,)."""
        return np.sqrt(np.bincount(self.of, w * w, len(self.weight)))

    def of_columns(self, columns):
        """Those of some columns, ascending, each group with the weight that it has."""
        kept, of = np.unique(self.of[columns], return_inverse=True)
        return ColumnGroups(of, self.weight[kept])


@dataclass(frozen=True)
class ElasticNet:
    """(l2/2) |w|^2 + l1 |w|_1 of the penalised weights; the l2 penalty where l1 = 0, the lasso's where l2 = 0."""

    l2: float = 0.0
    l1: float = 0.0
    groups: ColumnGroups | None = None     # of columns that are held at zero together: of `GroupNorms`

    by_column, constraints = False, None
    holds_zero = has_one_l2 = True

    @property
    def has_kinks(self):
        """It may hold weights at zero, and its model has to be minimised by other means than one linear system."""
        return self.l1 > 0

    @property
    def has_bound(self):
        """There is a dual value, and so a duality gap."""
        return self.l2 > 0 or self.has_kinks

    def in_units(self, of_l2, of_l1, unit):
        """The same of weights over ``unit``, l2 and l1 times what a loss in that unit asks for."""
        return replace(self, l2=float(times(self.l2, of_l2)), l1=float(times(self.l1, of_l1)))

    def start(self, w):
        """Where a fit begins that would begin at weights (n_columns,)."""
        return w

    def value(self, w):
        """The penalty at weights (n_penalised,)."""
        return self.l2 / 2 * float(w @ w) + self.l1 * float(np.abs(w).sum())

    def of_columns(self, columns, n_features):
        """The same of some of so many columns of the rows, ascending."""
        return self

    def of_reduced(self, rows, n_penalised):
        """The same of so many weights in an orthogonal basis of rows and of constraints, these ``rows`` in it."""
        return self

    def __str__(self):
        return f"l2={'chosen by the rows' if np.isnan(self.l2) else f'{self.l2:.3g}'}, l1={self.l1:.3g}"


@dataclass(frozen=True, eq=False)
class GroupNorms(ElasticNet):
    """(l2/2) |w|^2 + l1 sum sqrt(|g|) |w_g| over the groups: as a whole, they may be held at zero."""

    def of_columns(self, columns, n_features):
        behind = np.arange(n_features, len(self.groups.of))                # an intercept that is penalised
        return replace(self, groups=self.groups.of_columns(np.append(columns, behind)))

    def value(self, w):
        """The penalty at weights (n_penalised,)."""
        return self.l2 / 2 * float(w @ w) + self.l1 * float(self.groups.weight @ self.groups.norms(w))


@dataclass(frozen=True, eq=False)
class ByColumn:
    """l2_j w_j^2 / 2 + l1_j |w_j| for lower_j <= w_j <= upper_j of the penalised weights, all arrays (n_penalised,).

    Bounds may be infinite. ``constraints``, among which bounds are once more, beside an l2 above 0 that is the same for
    all, and no l1.
    """

    l2_each: np.ndarray
    l1_each: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    constraints: Constraints | None = None

    by_column = has_kinks = True
    groups = None

    @property
    def l2(self):
        """The least of any column."""
        return float(self.l2_each.min(initial=np.inf)) if self.l2_each.size else 0.0

    @property
    def l1(self):
        """The largest of any column."""
        return float(self.l1_each.max(initial=0.0))

    @property
    def has_one_l2(self):
        """All columns have the same, and no constraints tie them together."""
        return self.constraints is None and np.ptp(self.l2_each) == 0

    @property
    def has_bound(self):
        """There is a dual value: none where a weight may grow for ever without a penalty."""
        grows = np.isinf(self.lower) | np.isinf(self.upper)
        return not (grows & (self.l2_each == 0) & (self.l1_each == 0)).any()

    @property
    def holds_zero(self):
        """Columns in which no row has an entry have weights of 0."""
        return self.constraints is None and bool(((self.lower <= 0) & (self.upper >= 0)).all())

    def of_columns(self, columns, n_features):
        """The same of these of so many columns of the rows; an intercept's, which is behind them, stays."""
        constraints = self.constraints and self.constraints.of_columns(columns, n_features)
        return ByColumn(*(np.append(each[columns], each[n_features:]) for each in self._numbers()), constraints)

    def of_reduced(self, rows, n_penalised):
        none = np.full(n_penalised, np.inf)      # bounds are constraints once more
        return ByColumn(np.full(n_penalised, self.l2), np.zeros(n_penalised), -none, none,
                        self.constraints.of_reduced(rows, n_penalised))

    def in_units(self, of_l2, of_l1, unit):
        """The same of weights over ``unit``, l2 and l1 times what a loss in that unit asks for."""
        return ByColumn(times(self.l2_each, of_l2), times(self.l1_each, of_l1), self.lower / unit, self.upper / unit,
                        self.constraints and self.constraints.in_units(unit))

    def _numbers(self):
        return self.l2_each, self.l1_each, self.lower, self.upper

    def in_columns(self, n_columns):
        """(4, n_columns) l2, l1, lower and upper bounds, of columns that are not penalised too."""
        each = np.zeros((4, n_columns))
        each[2], each[3] = -np.inf, np.inf
        each[:, :len(self.lower)] = self._numbers()
        return each

    def start(self, w):
        """The weights within the bounds, or the constraints, that are next to w (n_columns,)."""
        w, n = np.array(w, float), len(self.lower)
        w[:n] = np.clip(w[:n], self.lower, self.upper)
        if self.constraints is not None:
            w[:n] = np.clip(self.constraints.nearest(w[:n]), self.lower, self.upper)
        return w

    def value(self, w):
        """The penalty at weights (n_penalised,) within the bounds."""
        return float(self.l2_each @ (w * w)) / 2 + float(self.l1_each @ np.abs(w))

    def __str__(self):
        def between(each):
            low, high = each.min(initial=np.inf), each.max(initial=-np.inf)
            return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"

        if self.constraints is not None:
            return f"l2={between(self.l2_each)}, {len(self.constraints.b):,} linear constraints"
        bounded = int((np.isfinite(self.lower) | np.isfinite(self.upper)).sum())
        return f"l2={between(self.l2_each)}, l1={between(self.l1_each)}, {bounded:,} of the weights bounded"
