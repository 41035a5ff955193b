"""A sample of the rows as the dual of a smooth loss sees them: how many sweeps all rows would need."""

import numpy as np

from cmargin._core.rows._dual_sweeps import DualSweeps
from cmargin.solvers import cost
from cmargin.solvers.dual.dual_newton import stream_of

SEED = 31                      # of the order of its sweep


class SampleOfDual:
    """Rows of one problem, evenly spread; ``signed_weight``: (n_rows,) sample weights with the sign of the class."""

    def __init__(self, source, stats, signed_weight, l2, loss, intercept, free):
        n, m = stats.n_rows, stats.n_features
        wanted = cost.SPARSE_ROWS_WEIGHED if stats.sparse else max(cost.SWEPT_ROWS_PER_COLUMN * m,
                                                                   n // cost.ROWS_PER_SWEPT_ROW)
        picked = slice(None) if n <= wanted else spread(wanted, n)
        self.signed_weight, self.source, self.rows = signed_weight[picked], source.keep(picked), None
        weights = np.abs(self.signed_weight)
        if not weights.any():
            return
        try:
            with np.errstate(over="ignore"):
                rows = self.source.dual_rows(intercept, free, weights, l2 * n / weights.sum(), loss)
        except FloatingPointError:               # Newton's method scales columns
            return
        if rows.ridge.any():                     # else nothing costs anything beside such a penalty
            self.rows = rows

    def length_ratio(self):
        """Mean |x|^2 over the mean ridge, and the number of rows; None where there is nothing to sweep over."""
        if self.rows is None:
            return None
        square, ridge = self.rows.square, self.rows.ridge
        return (square - ridge).mean() / ridge.mean(), len(self.signed_weight)

    def own_part(self, source):
        """Mean ratio of |x|^2 to the ridge and what a row has to itself, and `length_ratio`'s; None as there.

        To itself a row has sum x_j^2 / n_j, where n_j rows have an entry in column j.
        """
        if self.rows is None:
            return None
        square, ridge = self.rows.square, self.rows.ridge
        own = ridge + source.own_squares(self.source)              # 0: an empty row of weight 0
        ratio = float(((square - ridge) / np.maximum(own, np.finfo(float).tiny)).mean())
        return ratio, float((square - ridge).mean() / ridge.mean())

    def without_margin(self):
        """Part of the rows that have no margin of 1: of the second half, those that a sweep moves.

        Each is judged when it is first met, so that it stands for rows to come and not for those that w was made of.
        """
        return part_moved(self.rows.row_pass(self.signed_weight))


def spread(count, n):
    """Some of n rows in steps of the golden section, which has no period; drawing them takes ten times as long."""
    return (np.arange(count) * 2_654_435_769 % 2**32 * n) >> 32


def part_moved(rows):
    """Of the rows that a first sweep meets last."""
    n = len(rows.signed_weight)
    a, half = np.zeros(n), n // 2
    sweeps = DualSweeps(rows, a, np.zeros(rows.shared.n_features + 1), stream_of(SEED).copy(), np.inf)
    sweeps.run(1, 0.0, half, np.inf)
    before = a > 0
    sweeps.run(1, 0.0, np.inf, np.inf)
    return np.count_nonzero((a > 0) & ~before) / (n - half)
