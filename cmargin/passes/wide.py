"""More columns than rows, no l1: the same problem in as many unknowns as there are rows.

The optimum is a combination of the rows, w = X' b, and enters through K = X X' = L L' alone: with t = L' b the margins
are L t and |w| = |t|. Training on the rows of L is training on X: the Woodbury identity, applied once instead of in
every Newton step. X is read twice, for K and for the way back.
"""

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from cmargin.passes.row_pass import MemoryRowPass

LARGEST = 2000                 # rows: L is square and dense
COLUMNS = 4096                 # of X at a time: float32 data are summed in float64 without a copy of X
MANY_COLUMNS = 4000            # from so many columns on the Newton system is not solved by a factor,
MANY_ROWS = 600                # and from so many on where there are no more rows than columns


def too_wide(n_rows, n_columns):
    """True where a factor of the curvature, p^3 / 3, and its block, n p^2, cost too much for what the rows tell."""
    return n_columns > (MANY_COLUMNS if n_columns < n_rows else MANY_ROWS)


def worth_reducing(X, l1, linear_solver, line_search):
    """True for data with more columns than rows, no l1 term, and a solver that does not say otherwise."""
    if linear_solver == "woodbury":
        if l1 > 0 or line_search != "exact":
            raise ValueError("linear_solver='woodbury' needs l1=0 and line_search='exact'.")
        return True
    n, m = X.shape
    return linear_solver == "auto" and line_search == "exact" and l1 == 0 and 1 < n <= LARGEST and m > 1.2 * n


class WideRows:
    """The square root L of the Gram matrix of X, and the maps between w and t."""

    def __init__(self, X):
        self.X = X
        n, m = X.shape
        if isinstance(X, np.ndarray):
            K = np.zeros((n, n))
            for lo in range(0, m, COLUMNS):
                part = X[:, lo:lo + COLUMNS].astype(float, copy=False)
                K += part @ part.T
        else:
            K = np.asarray((X.astype(float) @ X.T.astype(float)).todense())
        ridge, trace = 0.0, max(np.trace(K) / max(n, 1), np.finfo(float).tiny)
        while True:                             # duplicate rows leave K singular: a ridge at rounding level
            try:
                self.L = np.ascontiguousarray(cholesky(K, lower=True, check_finite=False))
                break
            except np.linalg.LinAlgError:
                ridge = 1e-14 * trace if ridge == 0 else 10 * ridge
                K[np.diag_indices(n)] += ridge

    def rows(self, code, intercept, n_threads):
        rows = MemoryRowPass(self.L, code, intercept=intercept, n_threads=n_threads)
        rows.share = self.X.shape[0] / self.X.shape[1]
        return rows

    def out_of(self, t, intercept):
        """w (with the intercept last) from t."""
        n = self.L.shape[0]
        b = solve_triangular(self.L, t[:n], lower=True, trans=1, check_finite=False)
        w = np.asarray(self.X.T @ b.astype(self.X.dtype, copy=False), float)
        return np.concatenate([w, t[n:]]) if intercept else w

    def into(self, w, intercept):
        """t from w: exact where w is a combination of the rows, else its projection."""
        m = self.X.shape[1]
        t = solve_triangular(self.L, np.asarray(self.X @ w[:m].astype(self.X.dtype), float), lower=True,
                             check_finite=False)
        return np.concatenate([t, w[m:]]) if intercept else t
