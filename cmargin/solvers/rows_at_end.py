"""What a fit has ended with in every row, and the risk and the gain between two fits that follow without reading X.

Where slacks u and dual variables a of every row are known at two points, they are known at every part of the way
between these: sums over rows of numbers kept per row, for a few columns' worth of a read. What the two points' own sums
prove there, by convexity, loses by the square of their distance; this loses by its fourth power about, which is how far
the straight way is from the path of optima (doc/lab-notebook, "Between two fits of a path, by every row").
"""

import numpy as np

from cmargin._core.rows._line_sums import between


class RowsAtEnd:
    """Of a fit with a loss of a margin, (n_rows,) arrays. The gain of the hinge is linear, and needs none."""

    def __init__(self, rows, loss, sides, n_threads):
        """``rows``: the `RowPass` of the fit; ``sides``: `Newton.sides_at_end`, None for the hinge."""
        self.signed_weight, self.total_weight = rows.signed_weight, rows.total_weight
        self.loss, self.n_threads = loss, n_threads
        slack, self.a = rows.margins(), None if sides is None else rows.dual_variables()
        self.slack = np.subtract(1, slack, out=slack)
        for side, factor in zip((self.signed_weight >= 0, self.signed_weight < 0), sides or (), strict=False):
            if factor != 1:
                np.multiply(self.a, factor, out=self.a, where=side)

    def risk(self, other, part):
        """R at ``part`` of these weights and the rest of another fit's."""
        return between(self.loss, False, self.signed_weight, self.slack, other.slack, part,
                       self.n_threads) / self.total_weight

    def gain(self, other, part):
        """S at ``part`` of these dual variables and the rest of another fit's."""
        return between(self.loss, True, self.signed_weight, self.a, other.a, part, self.n_threads) / self.total_weight


def rows_at_end(driver, loss, smooth):
    """`RowsAtEnd` of a driver that has ended; None where that is not where its best point and bound are of."""
    sides = driver.sides_at_end()
    if driver.status != "converged" or not driver.is_at_best or (smooth and sides is None):
        return None
    return RowsAtEnd(driver.source, loss, sides if smooth else None, driver.source.n_threads)
