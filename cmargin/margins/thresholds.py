"""A threshold for the scores of every label, chosen on rows that were held out."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cmargin.margins._batches import gathered
from cmargin.margins._checks import nonnegative_number
from cmargin.margins.rankings import indicator


def label_thresholds(scores: ArrayLike, y: Any, *, cost: tuple[float, float] | None = None,
                     least_f1: float = 0.1) -> np.ndarray:
    """The threshold t_l of every label above which its scores say that a row has it.

    Of each label by itself, by F1 = 2 TP / (2 TP + FP + FN) or by what mistakes cost. All thresholds between two
    neighbouring scores predict the same rows; 0 is taken where it is one of the best, otherwise the middle of the best
    interval, of several the nearest to 0.

    Parameters
    ----------
    scores : (n, n_labels) array
        `decision_function` of rows that the model was not trained on: those set aside, or of
        ``sklearn.model_selection.cross_val_predict(model, X, Y, method="decision_function")``.
    y : (n, n_labels) indicator, dense or sparse
    cost : (float, float) or None, default=None
        Cost of a label that is predicted and wrong, and of one that is missed: their sum is minimised. None: F1 is
        maximised.
    least_f1 : float in [0, 1], default=0.1
        A label whose best F1 is below gets its highest score, so that it is hardly ever predicted: on few positives
        chance finds a low threshold which predicts many wrong rows (SCutFBR.1 of Yang 2001, and Lewis et al. 2004).
        0: never. Not used with ``cost``.

    Returns
    -------
    thresholds : (n_labels,) array
        ``model.decision_function(X) > thresholds`` are the predictions. ``model.intercept_ -= thresholds`` builds them
        into `predict`, and shifts `decision_function`.

    References
    ----------
    R.-E. Fan, C.-J. Lin, "A study on threshold selection for multi-label classification", 2007.
    """
    f1 = nonnegative_number(least_f1, "least_f1")
    if f1 > 1:
        raise ValueError(f"least_f1 must be at most 1, got {least_f1!r}")
    wrong, missed = (0.0, 0.0) if cost is None else _costs(cost)
    positives = indicator(y).tocsc()
    of_rows = gathered(scores, "scores", (2,))
    if of_rows.shape != positives.shape:
        raise ValueError(f"scores and y must agree in shape, got {of_rows.shape} and {positives.shape}")
    thresholds = np.empty(positives.shape[1])
    for label in range(len(thresholds)):
        rows = positives.indices[positives.indptr[label]:positives.indptr[label + 1]]
        edges, hits, taken = counts(of_rows[:, label], rows)
        if cost is None:
            gain = 2 * hits / np.maximum(taken + len(rows), 1)
            hopeless = gain.max() < f1
            thresholds[label] = edges[0] if hopeless else between(edges, gain == gain.max())
        else:
            loss = wrong * (taken - hits) + missed * (len(rows) - hits)
            thresholds[label] = between(edges, loss == loss.min())
    return thresholds


def counts(score, positives):
    """Distinct scores of a label, descending; and for thresholds at each of them and below all, that is from each edge
    (itself left out) upwards: how many ``positives``, rows, and how many rows there are in all."""
    order = np.argsort(-score, kind="stable")
    ordered, has = score[order], np.isin(order, positives)
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))        # of every group of equal scores
    return ordered[last], np.append(0, np.cumsum(has)[last]), np.append(0, last + 1)


def between(edges, best):
    """The threshold of the best interval nearest 0: interval j is from ``edges[j]`` to below ``edges[j - 1]``."""
    low, high = np.append(edges, -np.inf)[best], np.append(np.inf, edges)[best]
    if ((low <= 0) & (high > 0)).any():
        return 0.0
    nearest = np.where(low > 0, low, -high).argmin()
    low, high = low[nearest], high[nearest]
    if not np.isfinite(high):
        return low                               # no row is predicted
    if not np.isfinite(low):
        return np.nextafter(high, -np.inf)       # every row is
    middle = low / 2 + high / 2
    return middle if low <= middle < high else low


def _costs(cost):
    try:
        wrong, missed = cost
    except (TypeError, ValueError):
        raise ValueError(f"cost must be two numbers, of a wrong label and of a missed one, got {cost!r}") from None
    if not all(isinstance(one, Real) and 0 <= one < np.inf for one in (wrong, missed)) or wrong + missed == 0:
        raise ValueError(f"cost must be two finite numbers of at least 0, one of them above, got {cost!r}")
    largest = max(float(wrong), float(missed))   # sums of numbers at the ends of the range stay in it
    return float(wrong) / largest, float(missed) / largest
