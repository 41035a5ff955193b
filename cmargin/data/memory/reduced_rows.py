"""More columns than rows, no l1: the same problem in as many unknowns as there are rows.

The optimum is a combination of the rows. With X' = Q R, Q'Q = 1, and t = Q' w the margins are R' t and |w| = |t|:
training on the rows of R' is training on X, the Woodbury identity applied once instead of in every Newton step. Q is
orthogonal, so that neither way between w and t loses digits, however nearly the rows depend on each other; the Gram
matrix X X' would keep half of them.

Three ways to Q and R. Where the rows are far from dependent, by the Cholesky factor of their Gram matrix, Q = X' R^-1
never made: what a condition of 1e5 loses is below the tolerances of a fit, which is certified on the rows themselves.
Where they are less so twice by such factors (CholeskyQR2: Yamamoto, Nakatsukasa, Yanagisawa, Fukaya 2015): the second
mends what the first lost, in three times the time. Else by Householder reflections, which take three times that.
"""

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dgeqrf, dormqr, dpocon, dpotrf

from cmargin._core.rows._rows import Rows
from cmargin.data.memory.row_pass import MemoryRowPass

DEPENDENT = 1e-13              # part of a row not in the span of those before below which it counts as in it
FAR = 1e-5                     # reciprocal condition of the Gram matrix above which its factor is R as it is
NEARLY = 0.1                   # what the first factor may leave of Q'Q - 1 for the second to mend


class WideRows:
    """R' of X' = Q R, and the maps between w and t. X is seen as float64."""

    def __init__(self, source):
        self.n_features, self.rank = source.n_features, min(source.n_rows, source.n_features)
        self.rotation = self.reflectors = None
        with np.errstate(over="ignore", invalid="ignore"):         # numbers too large: the solver says so, once
            A = source.as_dense()
            R = self.by_gram_matrix(A) if source.n_rows <= source.n_features else None
            if R is None:
                self.reflectors, self.tau = self.factor(A.copy().T)
                R = np.triu(self.reflectors[:self.rank])
            self.L = np.ascontiguousarray(R.T)
            self.drop_dependent(R)
        self.narrow = Rows(self.L)

    def by_gram_matrix(self, A):
        """R by one Cholesky factor or two, or None where the rows (n, m) are too nearly dependent."""
        gram = A @ A.T
        first, info = dpotrf(gram)
        if info != 0 or not np.isfinite(first).all():
            return None
        if dpocon(first, np.abs(gram).sum(axis=0).max(initial=0.0))[0] > FAR:
            self.basis, self.second = A, first
            return first
        A = dtrsm(1.0, first, A.copy().T, side=1, overwrite_b=1).T       # Q1 = X' first^-1
        K = A @ A.T
        second, info = dpotrf(K)
        if info != 0 or not np.abs(K - np.eye(len(K))).max(initial=0.0) < NEARLY:
            return None
        self.basis, self.second = A, second                              # Q = Q1 second^-1
        return second @ first

    @staticmethod
    def factor(A):
        """Reflectors of Q over R, and their factors; A = X' in LAPACK's order is overwritten."""
        work = int(dgeqrf(A, lwork=-1)[2][0])
        reflectors, tau, _, info = dgeqrf(A, lwork=work, overwrite_a=1)
        if info != 0:
            raise np.linalg.LinAlgError(f"dgeqrf failed with info={info}")
        return reflectors, tau

    def drop_dependent(self, R):
        """Rows that depend on others: no direction in which only rounding tells them apart.

        Without a penalty such a direction would separate contradictory copies of one row.
        """
        size = np.abs(R).max(initial=0.0) or 1.0                  # squares of R may be beyond the range of doubles
        length = size * np.linalg.norm(R / size, axis=0)
        own = np.abs(np.diag(R))
        if len(own) == R.shape[1] and (own > DEPENDENT * length).all():
            return
        rotation, S, order = qr(R / np.where(length > 0, length, 1.0), mode="economic", pivoting=True,
                                check_finite=False)
        kept = np.count_nonzero(np.abs(np.diag(S)) > DEPENDENT * np.abs(S[0, 0])) if S.size else 0
        self.rotation = rotation[:, :kept]                          # w = Q rotation t
        L = np.zeros((R.shape[1], kept))
        S[np.abs(S) < DEPENDENT] = 0.0               # of rows of length 1: or rounding alone would lead some rows along
        L[order] = S[:kept].T * length[order, None]  # directions that only a row of weight 0 has
        self.L = L

    def rows(self, signed_weight, intercept, n_threads):
        rows = MemoryRowPass(self.narrow, signed_weight, intercept=intercept, n_threads=n_threads)
        rows.share = self.L.shape[1] / max(1, self.n_features)
        return rows

    def out_of(self, t, intercept):
        """w (with the intercept last) from t."""
        k, m = self.L.shape[1], self.n_features
        inner = t[:k] if self.rotation is None else self.rotation @ t[:k]
        if self.reflectors is None:
            w = self.basis.T @ solve_triangular(self.second, inner, check_finite=False)
        else:
            w = self.reflect(np.concatenate([inner, np.zeros(m - self.rank)]), "N")
        return np.concatenate([w, t[k:]]) if intercept else w

    def into(self, w, intercept):
        """t from w: exact where w is a combination of the rows, else its projection."""
        m = self.n_features
        if self.reflectors is None:
            inner = solve_triangular(self.second, self.basis @ w[:m], trans="T", check_finite=False)
        else:
            inner = self.reflect(np.array(w[:m], float), "T")[:self.rank]
        t = inner if self.rotation is None else self.rotation.T @ inner
        return np.concatenate([t, w[m:]]) if intercept else t

    def reflect(self, x, trans):
        """Q x or Q' x, (m,)."""
        if not self.rank:
            return x
        C = np.asfortranarray(x[:, None])
        A = self.reflectors[:, :self.rank]
        work = int(dormqr("L", trans, A, self.tau, C, -1)[1][0])
        return dormqr("L", trans, A, self.tau, C, max(1, work), overwrite_c=1)[0][:, 0]
