"""More columns than rows, no l1: the same problem in as many unknowns as there are rows.

The optimum is a combination of the rows. With X' = Q R, Q'Q = 1, and t = Q' w the margins are R' t and |w| = |t|:
training on the rows of R' is training on X, the Woodbury identity applied once instead of in every Newton step. Q is
orthogonal, so that neither way between w and t loses digits, however nearly the rows depend on each other; the Gram
matrix X X' would keep half of them.

Which rows add up to which is read off the Gram matrix of rows of length 1, by a Cholesky factor with pivots: rows whose
columns have mean 0 always have one that is the sum of the others, and copies are another case. How much of such a row
is its own is then summed from the rows themselves, as the Gram matrix knows half the digits of it.

Three ways to Q and R of the rest. Where they are far from dependent, by the Cholesky factor of their Gram matrix, Q =
X' R^-1 never made: what a condition of 1e5 loses is below the tolerances of a fit, which is certified on the rows
themselves. Where they are less so twice by such factors (CholeskyQR2: Yamamoto, Nakatsukasa, Yanagisawa, Fukaya 2015):
the second mends what the first lost, in three times the time. Else by Householder reflections, which take three times
that.
"""

import numpy as np
from scipy.linalg import qr
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dgeqrf, dormqr, dpocon, dpotrf, dpstrf, dtrtrs

from cmargin._core.rows._rows import Rows
from cmargin.data.memory.row_pass import MemoryRowPass

DEPENDENT = 1e-13              # part of a row not in the span of others below which it counts as in it
OWN = 1e-9                     # the square of such a part above which the Gram matrix knows that the row is not in it
FAR = 1e-5                     # reciprocal condition of the Gram matrix above which its factor is R as it is
NEARLY = 0.1                   # what the first factor may leave of Q'Q - 1 for the second to mend
IN_RANGE = 1e-280, 1e280       # squares of rows of which doubles hold all digits
AT_ONCE = 64                   # rows of which the part that is their own is in memory at a time


