"""Rows in memory as the dual sees them, one after the other, shared by all classes."""

import numpy as np

from cmargin._core.losses._losses import FACTS
from cmargin._core.rows._dual_rows import DualBlocks, squares
from cmargin._core.rows._rows import Rows
from cmargin.data.memory.reduced_rows import MOST_NUMBERS, worth_reducing
from cmargin.data.prices import FEW_COLUMNS, SMALLEST, has_ridges, may_begin_on_few, reads_of_newton, sampled_reads

FREE_BIAS = 0.5
DENSE = 0.02           # part of the entries that are stored from which on the mean row is subtracted
DIGITS = 1e-12         # of a row's length that may be lost when it is
NARROWEST, NARROW_NUMBERS = 16, 250_000       # columns and numbers from which on the dual is tried on fewer columns,
NARROW_LOOK = 3.0      # reads there before a first look
BY_DUAL = tuple(loss for loss, facts in FACTS.items() if not np.isnan(facts["dual_bend"]))
FEWEST_READS = 10      # that a fit of dense rows must have left for a trial, which takes three
LIGHT = 2.0            # mean C |x|^2 of CSR rows up to which the dual is taken for so few columns,
LIGHT_OF_MANY = 10.0   # of dense rows that are many,
LIGHT_OF_SAMPLED = 1.0 # and of such as Newton's steps by products are for,
SEEN = 1024            # of which so many are looked at
WORTH = 40             # reads that Newton's method on all columns must cost for the dual to be tried first,
ENOUGH = 0.6           # and the part of them after which it is given up
LARGEST_RIDGE = 1e200  # of a row that costs anything at all
SMOOTH_NARROWEST, SMOOTH_NUMBERS = 48, 400_000      # columns, and dense numbers, from which on a smooth loss tries it
SMOOTH_ENOUGH = 1.5    # part of what Newton's method costs there after which the dual is given up
SMOOTH_SPARSE = 120    # reads of sparse rows after which it is at the latest (doc/lab-notebook)


def worth_sweeping(home, l2, l1, linear_solver, line_search, loss):
    """True for rows whose curvature costs many reads of them, no l1, and l2 > 0; a smooth loss is looked at closer."""
    if linear_solver == "dual":
        if l1 > 0 or not l2 > 0 or line_search != "exact":
            raise ValueError("linear_solver='dual' needs l1=0, l2>0 and line_search='exact'.")
        return True
    if linear_solver != "auto" or line_search != "exact" or l1 > 0 or not l2 > 0:
        return False
    if not home.row_is_contiguous and home.entries > MOST_NUMBERS:
        return False                                                      # they would have to be copied
    if has_ridges(loss):
        reduced = not home.sparse and worth_reducing(home, l1, linear_solver, line_search)
        return home.n_features >= SMOOTH_NARROWEST and (home.sparse or home.entries >= SMOOTH_NUMBERS) \
            and (not reduced or reads_of_newton(home, True) > WORTH)
    if not home.sparse and home.n_features <= FEW_COLUMNS:
        return home.n_features >= NARROWEST and home.entries >= NARROW_NUMBERS and home.n_rows < SMALLEST
    if reads_of_newton(home) <= WORTH:
        return sampled_reads(home, False)[0] > 0 and rows_are_light(home, l2, LIGHT_OF_SAMPLED)
    if not home.sparse:
        return not may_begin_on_few(home) or rows_are_light(home, l2, LIGHT_OF_MANY)
    return home.n_features > FEW_COLUMNS or (home.n_features >= NARROWEST and rows_are_light(home, l2, LIGHT))


