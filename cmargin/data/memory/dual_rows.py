"""Rows in memory as the dual sees them, one after the other, shared by all classes."""

from functools import cached_property

import numpy as np

from cmargin._core.rows._dual_rows import DualBlocks, column_squares, squares
from cmargin._core.rows._rows import Rows
from cmargin.data.loss import HINGE

FREE_BIAS = 0.5
LEAST_BIAS = 4.0       # square of a free intercept's constant times the sum of C
DENSE = 0.02           # part of the entries stored: from it on the mean row is subtracted if the intercept is free,
                       # below it common columns are held near a centre
DIGITS = 1e-12         # of a row's length that may be lost when it is
LARGEST_RIDGE = 1e200  # of a row that costs anything at all


def box_of(cost, loss):
    """(upper, ridge) of dual variables in units of 1/l2, where a unit of the loss costs ``cost``."""
    facts = loss.facts
    with np.errstate(over="ignore"):                                      # no bound
        counts = cost * LARGEST_RIDGE > facts["dual_bend"]                # the bound of a row without is 0
        upper = np.where(counts, cost * facts["dual_largest"], 0.0)
    return upper, np.divide(facts["dual_bend"], cost, out=np.zeros(len(cost)), where=counts)


def typical(square):
    """A row's length, from their squares: the median, as few long rows are no measure of the others."""
    return float(np.sqrt(np.median(square[square > 0]))) if square.any() else 0.0


def seen_from_mean(rows, density, square):
    """The mean row (n_features,), its products with all rows (n,), and their squares seen from it, from ``square``."""
    n, m = rows.shape
    ones, nothing, everything, mean = np.ones(n), np.zeros(n), np.arange(n), np.zeros(m + 1)
    plain = DualBlocks(rows, ones, ones, nothing, ones, 0.0, False, density, nothing)
    plain.add(everything, ones / max(1, n), mean)
    x_dot_mean, mean = plain.products(everything, mean), mean[:-1].copy()
    around = square - 2 * x_dot_mean + mean @ mean
    return mean, x_dot_mean, np.maximum(around, DIGITS * (square + mean @ mean))


class DualRows:
    """What all problems on one matrix share.

    The CSR rows of ``source``, a `MemorySource`, store no entry in parts. ``intercept`` appends a column of constants
    ``bias``, the last entry of every vector of columns: ones, or where it is ``free``, not penalised, `FREE_BIAS` times
    the rows' median length: the smaller, the less the column slows the sweeps, and the longer its multiplier takes.
    Reads of all rows at 1, 0.5, 0.3, 0.1 times: 20, 15, 16, 23 and 87, 46, 43, 74 (20,000 text rows, C = 1 and 10), 56,
    44, 43, 414 (sector, class 50, C = 10). Beside a heavy penalty dual variables are so small that a step of the
    multiplier, bias^2 sum a y, would be short: the square is at least `LEAST_BIAS` over the sum of C. ``weights`` (n,),
    None: ones. The dual variables of ``loss`` add a - bend a^2 / 2 each to the bound. A loss of residuals with two
    kinks is two hinges a row, above the target and below it: what has a number for each dual variable has those of all
    rows above, then those of all rows below.
    """

    def __init__(self, source, intercept, free, weights, l2, loss, mean_from=DENSE):
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.rows = source.rows.in_few_bytes() if source.row_is_contiguous else Rows(np.ascontiguousarray(source.X))
        self.dense = not source.sparse
        self.density = 1.0 if self.dense else source.entries / max(1, self.n_rows * self.n_features)
        weights = np.ones(self.n_rows) if weights is None else weights
        self.cost = weights / (l2 * weights.sum())
        self.sides = loss.sides
        if self.sides is not None:
            self.cost, loss = np.outer(self.sides[:2], self.cost).ravel(), HINGE
        self.upper, self.ridge = box_of(self.cost, loss)
        self.square = np.zeros(self.n_rows)
        squares(self.rows, np.ones(max(1, self.n_features)), self.square)
        self.length = float(np.sqrt(self.square.mean()))                   # typical, of a row
        self.bias, self.free, self.intercept_first = float(intercept), free, False
        self.x_dot_mean, self.mean = np.zeros(self.n_rows), None
        if free and self.density >= mean_from:
            self.see_from_the_mean()
        if free:
            length = typical(self.square)
            self.bias = max(FREE_BIAS * length, float(np.sqrt(LEAST_BIAS / self.cost.sum()))) or 1.0
            # no row moves its own margin by 1: most have their largest dual variables, as they have where w is 0
            self.intercept_first = self.cost.mean() * length**2 <= 1
        if self.sides is not None:
            self.square, self.x_dot_mean = np.tile(self.square, 2), np.tile(self.x_dot_mean, 2)
        self.square += self.bias**2 + self.ridge
        if not np.isfinite(self.square).all():
            raise FloatingPointError("squares of the rows overflow")
        np.maximum(self.square, np.finfo(float).tiny, out=self.square)     # an empty row goes to its bound at once

    @cached_property
    def column_costs(self):
        """(n_features + 2,) sums of C x^2 of the columns, of the constants, and of C; None unless most are 0."""
        if self.density >= DENSE:
            return None
        cost, out = self.cost.reshape(-1, self.n_rows).sum(axis=0), np.empty(self.n_features + 2)
        column_squares(self.rows, cost, out[:-2])
        out[-2], out[-1] = self.bias**2 * cost.sum(), cost.sum()
        return out

    def see_from_the_mean(self):
        """Subtract the mean row from all, without touching them: for sum a y = 0 that leaves the problem as it is."""
        self.mean, self.x_dot_mean, self.square = seen_from_mean(self.rows, self.density, self.square)

    def row_pass(self, signed_weight, offset=None):
        """``offset`` (n_rows,): the targets of a loss of residuals."""
        if self.sides is None:
            return DualRowPass(self, signed_weight)
        up, down, flat = self.sides
        return DualRowPass(self, np.outer([up, -down], signed_weight).ravel(),
                           np.concatenate([offset - flat, -offset - flat]))

    def of_rows(self, a):
        """(n_rows,) -F'(z) from the dual variables over their largest."""
        if self.sides is None:
            return a
        return self.sides[0] * a[:self.n_rows] - self.sides[1] * a[self.n_rows:]


class DualRowPass(DualBlocks):
    """The rows of one problem; ``reads`` counts how many were read, in reads of all of them."""

    def __init__(self, shared, signed_weight, target=None):
        self.shared, self.signed_weight, self.bias = shared, signed_weight, shared.bias
        super().__init__(shared.rows, signed_weight, shared.upper, shared.ridge, shared.square, self.bias, shared.free,
                         shared.density, shared.x_dot_mean, shared.mean, target)

    def from_the_mean(self, w):
        """(n_features + 1,) what ``w``, with an intercept where there is one, is for rows seen from their mean."""
        there, mean = np.zeros(self.shared.n_features + 1), self.shared.mean
        there[:len(w)] = w
        if self.bias:
            shift = 0.0 if mean is None else there[:-1] @ mean
            there[-1] = (there[-1] + shift) / self.bias
        return there
