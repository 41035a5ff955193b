"""Rows in memory as the dual sees them: products with listed rows and sums of them, shared by all classes."""

import numpy as np

from cmargin._core.rows import _dual_rows
from cmargin._core.rows._dual_rows import Centre
from cmargin._core.rows._dual_sweeps import DualSweeps
from cmargin._core.rows._rows import Rows
from cmargin.homes.wide import MOST_NUMBERS, too_wide, worth_reducing

FREE_BIAS = 0.5
SLICE = 100_000_000    # entries read between two moments at which Ctrl-C is heard: a tenth of a second
DENSE = 0.02           # part of the entries that are stored from which on the mean row is subtracted
DIGITS = 1e-12         # of a row's length that may be lost when it is
FEW_COLUMNS = 128      # up to which Newton's method on all columns is best whatever the rows
CG_READS = 1000        # of Newton's method by products with rows
WORTH = 40             # reads that Newton's method on all columns must cost for the dual to be tried first,
ENOUGH = 0.6           # and the part of them after which it is given up


def reads_of_newton(home):
    """What Newton's method on all columns costs in reads of the rows, about: some looks with curvature, and factors."""
    n, m = home.n_rows, home.n_features
    if not home.sparse:
        if worth_reducing(home, 0.0, "auto", "exact"):                    # as many unknowns as rows, through X' = QR
            return 0.2 * n + 16 * n / m * (5 + 0.045 * n)
        if too_wide(n, m):
            return CG_READS
        return 16 * (5 + 0.025 * m + 0.02 * m**2 / max(1, n))             # measured, doc/decisions.md
    if too_wide(n, m):
        return np.inf
    each = max(1.0, home.entries / max(1, n))
    return 10 * (0.36 * each + 0.01 * m**3 / (3 * max(1, n) * each))      # measured, doc/decisions.md


