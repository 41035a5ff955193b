"""SmSVM's dual, for rows whose curvature over all columns costs much, without l1.

The dual of the hinge with C_i = s_i / (l2 N), in units of 1/l2, is a quadratic in a box,

    max over 0 <= a_i <= C_i of   sum a - |w|^2 / 2,     w = sum a_i y_i x_i,

whose slope in a_i is the slack u_i = 1 - y_i <w, x_i>. Rows at a bound are settled, and few others are left:

1. **Sweeps**: one dual variable after the other goes to its own maximum, a Newton step in one unknown (Hsieh et al.,
   ICML 2008), and settled rows are left out until the next evaluation.
2. **The last moves**: from the end of a sweep to the best point of the space that its change and the moves of the
   sweeps before it span, which needs no read.

Every row's part of the duality gap, C_i max(0, u_i) - a_i u_i >= 0, is known when it is read; an evaluation over all
rows certifies when the sum is small enough. A free intercept b is the multiplier of sum a y = 0 (method of
multipliers): it moves as if it were penalised, lightly, around the last b, as the coefficient of a column of small
constants.

Dual variables of the squared hinge have no upper bound, and add a - r_i a^2 / 2 each to the bound, r_i = 1 / (2 C_i):
r_i is added to |x_i|^2, and r_i a_i taken off u_i.

A loss of residuals with two kinks, up max(0, t - z - e) + down max(0, z - t - e), is a hinge of slack (t - e) - z and
one of slack (-t - e) + z: two dual variables a row, of y = 1 and y = -1, in boxes up C_i and down C_i, of gains
(t - e) a and (-t - e) a. All else is as of the hinge; the row's entries are stored once.
"""

from functools import lru_cache

import numpy as np

from cmargin._core.dual._memory import DualDriver
from cmargin._core.newton._bound import ROUNDING
from cmargin.solvers import cost
from cmargin.solvers.newton.slices import InSlices
from cmargin.solvers.per_class import class_streams

LARGEST_SCALE = 2.0            # of w: a larger one would make rounding, in a w that should be 0, a solution


@lru_cache(maxsize=1)
def stream_of(seed):
    """The random stream of a seed; all classes of a fit without a random_state have the same."""
    return class_streams(seed, 1)[0]


class DualNewton(InSlices, DualDriver):
    """One binary problem, l1 = 0 and l2 > 0, on its way; ``result`` is complete whenever it is left.

    ``seed`` draws the order of the sweeps, ``w`` is a warm start, ``a`` are `dual_variables` to begin it with. After
    ``enough_reads`` the status is "left", and Newton's method on all columns goes on; ``on_trial``: far sooner where
    the gap does not fall fast enough. The gap is first evaluated after ``first_evaluation`` reads at the latest.
    """

    way = (None, "dual")

    def __init__(self, rows, problem, settings, result, seed=0, w=None, enough_reads=np.inf, on_trial=False,
                 first_evaluation=np.inf, a=None):
        self.problem, self.settings, self.result, self.warm, self.warm_a = problem, settings, result, w, a
        gives_up = enough_reads < settings.max_passes
        super().__init__(rows, problem, settings, len(result.w), stream_of(seed).copy(),
                         enough_reads if gives_up else settings.max_passes, gives_up,
                         cost.DUAL_TRIAL_SHARE if on_trial else np.inf, first_evaluation if on_trial else np.inf,
                         cost.DUAL_HOPELESS_FROM, cost.SWEEPS_LEFT_FOR_MOVES, LARGEST_SCALE,
                         rows.shared.column_costs)

    def begin(self):
        shared, a = self.source.shared, None
        if self.warm_a is not None:
            a = np.minimum(self.warm_a * shared.cost, shared.upper)
        if self.warm is None:
            super().begin(None, a, shared.intercept_first and a is None)
        else:
            super().begin(self.source.from_the_mean(self.warm), a)

    def state(self):
        return self.kept()

    def go_on_from(self, kept):
        self.take_back(kept)

    def hand_over(self):
        return dict(decay=self.settings.smoothing_decay, **super().hand_over())

    def certain(self):
        """Whether rounding, added up over the sweeps, is nothing beside the objective and the tolerance."""
        size = self.source.shared.length * self.size
        return ROUNDING * size <= 1e-10 and ROUNDING * size * self.result.n_iter <= 0.01 * self.settings.tol

    def dual_variables(self):
        """-F'(z) of the rows, about: balanced where the intercept is free."""
        shared = self.source.shared
        a = self.sweeps.balanced()[0] if shared.free else self.a
        return shared.of_rows(a / np.where(shared.cost > 0, shared.cost, 1.0))
