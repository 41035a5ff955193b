"""How models are compared on rows held out: each by its log-loss at the one factor on its scores that suits those rows.

After few passes a long step has large scores and, for them alone, a small log-loss, while it errs more often. So scale
is judged apart from direction. A fit ends with its scores times the factor found, where the loss of the rows held out
is then surely less: every prediction stays as it is, and probabilities are calibrated.
"""

import math

import numpy as np

from cmargin._core.sgd._scaled_losses import scaled_losses
from cmargin._core.util._arrays import all_finite, difference_moments
from cmargin._runtime.aligned import contiguous
from cmargin.solvers import cost

LEAST, MOST = 2.0**-10, 2.0**10          # of a factor
CLOSE = 0.02               # relative change of the factor that ends Newton's search: the loss is flat at its least


def n_folds():
    """How many parts of the rows are held out in turn, until every row was in one."""
    return round(1 / cost.HELD_SHARE)


def surely_worse(losses, best, errors=1.0):
    """Whether the mean of ``losses`` is above ``best``'s by more than so many standard errors of the difference."""
    losses, best = contiguous(losses, float), contiguous(best, float)
    mean, spread = difference_moments(losses, best)
    if not math.isfinite(mean):
        return all_finite(best)
    return mean > errors * spread / math.sqrt(len(best))


def best_factor(scores, truth, weight):
    """The factor with the least log-loss, by Newton steps between bounds: the loss is convex in it.

    One row more counts, whose scores are those of an average row and whose class is drawn by the shares of the classes
    (Laplace's rule): without it the factor would be infinite where all rows are classified correctly.

    Of ``scores`` (n, n_classes), the classes ``truth`` (n,) and ``weight`` (n,), or (0,) for ones. Returns the factor
    and the (n,) weighted log-losses of the rows at it, and at 1; 1 and inf where scores are not finite.
    """
    n, losses = len(truth), np.full(len(truth), np.inf)
    if not all_finite(scores.reshape(-1)):
        return 1.0, losses, losses
    share = np.bincount(truth, weight if len(weight) else None, scores.shape[1])
    share = share / share.sum()
    low, high, factor, plain = LEAST, MOST, 1.0, None
    while True:
        slope, curvature, by_share = scaled_losses(scores, truth, weight, share, factor, losses)
        plain = losses.copy() if plain is None else plain
        slope += by_share / n
        low, high = (low, factor) if slope > 0 else (factor, high)
        following = factor - slope / (curvature * (1 + 1 / n)) if curvature > 0 else math.inf
        if not low < following < high:
            following = math.sqrt(low * high)
        if abs(following - factor) <= CLOSE * factor or not slope:
            return factor, losses, plain
        factor = following


def sure_factor(factor, losses, plain):
    """What the scores of a fit are multiplied by: 1 where the losses at ``factor`` are not surely less."""
    return factor if surely_worse(plain, losses) else 1.0
