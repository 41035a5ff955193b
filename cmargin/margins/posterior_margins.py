"""Margins read as posteriors, and the share of them below a threshold (BSN eq. 6 and 7)."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cmargin._core.losses import _losses
from cmargin._core.losses._losses import CALIBRATED
from cmargin.margins._batches import Batches, as_real, labelled_blocks, row_blocks


def margin(scores: Batches, y: ArrayLike, loss: str | None = "logistic") -> np.ndarray:
    """Margin of every sample.

    With one score per class the margin looks at the predicted class, î = argmax_c h_c(x_i): μ_i = f(y_{i,î} h_î(x_i)),
    y_{i,î} = +1 if that class is right and -1 if not (BSN eq. 6). With one score per sample it is f(y_i h(x_i)).
    f is the posterior of ``loss``, so μ lies in [0, 1]: near 1 for a prediction both sure and right, near 0 for one
    sure and wrong. Where every score of a row is negative, no class is claimed and μ < 1/2 even if the best one is
    right.

    Parameters
    ----------
    scores : array of shape (n,) or (n, K), or an iterator of row batches of it
        Decision values h, float32 or float64; finite. Of SLND, BSN and the baselines like them: what `scores` gives.
    y : array
        For (n,) scores: (n,) of -1/+1 or 0/1. For (n, K) scores: (n,) class indices 0..K-1, or an (n, K) indicator
        matrix of 0/1 for multilabel, where the prediction is right if row i has the label î; a one-hot matrix gives
        what the indices give. Always the labels of all rows, also beside an iterator.
    loss : {"logistic", "calibrated_hinge", "squared"} or None, default="logistic"
        Calibrated loss whose posterior f is taken. None leaves f out and gives the raw margin y h, any real number,
        which is what `margin_summary` and `location_estimate` are made for.

    Returns
    -------
    mu : (n,) array of float64
        Of equal scores in a row the class of the lowest index is the predicted one, as in numpy.argmax.

    For the margins of each class against the rest, give one column at a time: ``margin(scores[:, c], y == c)``.
    """
    if loss is not None and loss not in CALIBRATED:
        raise ValueError(f"loss must be one of {', '.join(CALIBRATED)} or None, got {loss!r}: others have no posterior")
    raw = np.concatenate([signed_score(block, labels) for block, labels in labelled_blocks(scores, y, "scores")])
    if loss is None:
        return raw
    mu = np.empty_like(raw)
    _losses.posterior(_losses.LOSS_IDS[loss], raw, mu)
    return mu


def signed_score(scores, labels):
    """y_{i,î} h_î(x_i) of a block of rows, labels as `code_labels` gives them."""
    if scores.ndim == 1:
        return labels * scores
    best = scores.argmax(axis=1)
    rows = np.arange(len(scores))
    right = labels == best if labels.ndim == 1 else labels[rows, best]
    return np.where(right, 1.0, -1.0) * scores[rows, best]


def margin_error(margins: Batches, theta: ArrayLike) -> Any:
    """Share of margins at or below a threshold, ε_μ(θ) = (1/m) Σ [μ_i ≤ θ] (BSN eq. 7).

    Parameters
    ----------
    margins : (n,) array, or an iterator of batches of it
        As `margin` returns them.
    theta : float or array of any shape, in [0, 1]
        With an array, the whole curve costs one search per margin.

    Returns
    -------
    error : float, or array of the shape of ``theta``
    """
    thresholds = as_real(theta, "theta").astype(np.float64, copy=False)
    if thresholds.size == 0 or not ((thresholds >= 0) & (thresholds <= 1)).all():
        raise ValueError("theta must hold thresholds between 0 and 1")
    levels, place = np.unique(thresholds, return_inverse=True)
    first_level_reached = np.zeros(len(levels) + 1, dtype=np.int64)      # counts; the last one reaches none
    n_rows = 0
    for start, block in row_blocks(margins, "margins", ndims=(1,)):
        n_rows = start + len(block)
        first_level_reached += np.bincount(np.searchsorted(levels, block), minlength=len(levels) + 1)
    error = np.cumsum(first_level_reached[:-1]) / n_rows
    return float(error[0]) if thresholds.ndim == 0 else error[place].reshape(thresholds.shape)
