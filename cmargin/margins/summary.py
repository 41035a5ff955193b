"""A margin distribution in a handful of numbers, as the traces of margin pursuit's figures 3 to 5 show it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cmargin._core.util import _margin_summary
from cmargin.margins._batches import Batches, as_real, gathered
from cmargin.margins._checks import positive_number
from cmargin.margins.location import confidence_scale


def margin_summary(margins: Batches, *, scale: float | None = None, delta: float = 0.05,
                   quantiles: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> dict[str, Any]:
    """Where the margins lie, how widely and how evenly they spread, and how many are on the wrong side.

    Parameters
    ----------
    margins : (n,) array, (n, K) array for K distributions, or an iterator of batches of single margins
        Raw margins, as ``margin(scores, y, loss=None)`` gives them. A stream is gathered, 8 bytes a margin: exact
        quantiles need them all, and the answer is that of the array to the last bit.
    scale, delta : as in `location_estimate`
    quantiles : sequence of float, default=(0.05, 0.25, 0.5, 0.75, 0.95)
        Levels in [0, 1], interpolated linearly as numpy.quantile does.

    Returns
    -------
    summary : dict
        Numbers, or (K,) arrays for (n, K) margins:

        ``n_samples``; ``mean``; ``median``; ``location``, Catoni's estimate at ``scale``; ``scale``, 0 where all
        margins are equal and none was given; ``variance``, (1/n) Σ (q_i - mean)²; ``skewness``, third central moment
        over variance^{3/2}, 0 where all margins are equal; ``share_nonpositive``, of margins <= 0, the training error
        if these are training margins; ``quantiles``, array of one row per level.
    """
    mu = gathered(margins, "margins", ndims=(1, 2))
    levels = np.array(as_real(quantiles, "quantiles"), dtype=np.float64, order="C")
    if levels.ndim != 1 or not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError("quantiles must be a sequence of levels between 0 and 1")
    columns = [summary_of(np.ascontiguousarray(q), scale, delta, levels) for q in np.atleast_2d(mu.T)]
    if not all(np.isfinite(column["variance"]) for column in columns):
        raise ValueError("the margins are too large for a variance in the range of doubles; scale them down")
    if mu.ndim == 1:
        return columns[0]
    return {key: np.stack([column[key] for column in columns], axis=-1) for key in columns[0]}


def summary_of(q, scale, delta, levels):
    """`margin_summary` of one contiguous, finite (n,) array; the variance is infinite beyond the range of doubles."""
    quantiles = np.empty(len(levels))
    if scale is None:
        found = _margin_summary.summarise(q, levels, 0.0, confidence_scale(len(q), 1.0, delta), quantiles)
    else:
        found = _margin_summary.summarise(q, levels, positive_number(scale, "scale"), 0.0, quantiles)
    found["quantiles"] = quantiles
    return found
