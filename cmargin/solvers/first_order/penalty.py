"""The penalty of the gradient methods, smooth everywhere."""

from dataclasses import dataclass

import numpy as np

from cmargin._core.sgd._gradient_rules import penalties

L1_WIDTH = 1e-3              # |w| is taken as sqrt(w^2 + L1_WIDTH^2) - L1_WIDTH: less by L1_WIDTH at most


@dataclass(frozen=True)
class Penalty:
    """(l2/2) |w|^2 + l1 sum_j (sqrt(w_j^2 + width^2) - width), of weights (n_features,), or of every line of some."""

    l2: float
    l1: float = 0.0

    def value(self, w):
        values = penalties(w if w.ndim == 2 else w[None], self.l2, self.l1, L1_WIDTH)
        return values if w.ndim == 2 else values[0]

    def gradient(self, w):
        return self.l2 * w + self.l1 * w / np.hypot(w, L1_WIDTH) if self.l1 else self.l2 * w

    @property
    def largest_curvature(self):
        return self.l2 + self.l1 / L1_WIDTH
