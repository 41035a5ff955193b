"""CSR rows in memory as the dual sees them: products with listed rows and sums of them, shared by all classes."""

import numpy as np

from cmargin._core.rows import _dual_rows
from cmargin.homes.wide import too_wide

FREE_BIAS = 0.5
FEW_COLUMNS = 128      # up to which Newton's method on all columns is best whatever the rows
WORTH = 60             # reads that Newton's method on all columns must cost for the dual to be tried first,
ENOUGH = 0.6           # and the part of them after which it is given up


def reads_of_newton(home):
    """What ten looks at CSR rows with their curvature, and the factors, cost in reads of the rows, about."""
    n, m = home.n_rows, home.n_features
    each = max(1.0, home.entries / max(1, n))
    return 10 * (0.36 * each + 0.01 * m**3 / (3 * max(1, n) * each))      # measured, doc/decisions.md


def worth_sweeping(home, l2, l1, linear_solver, line_search):
    """True for CSR rows whose curvature costs many reads of them, no l1, and l2 > 0."""
    if linear_solver == "dual":
        if l1 > 0 or not l2 > 0 or line_search != "exact" or not home.sparse:
            raise ValueError("linear_solver='dual' needs CSR data, l1=0, l2>0 and line_search='exact'.")
        return True
    if not home.sparse or linear_solver != "auto" or line_search != "exact" or l1 > 0 or not l2 > 0:
        return False
    return too_wide(home.n_rows, home.n_features) or (
        home.n_features > FEW_COLUMNS and reads_of_newton(home) > WORTH)


class SparseRows:
    """What all problems on one CSR matrix share.

    Parameters
    ----------
    home : MemoryHome
        Of a CSR matrix without repeated entries.
    intercept : bool
        Append a column of constants ``bias``, the last entry of every vector of columns: ones,
    free : bool
        or, for an intercept that is not penalised, `FREE_BIAS` times the rows' typical length: the smaller, the less
        the column slows the sweeps, and the longer its multiplier takes. Reads of all rows at 1, 0.5, 0.3, 0.1 times:
        20, 15, 16, 23 and 87, 46, 43, 74 (20,000 text rows, C = 1 and 10), 56, 44, 43, 414 (sector, class 50, C = 10).
    """

    def __init__(self, home, intercept, free):
        X, self.n_rows, self.n_features = home.X, home.n_rows, home.n_features
        self.enough_reads = np.inf if too_wide(self.n_rows, self.n_features) else ENOUGH * reads_of_newton(home)
        self.values, self.columns = np.ascontiguousarray(X.data), np.ascontiguousarray(X.indices)
        if not len(self.values):                           # kernels point at the first entry
            self.values, self.columns = np.zeros(1, self.values.dtype), np.zeros(1, self.columns.dtype)
        self.starts = np.ascontiguousarray(X.indptr, np.int64)
        self.density = len(self.values) / max(1, self.n_rows * self.n_features)
        self.all_rows = np.arange(self.n_rows, dtype=np.intp)
        self.square = np.zeros(self.n_rows)
        _dual_rows.add_squares(self.values, self.starts, self.square)
        self.bias = float(intercept)
        if free:
            self.bias = FREE_BIAS * float(np.sqrt(self.square.mean())) or 1.0
        self.square += self.bias**2
        np.maximum(self.square, np.finfo(float).tiny, out=self.square)     # an empty row goes to its bound at once

    def row_pass(self, code):
        """The rows as problem ``code`` sees them."""
        return DualRowPass(self, code)


class DualRowPass:
    """The rows of one problem; ``reads`` counts how many were read, in reads of all of them.

    Parameters
    ----------
    rows : SparseRows
    code : (n,) array
        Sample weight with the sign of the class; only the sign is used here.
    """

    def __init__(self, rows, code):
        self.shared, self.code = rows, code
        self.data = (rows.values, rows.columns, rows.starts, code)
        self.reads = 0.0

    def count(self, n):
        self.reads += n / max(1, self.shared.n_rows)

    def deficits(self, rows, w):
        """(n,) u_i = 1 - y_i <w, (x_i, bias)> of the listed rows."""
        u = np.empty(len(rows))
        _dual_rows.products(*self.data, rows, self.shared.bias, w, u)
        self.count(len(rows))
        return np.subtract(1.0, u, out=u)

    def add(self, rows, c, v):
        """v += sum c y x over the listed rows."""
        _dual_rows.add(*self.data, rows, c, self.shared.bias, v)
        self.count(np.count_nonzero(c))

    def sweep(self, order, low, high, upper, a, w):
        """See `_dual_rows.sweep`."""
        self.count(len(order))
        return _dual_rows.sweep(*self.data, order, low, high, upper, self.shared.square, self.shared.bias, a, w)

    def cg_pass(self, rows, upper, a, square, step, direction, residual, scaled, total):
        """See `_dual_rows.cg_pass`."""
        self.count(len(rows))
        return _dual_rows.cg_pass(*self.data, rows, upper, a, square, self.shared.bias, step, direction,
                                  residual, scaled, total)
