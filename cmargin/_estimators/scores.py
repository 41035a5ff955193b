"""Scores of a linear model that are numbers, whatever finite numbers the rows and the weights hold; what follows from
them: the best classes, the softmax."""

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_expit, log_softmax, softmax

from cmargin._core.rows._predicted_rows import predict_rows
from cmargin._core.rows._rows import Rows
from cmargin._core.rows._structure import check_structure
from cmargin._runtime.aligned import aligned_throughout
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data.arrays import dense, exponent, is_sparse, scaled_rows, stored, top_of
from cmargin.data.converted import batches, is_read_in_place
from cmargin.data.device.arrays import namespace_of, on_device, to_host
from cmargin.data.memory.row_pass import SMALL

SCORES, BEST, TOP, SOFTMAX = range(4)   # a `prediction` of the kernel

SCORE_ENTRIES = 1 << 22          # scores between two chances to be interrupted, and at most held by predict: 32 MB


def predicted(X, coef, intercept, what=SCORES, n_threads=1, n_top=1):
    """Scores <w_c, x_i> + b_c of every row and problem, (n, n_problems), or what is asked for of them.

    BEST: the class of the largest, (n, 1) int64; TOP: those of the largest ``n_top``, largest first; SOFTMAX:
    (n, n_problems). Of the dtype of X; on the device of X. Rows are scored in blocks, and of those in
    memory each block is finished while it is in cache: no more is held than a block and what is returned.

    A row whose sums leave the range of its dtype is summed scaled down by powers of 2; the scores of such a row are
    then given in the proportions they have, the largest as the largest finite number, so that their signs and their
    order are right and none is NaN.
    """
    if getattr(X, "linear_scores", None) is not None:
        return of_scores(_scores_on_device(X, coef, intercept), what, n_top)
    most = max(1, SCORE_ENTRIES // coef.shape[0])
    if is_read_in_place(X):
        blocks = (slice(lo, min(lo + most, X.shape[0])) for lo in range(0, X.shape[0], most))
        model, out = _Model(X, coef, intercept, n_threads), None
    else:
        blocks, model, out = batches(X, most), None, None
    for rows in blocks:
        block = X if model is not None else X[rows]
        part = model or _Model(block, coef, intercept, n_threads)
        if out is None:
            out = part.room(X.shape[0], what, n_top)
        part.predict(block, rows if model is not None else slice(0, block.shape[0]), what, out[rows])
    return out


class _Model:
    """Weights and intercepts of the dtype that scores of rows like ``X`` have, or, where they have no place in it, of
    float64."""

    def __init__(self, X, coef, intercept, n_threads):
        self.coef, self.intercept, self.dtype = coef, intercept, X.dtype
        if not (_has_place_in(X.dtype, stored(coef)) and _has_place_in(X.dtype, intercept)):
            self.dtype = np.dtype(np.float64)
        self.bias = np.ascontiguousarray(intercept, self.dtype)
        self.rows, self.stored = Rows(aligned_throughout(X)), None
        if is_sparse(coef):
            coef = sp.csc_matrix(coef)
            check_structure(coef)                        # which may have been set by hand
        if is_sparse(coef) and coef.shape[0] * coef.shape[1] <= SMALL:
            coef = coef.toarray()                        # quicker in products, and scores have the bits of an array's
        elif is_sparse(coef):
            self.stored = (coef.indptr.astype(np.int64), coef.indices.astype(np.int32, copy=False),
                           coef.data.astype(self.dtype, copy=False))
            coef = np.empty((0, X.shape[1]))
        self.weights = np.ascontiguousarray(coef, self.dtype)
        # the transpose is a copy, of more numbers than a few rows have entries
        by_feature = self.stored is None and self.rows.sparse and (self.rows.n_entries >= X.shape[1] or len(coef) == 1)
        self.by_feature = np.ascontiguousarray(self.weights.T) if by_feature else None
        self.n_threads = n_threads if self.rows.n_entries * len(self.bias) >= SMALL else 1

    def room(self, n, what, n_top):
        """What is returned of ``n`` rows."""
        if what in (BEST, TOP):
            return np.empty((n, n_top), np.int64)
        return np.empty((n, self.coef.shape[0]), self.dtype)

    def predict(self, X, rows, what, out):
        n = rows.stop - rows.start
        numbers, classes = np.empty((0, 1), self.dtype), np.empty((0, 1), np.int64)
        numbers, classes = (numbers, out) if what in (BEST, TOP) else (out, classes)
        flags = np.empty(n, np.uint8)
        with single_threaded_blas():
            predict_rows(self.rows, rows.start, n, self.weights, self.by_feature, self.bias, what, self.n_threads,
                         numbers, classes, flags, self.stored)
        lost = np.flatnonzero(flags)
        if len(lost):
            scores = _scaled_scores(X[lost + rows.start], self.coef, self.intercept, np.finfo(self.dtype).max)
            out[lost] = of_scores(scores.astype(self.dtype), what, out.shape[1])


def _has_place_in(dtype, a):
    with np.errstate(over="ignore"):
        return a.dtype == dtype or bool(np.isfinite(a.astype(dtype)).all())


def of_scores(scores, what, n_top):
    """The same of scores that are there."""
    if what == BEST:
        return namespace_of(scores).argmax(scores, axis=1)[:, None]
    if what == TOP:
        return top_of(to_host(scores), n_top)
    return softmax_of(scores) if what == SOFTMAX else scores


def as_given(X, result):
    """An array made of scores of the rows ``X``, in their library and where they are."""
    back = getattr(X, "back", None)
    return result if back is None or on_device(result) else back(result)


def softmax_of(scores):
    """Row by row."""
    if not on_device(scores):
        with np.errstate(over="ignore"):                         # of scores at both ends of the range
            return softmax(scores, axis=1)
    xp = namespace_of(scores)
    e = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


def log_softmax_of(scores):
    """Row by row: finite wherever the scores are, also where the share itself is no more than 0."""
    if not on_device(scores):
        with np.errstate(over="ignore"):
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
    lost = share.sum(axis=1) < np.finfo(odds.dtype).tiny         # every class is ruled out: what is left of their odds
    share[lost] = np.exp(odds[lost] - odds[lost].max(axis=1, keepdims=True))
    return share / share.sum(axis=1, keepdims=True)


def log_shares_of(odds, multilabel):
    """Logarithms of `shares_of`, finite wherever the log-odds are."""
    if odds.shape[1] == 1 and not multilabel:
        odds = np.hstack([-odds, odds])
        return log_expit(odds)
    share = log_expit(odds)
    return share if multilabel else share - np.logaddexp.reduce(share, axis=1, keepdims=True)


def log_of_shares(scores, logarithms, shares):
    """``logarithms`` of the scores' shares, right also where a share is close to 0 or 1.

    In single precision they are those of ``shares()`` as they are, as scikit-learn's checks expect, but where a share
    is close to 0.
    """
    if scores.dtype == np.float64:
        return logarithms(scores)
    shares = shares()
    with np.errstate(divide="ignore"):
        result = np.log(shares)
    far = np.flatnonzero((shares < 2 ** 20 * np.finfo(shares.dtype).tiny).any(axis=1))
    result[far] = logarithms(scores[far])
    return result


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
