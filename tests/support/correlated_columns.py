"""Rows on which an l1 penalty is hard to balance: columns mixed of a few factors, and labels without noise."""

import numpy as np


def correlated_columns(n, seed):
    """(n, 48) standardised columns of 13 factors and noise, and -1 or 1 by a score of a third of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 13)) @ rng.standard_normal((13, 48)) + 0.3 * rng.standard_normal((n, 48))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    score = X @ (rng.standard_normal(48) * (rng.random(48) < 0.3))
    return X, np.where(score > np.median(score), 1.0, -1.0)
