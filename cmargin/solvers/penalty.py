"""The penalty of a problem as a value, from the estimator to the compiled solver (``_core/penalties``)."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ElasticNet:
    """(l2/2) |w|^2 + l1 |w|_1 of the penalised weights; the l2 penalty where l1 = 0, the lasso's where l2 = 0."""

    l2: float = 0.0
    l1: float = 0.0

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

    def __str__(self):
        return f"l2={'chosen by the rows' if np.isnan(self.l2) else f'{self.l2:.3g}'}, l1={self.l1:.3g}"