def rows_are_light(home, l2, most):
    """Whether a row's dual variable, at its bound, moves the row's own margin by little: few sweeps then do."""
    n = home.n_rows
    X = home.X if home.sparse else home.X[::-(-n // SEEN)]
    x = X.data if home.sparse else X.ravel()
    return np.einsum("i,i", x, x, dtype=float) <= most * l2 * n * X.shape[0]


def box_of(cost, loss):
    """(upper, ridge) of dual variables in units of 1/l2, where a unit of the loss costs ``cost``."""
    facts = FACTS[loss]
    with np.errstate(over="ignore"):                                      # no bound
        counts = cost * LARGEST_RIDGE > facts["dual_bend"]                # the bound of a row without is 0
        upper = np.where(counts, cost * facts["dual_largest"], 0.0)
    return upper, np.divide(facts["dual_bend"], cost, out=np.zeros(len(cost)), where=counts)


class DualRows:
    """What all problems on one matrix share.

    Parameters
    ----------
    home : MemoryHome
        Its CSR rows store no entry in parts.
    intercept : bool
        Append a column of constants ``bias``, the last entry of every vector of columns: ones,
    free : bool
        or, for an intercept that is not penalised, `FREE_BIAS` times the rows' typical length: the smaller, the less
        the column slows the sweeps, and the longer its multiplier takes. Reads of all rows at 1, 0.5, 0.3, 0.1 times:
        20, 15, 16, 23 and 87, 46, 43, 74 (20,000 text rows, C = 1 and 10), 56, 44, 43, 414 (sector, class 50, C = 10).
    weights : (n,) array or None
        Of the rows; ones.
    l2 : float
    loss : str
        One whose dual variables are worth a - bend a^2 / 2 each.
    """

    def __init__(self, home, intercept, free, weights, l2, loss):
        self.n_rows, self.n_features = home.n_rows, home.n_features
        self.rows = home.rows if home.row_is_contiguous else Rows(np.ascontiguousarray(home.X))
        smooth = has_ridges(loss)
        self.enough_reads = (SMOOTH_ENOUGH if smooth else ENOUGH) * reads_of_newton(home, smooth)
        self.dense = not home.sparse
        self.first_look = NARROW_LOOK if self.dense and self.n_features <= FEW_COLUMNS else np.inf
        self.density = 1.0 if self.dense else home.entries / max(1, self.n_rows * self.n_features)
        weights = np.ones(self.n_rows) if weights is None else weights
        self.cost = weights / (l2 * weights.sum())
        self.upper, self.ridge = box_of(self.cost, loss)
        self.square = np.zeros(self.n_rows)
        squares(self.rows, np.ones(max(1, self.n_features)), self.square)
        self.length = float(np.sqrt(self.square.mean()))                   # typical, of a row
        self.bias, self.free = float(intercept), free
        self.along, self.mean = np.zeros(self.n_rows), None
        if free and self.density >= DENSE:
            self.see_from_the_mean()
        if free:
            self.bias = FREE_BIAS * float(np.sqrt(self.square.mean())) or 1.0
        self.square += self.bias**2 + self.ridge
        if not np.isfinite(self.square).all():
            raise FloatingPointError("squares of the rows overflow")
        np.maximum(self.square, np.finfo(float).tiny, out=self.square)     # an empty row goes to its bound at once

    def see_from_the_mean(self):
        """Subtract the mean row from all, without touching them: for sum a y = 0 that leaves the problem as it is."""
        ones, everything, mean = np.ones(self.n_rows), np.arange(self.n_rows), np.zeros(self.n_features + 1)
        plain = DualBlocks(self.rows, ones, ones, self.along, ones, 0.0, False, self.density, self.along)
        plain.add(everything, ones / max(1, self.n_rows), mean)
        self.along, mean = plain.products(everything, mean), mean[:-1].copy()
        around = self.square - 2 * self.along + mean @ mean
        self.square, self.mean = np.maximum(around, DIGITS * (self.square + mean @ mean)), mean

    def from_the_mean(self, w):
        """(n_features + 1,) what ``w``, with an intercept where there is one, is for rows seen from their mean."""
        there = np.zeros(self.n_features + 1)
        there[:len(w)] = w
        if self.bias:
            shift = 0.0 if self.mean is None else there[:-1] @ self.mean
            there[-1] = (there[-1] + shift) / self.bias
        return there

    def row_pass(self, code):
        """The rows as problem ``code`` sees them."""
        return DualRowPass(self, code)


class DualRowPass(DualBlocks):
    """The rows of one problem; ``reads`` counts how many were read, in reads of all of them.

    Parameters
    ----------
    shared : DualRows
    code : (n,) array
        Sample weight with the sign of the class.
    """

    def __init__(self, shared, code):
        self.shared, self.code = shared, code
        super().__init__(shared.rows, code, shared.upper, shared.ridge, shared.square, shared.bias, shared.free,
                         shared.density, shared.along, shared.mean)
