"""Robust location of a margin distribution, with its confidence radius (margin pursuit, eq. 2, 6 and Lemma 6)."""

import math
import sys
from typing import Any

import numpy as np

from cmargin._core.util import _catoni
from cmargin._core.util._margin_summary import power_of_two
from cmargin.margins._batches import Batches, gathered
from cmargin.margins._checks import confidence, count, nonnegative_number, positive_number


def location_estimate(margins: Batches, scale: float | None = None, *, delta: float = 0.05) -> Any:
    """Catoni's estimate of location: the root γ̂ of Σ_i ψ((γ - q_i)/s) = 0, the minimiser in γ of margin pursuit's Q.

    Between the median (s → 0; exactly the median once s is small enough) and the mean (s → ∞, with an error below
    c/s²). One margin, changed by whatever amount, moves it by s √(2/m') at most, m' >= 24 the margins within s/√2 of it
    (Proposition 4). Safeguarded Newton from the median, to 1e-12 s or the last digit of γ̂.

    Parameters
    ----------
    margins : (n,) array, (n, K) array for K estimates, or an iterator of batches of single margins
        Raw margins, as ``margin(scores, y, loss=None)`` gives them. A stream is gathered: a median needs them all.
    scale : float, optional
        s > 0. By default the one of Lemma 6 for ``delta`` and the variance of the margins, `confidence_scale`.
    delta : float, default=0.05
        Used without ``scale`` only.

    Returns
    -------
    location : float, or (K,) array
    """
    mu = gathered(margins, "margins", ndims=(1, 2))
    if mu.ndim == 2:
        return np.array([location_of(np.ascontiguousarray(q), scale, delta) for q in mu.T])
    return location_of(np.ascontiguousarray(mu), scale, delta)


def location_of(q, scale, delta):
    """`location_estimate` of one contiguous, finite (n,) array."""
    size = float(np.abs(q).max())
    unit = power_of_two(size if scale is None else max(size, positive_number(scale, "scale")))
    q = q if unit == 1 else q / unit                 # the estimate grows with its margins and its scale
    if scale is None:
        variance = float(np.var(q))
        if variance == 0:
            return float(q[0] * unit)
        scale = confidence_scale(len(q), variance, delta)
    else:
        scale /= unit
    median = float(np.median(q))
    # below that scale no two margins feel each other, and 1 / scale is beyond the range of doubles
    return (_catoni.location(q, median, scale) if scale >= sys.float_info.min else median) * unit


def confidence_scale(n_samples: int, variance: float, delta: float = 0.05) -> float:
    """s = √(n v / (2 ln(2/δ))), the scale at which `confidence_radius` holds (Lemma 6); v bounds the variance."""
    spread = math.sqrt(positive_number(variance, "variance"))
    return spread * math.sqrt(count(n_samples, "n_samples") / (2 * log_of_two_over(delta)))


def confidence_radius(n_samples: int, variance: float, delta: float = 0.05) -> float:
    """√(2 v ln(2/δ) / n): how far the mean lies from the location estimate, but for a chance δ (Lemma 6).

    For n independent margins of a variance of at most ``variance``, however heavy their tails, and the scale
    `confidence_scale`. This is the lemma as printed; what its proof adds up to (eq. 6 at that scale) is twice as
    much, the printed figure being the limit for large n.
    """
    spread = math.sqrt(nonnegative_number(variance, "variance"))
    return spread * math.sqrt(2 * log_of_two_over(delta) / count(n_samples, "n_samples"))


def log_of_two_over(delta):
    return math.log(2) - math.log(confidence(delta))         # 2/δ leaves the range of doubles for the smallest δ