def worth_sweeping(home, l2, l1, linear_solver, line_search):
    """True for rows whose curvature costs many reads of them, no l1, and l2 > 0."""
    if linear_solver == "dual":
        if l1 > 0 or not l2 > 0 or line_search != "exact":
            raise ValueError("linear_solver='dual' needs l1=0, l2>0 and line_search='exact'.")
        return True
    if linear_solver != "auto" or line_search != "exact" or l1 > 0 or not l2 > 0:
        return False
    if not home.row_is_contiguous and home.entries > MOST_NUMBERS:
        return False                                                      # they would have to be copied
    return home.n_features > FEW_COLUMNS and reads_of_newton(home) > WORTH


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
    """

    def __init__(self, home, intercept, free):
        self.n_rows, self.n_features = home.n_rows, home.n_features
        self.rows = home.rows if home.row_is_contiguous else Rows(np.ascontiguousarray(home.X))
        self.enough_reads = ENOUGH * reads_of_newton(home)
        self.dense = not home.sparse
        self.density = 1.0 if self.dense else home.entries / max(1, self.n_rows * self.n_features)
        self.all_rows = np.arange(self.n_rows, dtype=np.intp)
        self.square = np.zeros(self.n_rows)
        _dual_rows.squares(self.rows, np.ones(max(1, self.n_features)), self.square)
        self.length = float(np.sqrt(self.square.mean()))                   # typical, of a row
        self.bias, self.free = float(intercept), free
        self.centre, self.mean = Centre(self.n_rows), np.zeros(self.n_features)
        if free and self.density >= DENSE:
            self.see_from_the_mean()
        if free:
            self.bias = FREE_BIAS * float(np.sqrt(self.square.mean())) or 1.0
        self.square += self.bias**2
        np.maximum(self.square, np.finfo(float).tiny, out=self.square)     # an empty row goes to its bound at once

    def see_from_the_mean(self):
        """Subtract the mean row from all, without touching them: for sum a y = 0 that leaves the problem as it is."""
        ones, along, mean = np.ones(self.n_rows), np.zeros(self.n_rows), np.zeros(self.n_features + 1)
        _dual_rows.add(self.rows, self.centre, ones, self.all_rows, ones / max(1, self.n_rows), 0.0, mean)
        _dual_rows.products(self.rows, self.centre, ones, self.all_rows, 0.0, mean, along)
        mean = mean[:-1].copy()
        self.centre, self.mean = Centre(self.n_rows, mean, along), mean
        around = self.square - 2 * along + mean @ mean
        self.square = np.maximum(around, DIGITS * (self.square + mean @ mean))

    def intercept(self, w):
        """Of the rows as they are, from w of rows seen from the mean."""
        return self.bias * w[-1] - w[:-1] @ self.mean

    def multiplier(self, w, intercept):
        """The last entry that belongs to an intercept."""
        return (intercept + w[:-1] @ self.mean) / self.bias

    def row_pass(self, code):
        """The rows as problem ``code`` sees them."""
        return DualRowPass(self, code)


class DualRowPass:
    """The rows of one problem; ``reads`` counts how many were read, in reads of all of them.

    Parameters
    ----------
    shared : DualRows
    code : (n,) array
        Sample weight with the sign of the class; only the sign is used here.
    """

    def __init__(self, shared, code):
        self.shared, self.code = shared, code
        self.reads = 0.0

    def count(self, n):
        self.reads += n / max(1, self.shared.n_rows)

    def deficits(self, rows, w):
        """(n,) u_i = 1 - y_i <w, (x_i, bias)> of the listed rows."""
        u = np.empty(len(rows))
        _dual_rows.products(self.shared.rows, self.shared.centre, self.code, rows, self.shared.bias, w, u)
        self.count(len(rows))
        return np.subtract(1.0, u, out=u)

    def add(self, rows, c, v):
        """v += sum c y x over the listed rows."""
        _dual_rows.add(self.shared.rows, self.shared.centre, self.code, rows, c, self.shared.bias, v)
        self.count(np.count_nonzero(c))

    def sweeps(self, upper, a, w, stream, patience):
        """`DualSweeps` that change ``a`` and ``w``."""
        shared = self.shared
        return DualSweeps(shared.rows, shared.centre, self.code, upper, shared.square, a, w, shared.bias, shared.free,
                          shared.density, stream, patience)

    def sweep(self, sweeps, at_most, tol, allowed, hopeless=np.inf):
        """See `DualSweeps.run`; ``allowed`` and ``hopeless`` in reads of all rows. A tenth of a second at most."""
        shared = self.shared
        slice_rows = max(1, int(SLICE / (1 + shared.density * shared.n_features)))
        answer = sweeps.run(at_most, tol, slice_rows, allowed * shared.n_rows, hopeless * shared.n_rows)
        self.count(sweeps.rows_read)
        return answer

    def balanced(self, sweeps):
        """See `DualSweeps.balanced`."""
        a, w, n_read = sweeps.balanced()
        self.count(n_read)
        return a, w

    def cg_pass(self, rows, upper, a, square, step, direction, residual, scaled, total):
        """See `_dual_rows.cg_pass`."""
        self.count(len(rows))
        shared = self.shared
        return _dual_rows.cg_pass(shared.rows, shared.centre, self.code, rows, upper, a, square, shared.bias, step,
                                  direction, residual, scaled, total)

    def cg_steps(self, rows, upper, a, square, *arguments, allowed, at_most):
        """See `_dual_rows.cg_steps`; ``allowed`` in reads of all rows. A tenth of a second at most, or one pass."""
        shared, n = self.shared, max(1, len(rows))
        slice_of = SLICE / (n * (1 + shared.density * shared.n_features))
        at_most = max(1, int(min(at_most, slice_of, 1 + allowed * shared.n_rows / n)))
        answer = _dual_rows.cg_steps(shared.rows, shared.centre, self.code, rows, upper, a, square, shared.bias,
                                     *arguments, at_most)
        self.count(answer[0] * len(rows))
        return answer
