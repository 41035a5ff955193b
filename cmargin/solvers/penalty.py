"""The penalty of a problem as a value, from the estimator to the compiled solver (``_core/penalties``)."""

from dataclasses import dataclass, replace

import numpy as np


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

    @property
    def has_kinks(self):
        """It may hold weights at zero, and its model has to be minimised by other means than one linear system."""
        return self.l1 > 0

    @property
    def has_bound(self):
        """There is a dual value, and so a duality gap."""
        return self.l2 > 0 or self.has_kinks

    def value(self, w):
        """The penalty at weights (n_penalised,)."""
        return self.l2 / 2 * float(w @ w) + self.l1 * float(np.abs(w).sum())

    def of_columns(self, columns, n_features):
        """The same of some of so many columns of the rows, ascending."""
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
