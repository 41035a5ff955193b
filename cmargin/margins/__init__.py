"""Diagnostics of margins and posteriors: arrays in, arrays out, estimators never needed.

Every function takes its rows as an array or as an iterator of row batches (a generator, say), so that scores of more
samples and classes than fit in memory can be looked at; labels are always the whole array.
"""

from cmargin.margins.metrics import binary_entropy, expected_calibration_error, top_k_accuracy, weak_separability
from cmargin.margins.posterior_margins import margin, margin_error

__all__ = [
    "binary_entropy",
    "expected_calibration_error",
    "margin",
    "margin_error",
    "top_k_accuracy",
    "weak_separability",
]
