"""Scores of a linear model that are numbers, whatever finite numbers the rows and the weights hold."""

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.utils.extmath import safe_sparse_dot

from cmargin.data.arrays import dense, exponent, scaled_rows, stored
from cmargin.data.device.arrays import namespace_of, on_device


def linear_scores(X, coef, intercept):
    """<w_c, x_i> + b_c of every row and problem, (n, n_problems), of the dtype of X and coef; on the device of X.

    A row whose sums leave the range of its dtype is summed scaled down by powers of 2; the scores of such a row are
    then given in the proportions they have, the largest as the largest finite number, so that their signs and their
    order are right and none is NaN.
    """
    if getattr(X, "linear_scores", None) is not None:
        return _scores_on_device(X, coef, intercept)
    at_once = getattr(X, "at_once", None)
    if at_once is not None:
        return np.concatenate([linear_scores(X[lo:lo + at_once], coef, intercept) for lo in range(0, len(X), at_once)])
    with np.errstate(over="ignore", invalid="ignore"):
        weights = coef.astype(X.dtype, copy=False)           # or rows of single precision would be copied as doubles
        weights = weights if np.isfinite(stored(weights)).all() else coef
        scores = np.asarray(safe_sparse_dot(X, weights.T, dense_output=True) + intercept)
    lost = np.flatnonzero(~np.isfinite(scores).all(axis=1))
    if len(lost):
        scores[lost] = _scaled_scores(X[lost], coef, intercept, np.finfo(scores.dtype).max)
    return scores


def as_given(X, result):
    """An array made of scores of the rows ``X``, in their library and where they are."""
    back = getattr(X, "back", None)
    return result if back is None or on_device(result) else back(result)


def softmax_of(scores):
    """Row by row."""
    if not on_device(scores):
        return softmax(scores, axis=1)
    xp = namespace_of(scores)
    e = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


def log_softmax_of(scores):
    """Row by row: finite wherever the scores are, also where the share itself is no more than 0."""
    if not on_device(scores):
        with np.errstate(over="ignore"):                         # of scores at both ends of the range
            return np.maximum(log_softmax(scores, axis=1), -np.finfo(scores.dtype).max)
    xp = namespace_of(scores)
    off = scores - xp.max(scores, axis=1, keepdims=True)
    return off - xp.log(xp.sum(xp.exp(off), axis=1, keepdims=True))


def shares_of(odds, multilabel):
    """(n, n_classes) probabilities of log-odds of one problem each, normalised over the classes unless ``multilabel``.

    One column of odds: of two classes, the log-odds of the second.
    """
    share = expit(odds)
    if multilabel:
        return share
    if odds.shape[1] == 1:
        return np.hstack([expit(-odds), share])
    lost = share.sum(axis=1) < np.finfo(float).tiny              # every class is ruled out: what is left of their odds
    share[lost] = np.exp(odds[lost] - odds[lost].max(axis=1, keepdims=True))
    return share / share.sum(axis=1, keepdims=True)


def log_shares_of(odds, multilabel):
    """Logarithms of `shares_of`, finite wherever the log-odds are."""
    if odds.shape[1] == 1 and not multilabel:
        odds = np.hstack([-odds, odds])
        return log_expit(odds)
    share = log_expit(odds)
    return share if multilabel else share - np.logaddexp.reduce(share, axis=1, keepdims=True)


def _scores_on_device(X, coef, intercept):
    with np.errstate(over="ignore", invalid="ignore"):
        scores = X.linear_scores(dense(coef), intercept)
    if X.like(scores).not_finite() is None:
        return scores
    found = X.like(scores).in_memory()                       # few rows, if any: what is lost is mended there
    lost = np.flatnonzero(~np.isfinite(found).all(axis=1))
    found[lost] = _scaled_scores(X.take(lost).in_memory(), coef, intercept, np.finfo(found.dtype).max)
    return X.back(found)


def _scaled_scores(X, coef, intercept, largest):
    coef = dense(coef)
    rows, row_size = scaled_rows(X)
    size = exponent(np.abs(coef).max())
    # entries of at most 1 each, so that the sum is at most their number; b is one more product, of b and 1
    sums = rows @ np.ldexp(coef.astype(np.float64), -size).T
    power = row_size + size
    sums = sums + np.ldexp(np.asarray(intercept, np.float64), -power)
    with np.errstate(over="ignore"):
        scores = np.ldexp(sums, power)
    over = ~(np.abs(scores) <= largest).all(axis=1)
    top = np.abs(sums[over]).max(axis=1, keepdims=True)
    scores[over] = sums[over] / top * largest
    return scores
