"""Binary entropy, top-k accuracy, calibration error and the weak separability of a stochastic Newton step."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from cmargin.data.arrays import plain
from cmargin.margins._batches import Batches, as_real, labelled_blocks, row_blocks

MOST_BINS = 1 << 20             # three numbers for each are kept


def binary_entropy(posteriors: Batches) -> Any:
    """Mean entropy of the Bernoulli variables that the posteriors describe, one number per class (BSN eq. 5).

    BE_c = -(1/m) Σ_i [f_ic ln f_ic + (1 - f_ic) ln(1 - f_ic)], in nats, 0 ln 0 = 0: 0 where every posterior is 0
    or 1, ln 2 where every one is 1/2.

    Parameters
    ----------
    posteriors : array of shape (n,) or (n, C), or an iterator of row batches of it
        In [0, 1]; the rows need not sum to 1.

    Returns
    -------
    entropy : float for (n,), (C,) array for (n, C)
    """
    total = 0.0
    n_rows = 0
    for start, f in row_blocks(posteriors, "posteriors"):
        refuse_outside_unit_interval(f, "posteriors")
        total = total + (entr(f) + entr(1.0 - f)).sum(axis=0)
        n_rows = start + len(f)
    entropy = total / n_rows
    return entropy if np.ndim(entropy) else float(entropy)


def top_k_accuracy(scores: Batches, y: ArrayLike, k: int) -> float:
    """Share of samples whose label is among their ``k`` highest scores.

    Nothing is sorted: a label is among the k highest if fewer than k classes come before it, and those are counted.
    Of equal scores the class of the higher index comes first, so that the answer is scikit-learn's
    ``top_k_accuracy_score`` to the last sample; with ties and k = 1 it can differ from the accuracy of numpy.argmax,
    which prefers the lower index.

    Parameters
    ----------
    scores : array of shape (n, K) or (n,), or an iterator of row batches of it
        For (n,), one score per sample: class 1 comes first where the score is positive, whatever the range of the
        scores (scikit-learn cuts at 1/2 when they all lie in [0, 1]).
    y : array
        (n,) class indices 0..K-1; -1/+1 or 0/1 for (n,) scores; or an (n, K) indicator matrix, where a sample counts
        if any of its labels is among the k highest, and one without labels never does.
    k : int, 1 <= k <= K
        K gives 1.0, except for samples without labels.

    Returns
    -------
    accuracy : float
    """
    hits = n_rows = 0
    for block, labels in labelled_blocks(scores, y, "scores"):
        n_classes = 2 if block.ndim == 1 else block.shape[1]
        if not isinstance(k, Integral) or not 1 <= k <= n_classes:
            raise ValueError(f"k must be a whole number from 1 to {n_classes}, the number of classes, got {plain(k)!r}")
        n_rows += len(block)
        if block.ndim == 1:
            hits += len(block) if k == 2 else np.count_nonzero((block > 0) == (labels > 0))
        else:
            hits += np.count_nonzero(classes_before_label(block, labels) < k)
    return float(hits / n_rows)


def classes_before_label(scores, labels):
    """How many classes come before the label of each row; K for a row without a label."""
    rows = np.arange(len(scores))
    n_classes = scores.shape[1]
    if labels.ndim == 2:
        # the label that comes first: the highest score, and of equal ones the highest index
        own = np.where(labels, scores, -np.inf)
        target = n_classes - 1 - own[:, ::-1].argmax(axis=1)
    else:
        target = labels
    score = scores[rows, target][:, None]
    before = (scores > score) | ((scores == score) & (np.arange(n_classes) > target[:, None]))
    count = before.sum(axis=1)
    return np.where(labels.any(axis=1), count, n_classes) if labels.ndim == 2 else count


def expected_calibration_error(posteriors: Batches, y: ArrayLike, n_bins: int = 15) -> Any:
    """Mean distance between what the posteriors promise and what happened, over bins of equal promise.

    ``ECE = Σ_b (n_b / n) |share that came true in b - mean posterior in b|``, with ``n_bins`` bins of equal width over
    [0, 1], each closed on the left, the last one on both sides. 0 is perfect; at most 1.

    Parameters
    ----------
    posteriors : array of shape (n,) or (n, C), or an iterator of row batches of it
        In [0, 1]; the rows need not sum to 1.
    y : array
        Decides which promise is meant. For (n,) posteriors, -1/+1 or 0/1: that the sample is positive. For (n, C)
        and (n,) class indices 0..C-1: that the class of the highest posterior is the right one (the usual
        "confidence" of multiclass). For (n, C) and an (n, C) indicator matrix: that the sample has this label, each
        class by itself.
    n_bins : int, default=15
        At most 2^20.

    Returns
    -------
    error : float, or (C,) array with an indicator matrix
    """
    if not isinstance(n_bins, Integral) or not 1 <= n_bins <= MOST_BINS:
        raise ValueError(f"n_bins must be a whole number from 1 to {MOST_BINS}, got {n_bins!r}")
    counts = promised = kept = 0.0
    n_rows = 0
    for block, labels in labelled_blocks(posteriors, y, "posteriors"):
        refuse_outside_unit_interval(block, "posteriors")
        promise, truth = promises(block, labels)
        n_groups = promise.shape[1]
        bins = np.minimum((promise * n_bins).astype(np.intp), n_bins - 1) + n_bins * np.arange(n_groups)
        size = n_groups * n_bins
        counts = counts + np.bincount(bins.ravel(), minlength=size)
        promised = promised + np.bincount(bins.ravel(), weights=promise.ravel(), minlength=size)
        kept = kept + np.bincount(bins.ravel(), weights=truth.ravel(), minlength=size)
        n_rows += len(block)
    # (n_b / n) |kept / n_b - promised / n_b| without the division: an empty bin adds nothing
    error = np.abs(kept - promised).reshape(-1, n_bins).sum(axis=1) / n_rows
    return error if np.ndim(y) == 2 else float(error[0])


def promises(posteriors, labels):
    """(rows, groups) of promised probabilities and of 0/1 outcomes."""
    if posteriors.ndim == 1:
        return posteriors[:, None], (labels > 0).astype(np.float64)[:, None]
    if labels.ndim == 2:
        return posteriors, labels.astype(np.float64)
    best = posteriors.argmax(axis=1)
    return posteriors[np.arange(len(best)), best][:, None], (best == labels).astype(np.float64)[:, None]


def weak_separability(p: ArrayLike, s: ArrayLike) -> Any:
    """γ_t = p_tᵀ s_t / ‖s_t‖₁, by how much the step of sample i_t beats a random one (SLND eq. 14).

    Parameters
    ----------
    p : (m,) array, or (T, m) array of one row per step
        p_tj = -F'(y_j <w_t, x_j>).
    s : (m,) or (T, m) array
        s_tj = y_j x_jᵀ H* x_{i_t}. An (m,) array beside a (T, m) one serves all T steps.

    Returns
    -------
    gamma : float, or (T,) array if ``p`` or ``s`` has rows
        At most max p; the step makes progress on the risk where it is positive (SLND theorem 2).
    """
    P, S = finite_rows(p, "p"), finite_rows(s, "s")
    if P.shape[-1] != S.shape[-1] or (P.ndim == S.ndim == 2 and len(P) != len(S)):
        raise ValueError(f"p and s must agree in shape, got {P.shape} and {S.shape}")
    largest = np.abs(S).max(axis=-1, keepdims=True)
    if not np.all(largest > 0):
        raise ValueError("s is zero throughout a step, so that the weak separability of it is not defined")
    share = S / largest                              # no sum leaves the range of doubles
    share /= np.abs(share).sum(axis=-1, keepdims=True)
    gamma = np.einsum("...j,...j->...", P, share)
    return gamma if np.ndim(gamma) else float(gamma)


def finite_rows(values, name):
    """``values`` as a finite float64 array of shape (m,) or (T, m), neither of them 0."""
    values = as_real(values, name).astype(np.float64, copy=False)
    if values.ndim not in (1, 2) or values.size == 0:
        raise ValueError(f"{name} must have shape (m,) or (T, m) and not be empty, got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return values


def refuse_outside_unit_interval(values, name):
    if values.min() < 0 or values.max() > 1:
        raise ValueError(f"{name} must lie between 0 and 1, found {values.min():g} to {values.max():g}")
