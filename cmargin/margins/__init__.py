"""Diagnostics of margins and posteriors: arrays in, arrays out, estimators never needed.

Every function takes its rows as an array or as an iterator of row batches (a generator, say), so that scores of more
samples and classes than fit in memory can be looked at; labels are always the whole array.
"""

from cmargin.margins.bounds import ExcessRiskBound, excess_risk_bound
from cmargin.margins.location import confidence_radius, confidence_scale, location_estimate
from cmargin.margins.metrics import binary_entropy, expected_calibration_error, top_k_accuracy, weak_separability
from cmargin.margins.posterior_margins import margin, margin_error
from cmargin.margins.psi import cubic_roots, psi_inverse, psi_transform
from cmargin.margins.rankings import (
    label_propensities,
    ndcg_at_k,
    precision_at_k,
    ps_ndcg_at_k,
    ps_precision_at_k,
)
from cmargin.margins.summary import margin_summary
from cmargin.margins.thresholds import label_thresholds

__all__ = [
    "ExcessRiskBound",
    "binary_entropy",
    "confidence_radius",
    "confidence_scale",
    "cubic_roots",
    "excess_risk_bound",
    "expected_calibration_error",
    "label_propensities",
    "label_thresholds",
    "location_estimate",
    "margin",
    "margin_error",
    "margin_summary",
    "ndcg_at_k",
    "precision_at_k",
    "ps_ndcg_at_k",
    "ps_precision_at_k",
    "psi_inverse",
    "psi_transform",
    "top_k_accuracy",
    "weak_separability",
]
