"""Slow, obvious NumPy twins of what the compiled core computes. Read these first, then the kernels."""

import numpy as np

LOSS_VALUES = {
    "logistic": lambda z: np.logaddexp(0.0, -z),
    "calibrated_hinge": lambda z: np.maximum(0.0, -z) - np.log(2.0 + np.abs(z)),
    "squared": lambda z: (1.0 - z) ** 2 / 4.0,
    "hinge": lambda z: np.maximum(0.0, 1.0 - z),
    "smoothed_hinge": lambda z, width=1.0: ((1 - z) + np.sqrt(width**2 + (1 - z) ** 2)) / 2.0,
    "margin_pursuit": lambda z, level=1.0, scale=1.0: scale**2 * catoni_rho((level - z) / scale),
}


def catoni_rho(u):
    return np.where(np.abs(u) <= np.sqrt(2), u**2 / 2 - u**4 / 24, np.abs(u) * 2 * np.sqrt(2) / 3 - 0.5)


LOSS_SLOPES = {
    "logistic": lambda z: -1.0 / (1.0 + np.exp(z)),
    "calibrated_hinge": lambda z: (1.0 + np.maximum(0.0, z)) / (2.0 + np.abs(z)) - 1.0,
    "squared": lambda z: (z - 1.0) / 2.0,
}
CURVATURE_AT_ZERO = {"logistic": 0.25, "calibrated_hinge": 0.25, "squared": 0.5}


def posterior(loss, score):
    return np.clip(1.0 + LOSS_SLOPES[loss](score), 0.0, 1.0)