class WideRows:
    """R' of X' = Q R, as ``L`` (n_rows, rank), and the maps between w and t. X is seen as float64.

    Vectors ``beside`` the rows, (q, n_features), are rows of X here; ``beside`` (q, rank) is what they are in L.

    Q is ``reflectors``, or the rows ``places`` of ``basis`` times the inverse of ``factor``; a ``rotation`` may follow.
    """

    def __init__(self, source, least=0.0, beside=None):
        self.n_features, self.rotation, self.reflectors = source.n_features, None, None
        with np.errstate(over="ignore", invalid="ignore"):         # numbers too large: the solver says so, once
            A = source.as_dense() if beside is None else np.vstack([source.as_dense(), beside])
            if len(A) > source.n_features or not self.by_gram_matrix(A, least):
                self.by_reflections(A)
        self.L, self.beside = self.L[:source.n_rows], self.L[source.n_rows:]
        self.narrow = Rows(self.L)

    def by_gram_matrix(self, A, least):
        """L by one Cholesky factor or two; False where rows of A (n, m) are too nearly dependent, or out of range."""
        gram = A @ A.T
        square = np.diag(gram).copy()
        small = square < IN_RANGE[0]
        if not square.max(initial=0.0) < IN_RANGE[1] or A[small].any():
            return False
        length = np.where(small, 1.0, np.sqrt(square))
        gram /= length[:, None] * length
        kept, others = spanning(A, gram, length, least)
        among, beside = gram[np.ix_(kept, kept)], gram[np.ix_(kept, others)]
        first, info = dpotrf(among)
        if info != 0:
            return False
        self.basis, self.places, self.factor = A, kept, first * length[kept]
        own = self.factor.T
        if len(kept) and not dpocon(first, np.abs(among).sum(axis=0).max(initial=0.0))[0] > FAR:
            self.basis, self.places = dtrsm(1.0, self.factor, A[kept].T, side=1, overwrite_b=1).T, slice(None)
            K = self.basis @ self.basis.T                            # of Q1 = X' first^-1
            second, info = dpotrf(K)
            if info != 0 or not np.abs(K - np.eye(len(K))).max(initial=0.0) < NEARLY:
                return False
            own = self.without_dependent(second @ self.factor)
            first, self.factor, beside = second, second, self.basis @ A[others].T / length[others]
        self.L = np.empty((len(A), own.shape[1]))
        self.L[kept] = own
        if len(others):
            sums = self.turned(solved(first, beside, transposed=True)).T
            sums[np.abs(sums) < DEPENDENT] = 0.0     # or rounding alone would lead copies of a row along other rows
            self.L[others] = sums * length[others, None]
        return True

    def by_reflections(self, A):
        """L by Householder reflections of X', which know every digit of it."""
        self.basis = None
        A = np.array(A, order="C").T                               # a copy of X', in LAPACK's order
        work = int(dgeqrf(A, lwork=-1)[2][0])
        self.reflectors, self.tau, _, info = dgeqrf(A, lwork=work, overwrite_a=1)
        if info != 0:
            raise np.linalg.LinAlgError(f"dgeqrf failed with info={info}")
        self.L = np.ascontiguousarray(self.without_dependent(np.triu(self.reflectors[:min(A.shape)])))

    def without_dependent(self, R):
        """R' (n, rank): no direction in which only rounding tells rows apart.

        Without a penalty such a direction would separate contradictory copies of one row.
        """
        size = np.abs(R).max(initial=0.0) or 1.0                  # squares of R may be beyond the range of doubles
        length = size * np.linalg.norm(R / size, axis=0)
        own = np.abs(np.diag(R))
        if len(own) == R.shape[1] and (own > DEPENDENT * length).all():
            return R.T
        rotation, S, order = qr(R / np.where(length > 0, length, 1.0), mode="economic", pivoting=True,
                                check_finite=False)
        kept = np.count_nonzero(np.abs(np.diag(S)) > DEPENDENT * np.abs(S[0, 0])) if S.size else 0
        self.rotation = rotation[:, :kept]                          # w = Q rotation t
        L = np.zeros((R.shape[1], kept))
        S[np.abs(S) < DEPENDENT] = 0.0               # of rows of length 1: or rounding alone would lead some rows along
        L[order] = S[:kept].T * length[order, None]  # directions that only a row of weight 0 has
        return L

    def rows(self, signed_weight, intercept, n_threads, offset=None):
        rows = MemoryRowPass(self.narrow, signed_weight, intercept=intercept, n_threads=n_threads, offset=offset)
        rows.share = self.L.shape[1] / max(1, self.n_features)
        return rows

    def out_of(self, t, intercept):
        """w (with the intercept last) from t."""
        k, m = self.L.shape[1], self.n_features
        inner = t[:k] if self.rotation is None else self.rotation @ t[:k]
        if self.reflectors is None:
            c = np.zeros(len(self.basis))
            c[self.places] = solved(self.factor, inner)
            w = c @ self.basis
        else:
            w = self.reflect(np.concatenate([inner, np.zeros(m - len(inner))]), "N")
        return np.concatenate([w, t[k:]]) if intercept else w

    def into(self, w, intercept):
        """t from w: exact where w is a combination of the rows, else its projection."""
        m = self.n_features
        if self.reflectors is None:
            inner = solved(self.factor, (self.basis @ w[:m])[self.places], transposed=True)
        else:
            inner = self.reflect(np.array(w[:m], float), "T")[:min(self.reflectors.shape)]
        t = self.turned(inner)
        return np.concatenate([t, w[m:]]) if intercept else t

    def turned(self, inner):
        return inner if self.rotation is None else self.rotation.T @ inner

    def reflect(self, x, trans):
        """Q x or Q' x, (m,)."""
        A = self.reflectors[:, :len(self.tau)]
        if not len(self.tau):
            return x
        C = np.asfortranarray(x[:, None])
        work = int(dormqr("L", trans, A, self.tau, C, -1)[1][0])
        return dormqr("L", trans, A, self.tau, C, max(1, work), overwrite_c=1)[0][:, 0]


def solved(R, b, transposed=False):
    """x of R x = b, or of R' x = b, R upper triangular; b a vector or several, (rank, n)."""
    return dtrtrs(R, b, trans=int(transposed))[0] if len(b) else b


def spanning(A, gram, length, least):
    """The rows of A that span all but for parts no longer than ``least``, and the others.

    ``gram``: the Gram matrix of the rows over their ``length``.
    """
    factor, order, rank, _ = dpstrf(gram, tol=OWN)
    order = order.astype(np.intp) - 1
    kept, others, R = order[:rank], order[rank:], factor[:rank, :rank]
    alone = np.zeros(len(others), bool)
    for lo in range(0, len(others), AT_ONCE):
        some = others[lo:lo + AT_ONCE]
        alone[lo:lo + AT_ONCE] = are_alone(A, length, kept, R, some, gram[np.ix_(kept, some)] * length[some],
                                           least)
    return np.concatenate([kept, others[alone]]), others[~alone]


def are_alone(A, length, kept, R, some, products, least):
    """Whether what rows of A have beside all multiples of the rows ``kept`` is more than rounding, and than ``least``.

    R' R is the Gram matrix of the latter over their ``length``; ``products`` (n_kept, n_some) of them with the others.
    """
    own, size = A[some], np.where(A[some].any(axis=1), length[some], 0.0)
    for _ in range(2):                           # the second mends what the Gram matrix makes of the first
        parts = np.zeros((len(some), len(A)))
        parts[:, kept] = (solved(R, solved(R, products, transposed=True)) / length[kept, None]).T
        own -= parts @ A
        size = np.hypot(size, np.linalg.norm(parts * length, axis=1))
        alone = np.linalg.norm(own, axis=1) > np.maximum(DEPENDENT * size, least)
        if not alone.any():
            break
        products = (A @ own.T)[kept] / length[kept, None]
    return alone
