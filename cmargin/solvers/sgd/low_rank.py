"""Low-rank inverses of a second moment: which rank, what becomes of the tail, and the whitened coordinates.

One object holds one inverse for all classes or one for each; the leading axis of every array is that group.
"""

from dataclasses import dataclass, replace

import numpy as np

from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.solvers import cost


def knee(spectrum):
    """Index of the knee of a descending spectrum: where it lies furthest below its own chord.

    With both axes scaled to [0, 1], the index i >= 1 that maximises (1 - i/K) - (d_i - d_K)/(d_0 - d_K); the
    eigenvalues before it stand out, the one at it is the height of the plateau. 1 for fewer than three values.
    """
    d = np.asarray(spectrum, dtype=float)
    last = len(d) - 1
    if last < 2 or d[0] <= d[last]:
        return 1
    below_chord = (1 - np.arange(last) / last) - (d[:last] - d[last]) / (d[0] - d[last])
    return 1 + int(np.argmax(below_chord[1:]))


def automatic_rank(spectrum, trace, tail, n_samples):
    """Rule of ``rank="auto"``, from the leading eigenvalues and the sum of all.

    With the tail scaled: the knee, and on while one direction holds more than half of what is left (columns of very
    different scales). With the tail dropped, what is left out is lost: all eigenvalues of at least 1e-4 of the
    largest, but no more than 200 nor a quarter of the rows behind the estimate.
    """
    if tail == "drop":
        large = int(np.sum(spectrum >= cost.DROPPED_FLOOR * spectrum[0]))
        return max(1, min(large, most_pairs(tail), n_samples // cost.ROWS_PER_DROPPED_PAIR))
    rank = knee(spectrum)
    left = trace - np.sum(spectrum[:rank])
    while rank < len(spectrum) - 1 and spectrum[rank] > left / 2:
        left -= spectrum[rank]
        rank += 1
    return rank


def lower_rank_will_do(spectrum, rank):
    """Whether no direction but the first ``rank`` holds more than half of what they leave: columns of like scale."""
    left = np.sum(spectrum[rank:])
    return bool(len(spectrum) > rank and spectrum[rank] <= left / 2)


def default_samples(n_rows, n_features, rank, tail):
    """Rows behind H when none are asked for: 1000, or 20 for each of the ranks kept if the tail is dropped."""
    if tail == "scale":
        return min(n_rows, cost.MOMENT_ROWS)
    kept = min(most_pairs(tail) if rank == "auto" else rank, n_features)
    return min(n_rows, max(cost.MOMENT_ROWS, cost.MOMENT_ROWS_PER_PAIR * kept))


def most_pairs(tail):
    """The largest automatic rank."""
    return cost.AUTOMATIC_RANK_UP_TO[tail == "drop"]


@dataclass
class LowRankInverse:
    """H* = P D^-1 P' (tail dropped) or that plus (I - P P')/d_{k+1} (tail scaled), for every group.

    Attributes
    ----------
    eigenvectors : (n_groups, n_features, rank) array
    eigenvalues : (n_groups, rank) array, descending; 0 where the data had no further direction
    tail_eigenvalue : (n_groups,) array
        d_{k+1}; 0 where the tail is dropped.
    mean_square : (n_groups,) array
        Mean of x'H*x, the squared length of a whitened row, over the rows behind H.
    mean_curvature : (n_groups,) array
        Mean of the c_i in H: the second moment of the intercept's column.
    sparse_rows : bool
        Rows are CSR: a scaled tail is carried by the rows themselves.
    centre : (n_features,) float64 array or None
        What is taken from every row before it is whitened.
    columns : (n_kept,) int64 array or None
        Those that the eigenvectors have rows for, ascending, where the rest of many is empty; None: all.
    """

    eigenvectors: np.ndarray
    eigenvalues: np.ndarray
    tail_eigenvalue: np.ndarray
    mean_square: np.ndarray
    mean_curvature: np.ndarray
    sparse_rows: bool
    centre: np.ndarray | None = None
    columns: np.ndarray | None = None

    @property
    def n_groups(self):
        return len(self.eigenvalues)

    @property
    def rank(self):
        return self.eigenvalues.shape[1]

    @property
    def scales_tail(self):
        return bool(self.tail_eigenvalue[0] > 0)

    @property
    def full_width(self):
        """Whitened rows have n_features numbers (a scaled tail on dense rows), not ``rank``."""
        return self.scales_tail and not self.sparse_rows

    @property
    def width(self):
        return self.eigenvectors.shape[1] if self.full_width else self.rank

    @property
    def low_sign(self):
        """-1 where the low part of a row is what the scaled row has too much."""
        return -1.0 if self.scales_tail and self.sparse_rows else 1.0

    @property
    def tail_root(self):
        """(n_groups,) d_{k+1}^-1/2 of full-width rows, else 0."""
        return self.tail_eigenvalue**-0.5 if self.full_width else np.zeros(self.n_groups)

    @property
    def tail_inverse(self):
        """(n_groups,) 1/d_{k+1} where CSR rows carry the tail, else 0."""
        return 1 / self.tail_eigenvalue if self.scales_tail and self.sparse_rows else np.zeros(self.n_groups)

    @property
    def factor(self):
        """(n_groups, rank) numbers that P'x is multiplied by, see ``_whiten``."""
        there = self.eigenvalues > 0
        inverse = np.divide(1.0, self.eigenvalues, where=there, out=np.zeros_like(self.eigenvalues))
        if not self.scales_tail:
            return np.sqrt(inverse)
        tail = self.tail_eigenvalue[:, None]
        if self.full_width:
            return np.where(there, np.sqrt(inverse) - tail**-0.5, 0)
        return np.where(there, np.sqrt(np.maximum(1 / tail - inverse, 0)), 0)

    def apply(self, X, group=0):
        """H* x for every row of ``X`` (n, n_features); the literal form, for inspection."""
        P, (low, tail) = self.of_all(X.shape[1]).eigenvectors[group], self.diagonal(group)
        return ((X @ P) * low) @ P.T + tail * X

    def of_all(self, n_features):
        """This inverse, its eigenvectors and its centre with a place for each of the columns of X."""
        if self.columns is None:
            return self
        P = np.zeros((self.n_groups, n_features, self.rank), self.eigenvectors.dtype)
        P[:, self.columns] = self.eigenvectors
        centre = None if self.centre is None else np.zeros(n_features)
        if centre is not None:
            centre[self.columns] = self.centre
        return replace(self, eigenvectors=P, centre=centre, columns=None)

    def diagonal(self, group):
        """(low, tail) with H* = P diag(low) P' + tail I: (rank,) array and float."""
        d = self.eigenvalues[group]
        inverse = np.divide(1.0, d, where=d > 0, out=np.zeros_like(d))
        if not self.scales_tail:
            return inverse, 0.0
        tail = 1 / self.tail_eigenvalue[group]
        return np.where(d > 0, inverse - tail, 0), tail

    def weights(self, U, V):
        """w of every class: U (n_classes, width) is whitened, V an iterable of rows (n_features,), or None."""
        V = None if V is None else iter(V)
        if self.n_groups == 1:
            return self._weights(0, U, V)
        W = np.empty((len(U), self.eigenvectors.shape[1]), U.dtype)
        for g in range(self.n_groups):
            W[g] = self._weights(g, U[g : g + 1], V)[0]
        return W

    def _weights(self, g, U, V):
        P, factor = self.eigenvectors[g], self.factor[g].astype(U.dtype)
        if self.full_width:
            return U.dtype.type(self.tail_root[g]) * U + ((U @ P) * factor) @ P.T
        W = (U * factor) @ P.T
        if V is not None:
            # class by class, as W may be most of the memory there is; the iterator goes on in the next group
            for w, v in zip(W, V, strict=False):
                np.subtract(U.dtype.type(self.tail_inverse[g]) * v, w, out=w)
        return W

    def whitened(self, W):
        """(U, V) with ``weights(U, V) == W``; where the tail is dropped, of W's part in the span. One group only."""
        P, dtype = self.eigenvectors[0], W.dtype
        roots = np.sqrt(self.eigenvalues[0])
        if self.full_width:
            root = np.sqrt(self.tail_eigenvalue[0])
            change = np.where(roots > 0, roots - root, 0)
            return (dtype.type(root) * W + ((W @ P) * change.astype(dtype)) @ P.T).astype(dtype), None
        if self.scales_tail:
            return np.zeros((len(W), self.rank), dtype), dtype.type(self.tail_eigenvalue[0]) * W
        return ((W @ P) * roots.astype(dtype)).astype(dtype), None

    @single_threaded_blas()
    def spans(self, W):
        """Whether weights ``W`` can be written in this basis: one group, and their part in the span is all of them."""
        if self.n_groups > 1:
            return False
        lost = W - self.weights(*self.whitened(W))
        return bool(np.linalg.norm(lost) <= 1e3 * np.finfo(W.dtype).eps * np.linalg.norm(W))


def build_inverse(source, subset, curvature, rank, tail, weight=None, centre=None):
    """Estimate H from ``subset`` and invert it.

    Parameters
    ----------
    source : StochasticRows
    subset : (m,) int64 array of rows
    curvature : (n_groups, m) array, the c_i
    rank : "auto" or int
    tail : "drop" or "scale"
    weight : (m,) array or None
        Weights of the rows in ``mean_square``.
    centre : (n_features,) array or None
        H is the second moment about it.

    Returns
    -------
    inverse : LowRankInverse
    spectrum : (n_values,) array, the eigenvalues of the first group that were computed
    """
    order = min(len(subset), source.n_features)
    wanted = (most_pairs(tail) if rank == "auto" else rank) + 1
    n_values = min(order, wanted)

    def chosen(spectrum, trace):
        return min(automatic_rank(spectrum, trace, tail, len(subset)), n_values)

    k = chosen if rank == "auto" else min(rank, n_values)
    values, _, vectors = source.leading_pairs(subset, curvature, k, n_values, centre)
    spectrum, kept = values[0].copy(), vectors.shape[2]
    d = values[:, :kept]
    d_tail = values[:, kept] if tail == "scale" and n_values > kept else np.zeros(len(values))
    if tail == "scale" and kept < source.n_features:
        # where the next eigenvalue is zero or was not to be had, the tail takes the smallest one inverted: dropping
        # it would be another method
        smallest = np.where(d > 0, d, np.inf).min(axis=1)
        d_tail = np.where(d_tail > 0, d_tail, np.where(np.isfinite(smallest), smallest, 1.0))
    inverse = LowRankInverse(vectors, d, d_tail, np.zeros(len(d)), curvature.mean(axis=1), source.sparse, centre)
    inverse.mean_square = source.mean_square(inverse, subset, weight)
    return inverse, spectrum
