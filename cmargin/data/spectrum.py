"""Eigenvalues of the second moment of a few rows, by whichever of its two matrices is smaller."""

import numpy as np
import scipy.sparse as sp

from cmargin.data.arrays import dense

NO_EIGENVALUE = 1e-12        # part of the largest, below which one is rounding's


def spectrum(X, weights, centred, graded):
    """Eigenvalues (r,) above rounding of sum s z z', over size²; (n, r) what √s z is of its eigenvectors, each of
    length 1; and size.

    X (n, m) float64 rows, dense or CSR; weights s (n,); z = x - mean where ``centred``. Size is that of the largest
    entry, whose square may be beyond the range. ``graded``: columns are so different that their squares, side by side,
    would lose the small ones.
    """
    size = np.abs(X.data if sp.issparse(X) else X).max(initial=0.0) or 1.0
    size = max(size, np.finfo(float).tiny)       # SciPy divides by the inverse of a number, which has to be finite
    return *_spectrum(X / size, weights, centred, graded), size


def _spectrum(X, weights, centred, graded):
    root = np.sqrt(weights)
    mean = np.asarray(X.T @ weights).ravel() / weights.sum() if centred else np.zeros(X.shape[1])
    if sp.issparse(X) and X.shape[1] >= X.shape[0]:          # rows are not centred in memory
        x_dot_mean = np.asarray(X @ mean).ravel()
        gram = dense(X @ X.T) - x_dot_mean[:, None] - x_dot_mean + mean @ mean
        return above_rounding(*np.linalg.eigh(root[:, None] * gram * root))
    Z = (dense(X) - mean) * root[:, None]
    if graded:
        vectors, singular, _ = np.linalg.svd(Z, full_matrices=False)
        kept = singular > NO_EIGENVALUE * singular[0]
        return singular[kept][::-1] ** 2, vectors[:, kept][:, ::-1]
    if Z.shape[1] >= Z.shape[0]:
        return above_rounding(*np.linalg.eigh(Z @ Z.T))
    values, vectors = above_rounding(*np.linalg.eigh(Z.T @ Z))
    return values, Z @ vectors / np.sqrt(values)


def above_rounding(values, vectors):
    kept = values > NO_EIGENVALUE * values[-1]
    return values[kept], vectors[:, kept]
