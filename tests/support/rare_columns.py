"""Rows of which the dual variables of a few decide over the gap: those that have a rare column."""

import numpy as np


def rows_with_rare_columns(n=24_000, seed=0, dtype=float):
    """Standardised: ten common columns, and eight indicators that a row in 100 to 700 has."""
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.standard_normal((n, 10)), rng.random((n, 8)) < 1 / np.linspace(100, 700, 8)])
    w = np.concatenate([rng.standard_normal(10), 3 * rng.standard_normal(8)])
    y = np.where(X @ w + 2 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return ((X - X.mean(axis=0)) / X.std(axis=0)).astype(dtype), y
