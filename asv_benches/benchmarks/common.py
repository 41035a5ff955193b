"""Data every benchmark file shares: bundled, so that asv needs nothing beside the checkout."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize


def digits(dtype=np.float64):
    """Digits, rows of unit length, split: X, X_test, y, y_test."""
    X, y = load_digits(return_X_y=True)
    return train_test_split(normalize(X).astype(dtype), y, random_state=3, stratify=y)


def gaussian_classes(n, d, n_classes, dtype=np.float32, seed=11):
    """Classes around random centres that overlap, rows of unit length."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = 0.35 * rng.standard_normal((n_classes, d))[y] + rng.standard_normal((n, d))
    return normalize((X * np.linspace(2, 0.2, d)).astype(dtype)), y


def noisy_plane(n, m, dtype=np.float64, seed=11):
    """Gaussian rows, labels -1 and +1 by a noisy plane: X (n, m), y (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m), dtype=np.float32).astype(dtype)
    y = np.where(X @ rng.standard_normal(m).astype(dtype) + 3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y
