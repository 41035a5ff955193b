"""Slow, obvious NumPy twin of the one-class problem: objective, dual value, dual variables made feasible."""

import numpy as np


def objective(X, s, nu, w, rho):
    """1/2 |w|^2 - rho + 1/(nu N) sum s max(0, rho - <w, x>)."""
    return w @ w / 2 - rho + s @ np.maximum(0.0, rho - X @ w) / (nu * s.sum())


def feasible(s, nu, a):
    """Dual variables in [0, 1] with sum s a = nu sum s, from any in [0, 1]."""
    wanted, held = nu * s.sum(), s @ a
    if held > wanted:
        return a * wanted / held
    return a + (wanted - held) / (s.sum() - held) * (1 - a) if s.sum() > held else a


def bound(X, s, nu, a):
    """-1/2 |v|^2 of feasible dual variables."""
    v = X.T @ (s * a) / (nu * s.sum())
    return -v @ v / 2


def size(X, s, dual):
    """What a gap is relative to."""
    return max(-dual, 1e-6 * (s @ (X**2).sum(axis=1)) / s.sum() / 2)
