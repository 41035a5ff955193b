"""Rows so large that a Newton step moves them across the hinge and far beyond: few, and treated exactly.

A quadratic model is true for a row as long as its margin moves by no more than the smoothing width. Rows with a rare
indicator, standardised, have a norm hundreds of times the others': they alone spoil the step of all, and a line
search only shrinks it for everyone. They stay out of the curvature block, and the model becomes

    g'd + d'Hd/2 + their true smoothed hinge at w + d,       g, H of the other rows,

convex, minimised by Newton's method that reads those rows and no other.
"""

import numpy as np

from cmargin._core._line_search import exact_step
from cmargin._core._newton_system import cholesky_solve, l1_model_minimum

# Forest cover, class 2, l2 = 1e-3 / 1e-5 / 1e-7, worst passes of two seeds to a certified 1e-4: 9.7 / 11.7 / 19.7
# without heavy rows, 6.0 / 9.2 / 13.2 with them (doc/decisions.md)
LARGE = 6.0                    # times the median squared norm, columns weighted by their curvature
MOST = 0.02                    # of the rows
STEPS = 8


class HeavyRows:
    """The heavy rows of a pass, and the direction that treats them exactly."""

    def __init__(self, rows, index):
        self.rows = rows.subset(index, 1.0)
        self.in_block = True                   # the look that found them summed their curvature too

    @classmethod
    def among(cls, rows, norms):
        """The rows with the largest ``norms``, told to ``rows`` too; None if none stands out."""
        most = int(MOST * rows.n_rows)
        limit = LARGE * np.median(norms)
        if most < 1 or not limit > 0:
            return None
        limit = max(limit, np.partition(norms, -most - 1)[-most - 1])
        heavy = norms > limit
        if not heavy.any():
            return None
        rows.set_exact(heavy.astype(np.uint8))
        return cls(rows, np.flatnonzero(heavy))

    def look(self, newton, direction, step):
        rows, n, width = self.rows, newton.rows.total_weight, newton.width
        sums, gradient, hessian = rows.look(direction, step, width, width, 0.0)
        newton.result.passes += rows.share
        hessian = np.triu(hessian) / n
        hessian += np.triu(hessian, 1).T
        return sums[0] / n, gradient[0] / -n, hessian

    def direction(self, newton, upper):
        """argmin of the model; ``upper``: the curvature block of the other rows at w, penalty on the diagonal."""
        rows, n, w, l1 = self.rows, newton.rows.total_weight, newton.w, newton.l1_each
        rows.start()
        value, gradient, own = self.look(newton, w, 1.0)
        rest = np.triu(upper)
        rest += np.triu(upper, 1).T
        if self.in_block:
            rest -= own
            self.in_block = False
        g = newton.smooth_gradient - gradient
        d, most = np.zeros_like(w), 0.0
        for _ in range(STEPS):
            slope, H = g + rest @ d + gradient, rest + own
            at = w + d
            e = l1_model_minimum(H, slope, at, l1) if newton.l1 else -cholesky_solve(H, slope)[0]
            first = slope @ e + newton.l1_slope(at, e, 1)
            most = max(most, -first)
            if not -first > 0.02 * most:
                break
            before = value
            value, gradient, own = self.look(newton, e, 1.0)
            b, a = g @ e + d @ rest @ e, e @ rest @ e
            l1_change = l1 @ (np.abs(at + e) - np.abs(at))
            step = 1.0
            if value - before + b + a / 2 + l1_change > 1e-4 * first:
                def along(s, b=b, a=a):
                    _, slope, curvature = rows.along(s, newton.width)
                    return slope / n + b + s * a, curvature / n + a

                step, _ = exact_step(along, at, e, l1, 1.0, 1e-2)
                value, gradient, own = self.look(newton, None, step)
            d += step * e
        return d
