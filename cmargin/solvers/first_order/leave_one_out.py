"""The penalty of a linear classifier, from how ridge regression does on rows that are left out one by one.

Near its level the loss of margin pursuit is a square, so that ridge regression of the labels -1 and 1 stands for it;
what that says of a row from all others is known of one factor, for every penalty (Cook and Weisberg 1982, section 2.2):

    y_i - f_{-i}(x_i) = (y_i - f(x_i)) / (1 - h_i),   h_i = s_i / sum s + s_i z_i' (sum s z z' + r)^-1 z_i,

z = x - mean.

The choice is the one of least hinge loss among those that err no more often than the best by more than one standard
error of the difference. The hinge loss alone would trade a class that is met rarely for the middle of all scores; the
squared loss also counts scores beyond the level, so that a few far rows decide.
"""

import numpy as np

from cmargin.data.spectrum import NO_EIGENVALUE, spectrum

STEP = 10.0**0.5             # between two penalties that are tried
BELOW = 0.03                 # the least of them, in parts of the least eigenvalue
FEWEST = 5                   # rows on either side of a problem by which it is judged
ERRORS = 1.0                 # standard errors


def judged(labels):
    """Problems with rows enough on either side; whether every row is positive in one of all, as of classes."""
    positives = (labels > 0).sum(axis=1)
    return np.flatnonzero(np.minimum(positives, labels.shape[1] - positives) >= FEWEST), \
        len(labels) > 1 and bool(((labels > 0).sum(axis=0) == 1).all())


def best_penalty(X, labels, weights, intercept, graded=False):
    """r of the penalty r/2 |w|² beside the sum over rows (not their mean) of s/2 (y - f(x))², for all problems.

    Beside a sum, since r then does not depend on how many rows there are: a prior counts as a fixed number of rows.
    X is (n, m) float64, dense or CSR; ``labels`` (n_problems, n) of -1 and 1; ``weights`` (n,) positive; ``graded``:
    whether the columns are very different.
    """
    values, vectors, size = spectrum(X, weights, intercept, graded)
    if not len(values):
        return 1.0                               # every row is the same
    total, root = weights.sum(), np.sqrt(weights)[:, None]
    problems, exclusive = judged(labels)
    if not exclusive and not len(problems):
        return size**2 * values.sum() / total    # nothing to judge by: the mean of |x|^2
    Y = labels.T if exclusive else labels[problems].T
    target = Y - (weights @ Y / total if intercept else 0.0)
    projected = vectors.T @ (root * target)
    own = (weights / total)[:, None] * bool(intercept)
    n_tried = int(np.ceil(np.log(values[-1] / (BELOW * values[0])) / np.log(STEP))) + 1
    tried, wrong, lost = values[-1] * STEP**-np.arange(n_tried), [], []
    for r in tried:
        kept = values / (values + r)
        left = 1 - own - (vectors**2 @ kept)[:, None]
        off = (target - vectors @ (kept[:, None] * projected) / root) / np.maximum(left, NO_EIGENVALUE)
        # a row that is left out takes the mean with it, away from its own label, which no new row would do
        scores = Y - off + target * own / (1 - own)
        wrong.append((scores.argmax(axis=1) != Y.argmax(axis=1)) if exclusive else (scores * Y <= 0).mean(axis=1))
        lost.append(weights @ np.maximum(0, 1 - scores * Y).mean(axis=1))
    return size**2 * tried[chosen(np.array(wrong, float), np.array(lost), weights)]


def chosen(wrong, lost, weights):
    """The place of the least loss (n_tried,) among those whose errors (n_tried, n) are near the fewest."""
    share = weights / weights.sum()
    more = wrong - wrong[(wrong @ share).argmin()]
    mean = more @ share
    error = np.sqrt(((more - mean[:, None]) ** 2) @ share**2)
    close = np.flatnonzero(mean <= ERRORS * error + NO_EIGENVALUE)
    return close[lost[close].argmin()]
