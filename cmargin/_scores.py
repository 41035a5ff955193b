"""Scores of linear models, finite for finite rows."""

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

LARGEST = np.finfo(float).max


def linear_scores(X, coef, intercept):
    """<w_c, x_i> + b_c, (n, n_problems).

    In the precision of X. Where that overflows, a row's scores are computed again in float64 with the row scaled to 1,
    and what is larger than a double is the largest one: no score is NaN or infinite.

    Parameters
    ----------
    X : (n, m) array or CSR matrix, finite
    coef : (n_problems, m) array
    intercept : (n_problems,) array
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.asarray(safe_sparse_dot(X, coef.T.astype(X.dtype), dense_output=True)) + intercept
        bad = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if not len(bad):
            return scores
        scores = scores.astype(float)
        rows = X[bad].astype(float)
        size = abs(rows).max(axis=1)
        size = size.toarray().ravel() if hasattr(size, "toarray") else size
        size = np.where(size > 0, size, 1.0)
        largest = np.abs(coef).max(axis=1, initial=0.0).astype(float)
        largest = np.where(largest > 0, largest, 1.0)
        unit = rows.multiply(1 / size[:, None]).tocsr() if hasattr(rows, "toarray") else rows / size[:, None]
        low = safe_sparse_dot(unit, (coef / largest[:, None]).T, dense_output=True)       # at most m
        scores[bad] = np.clip(low * size[:, None] * largest + intercept, -LARGEST, LARGEST)
    return scores
