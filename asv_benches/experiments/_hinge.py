"""What the experiments of SmSVM share: its five data sets as its paper prepares them."""

from functools import lru_cache

import numpy as np
from sklearn.preprocessing import StandardScaler

from cmargin import datasets

FULL = ("australian", "colon", "covtype", "tall", "wide")
QUICK = ("breast_cancer", "wide")
CORRELATED, COMPONENTS = 0.7, 20       # colon, section 4.1.2 of the paper
LODGEPOLE = 1                          # class 2 of the paper


def colon_components(X):
    """(rows of `COMPONENTS` principal components, columns that were left): section 4.1.2.

    A column goes where its correlation with an earlier one that stayed is above 0.7; what is left is standardised.
    """
    X = StandardScaler().fit_transform(np.asarray(X, dtype=float))
    correlation = np.abs(X.T @ X) / len(X)
    kept = []
    for column in range(X.shape[1]):
        if not (correlation[column, kept] > CORRELATED).any():
            kept.append(column)
    U, S, _ = np.linalg.svd(X[:, kept], full_matrices=False)
    return U[:, :COMPONENTS] * S[:COMPONENTS], len(kept)


@lru_cache(maxsize=1)
def problem(name):
    """(X, y): float64 rows, not scaled, labels -1/+1."""
    data = datasets.load(name)
    if name == "covtype":
        return data.X.astype(float), np.where(data.y == LODGEPOLE, 1, -1)
    if name == "colon":
        return colon_components(data.X)[0], data.y
    return np.ascontiguousarray(data.X, dtype=float), data.y


def standardised(X, *others):
    """Columns scaled by the mean and deviation of the first array."""
    scaler = StandardScaler().fit(X)
    return tuple(scaler.transform(rows) for rows in (X, *others))
