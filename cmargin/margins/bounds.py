"""What margin pursuit by gradient descent promises about the 0-1 risk (margin pursuit, Theorem 11)."""

import math
from typing import NamedTuple

from cmargin.margins._checks import confidence, count, nonnegative_number, positive_number
from cmargin.margins.psi import psi_inverse, psi_transform

B = 2 * math.sqrt(2) / 3        # ρ'(√2)


class ExcessRiskBound(NamedTuple):
    """The terms of Theorem 11: ``risk`` = Ψ⁻¹(``surrogate``), ``surrogate`` = ``optimisation`` + ``statistical``."""

    risk: float
    surrogate: float
    optimisation: float
    statistical: float


def excess_risk_bound(n_samples: int, n_features: int, *, strong_convexity: float, input_variance: float,
                      margin: float = 1.0, scale: float = 1.0, n_iter: int | None = None,
                      step_size: float | None = None, initial_distance: float = 1.0, delta: float = 0.05,
                      subgaussian: float = 1.0, diameter: float = 1.0) -> ExcessRiskBound:
    """Bound on R(w_T) - R*, the excess 0-1 risk after T steps of gradient descent (Algorithm 1), but for a chance 2δ.

    Ψ⁻¹_{s,γ}( (1 - αβ)^T v_X ‖w_0 - w*‖² + 4 v_X/(β² n) ((1+δ) v_X + 2 s ε*)² ) with β = 2κ v_X/(κ + v_X) and
    ε* = √(c B² v_X (d ln(3Δ√n/(2δ)) + ln(1/δ))), E‖x xᵀ‖ being E‖x‖² = v_X. The paper leaves out Δ, which its proof
    has: the default 1 is its formula. Expect to need a very large n: d enters through a covering number.

    Parameters
    ----------
    n_samples, n_features : int
        n and d.
    strong_convexity : float
        κ, a lower bound of the curvature of the surrogate risk over the search region; at most ``input_variance``.
    input_variance : float
        v_X = E‖x‖², which is also the smoothness of the surrogate risk (Lemma 14).
    margin, scale : float, default=1.0
        γ and s of the loss.
    n_iter : int, optional
        Steps T. Without it the limit T → ∞: no optimisation term.
    step_size : float, optional
        α in (0, 2/(κ + v_X)], by default 1/v_X.
    initial_distance : float, default=1.0
        ‖w_0 - w*‖.
    delta : float, default=0.05
        Chance that the bound does not hold.
    subgaussian : float, default=1.0
        c of assumption A3.
    diameter : float, default=1.0
        Δ, diameter of the search region.

    Returns
    -------
    bound : ExcessRiskBound
        Named tuple (risk, surrogate, optimisation, statistical). ``risk`` is 1, and says nothing, where the surrogate
        excess is beyond the largest value of Ψ.
    """
    n, d = count(n_samples, "n_samples"), count(n_features, "n_features")
    kappa, v = positive_number(strong_convexity, "strong_convexity"), positive_number(input_variance, "input_variance")
    if kappa > v:
        raise ValueError(f"strong_convexity cannot exceed input_variance, the smoothness: got {kappa:g} > {v:g}")
    largest_step = 1 / (kappa / 2 + v / 2)
    alpha = 1 / v if step_size is None else positive_number(step_size, "step_size")
    if alpha > largest_step:
        raise ValueError(f"step_size must be at most 2/(κ + v_X) = {largest_step:g}, got {alpha:g}")
    delta, s = confidence(delta), positive_number(scale, "scale")
    distance = nonnegative_number(initial_distance, "initial_distance")
    c, region = positive_number(subgaussian, "subgaussian"), positive_number(diameter, "diameter")

    # written so that what leaves the range of doubles is infinite, and says nothing, never NaN
    beta = kappa * (2 / (1 + kappa / v))
    left = 0.0 if n_iter is None else max(0.0, 1 - alpha * beta) ** count(n_iter, "n_iter")
    optimisation = left * v * distance * distance if left * v * distance > 0 else 0.0
    # at least one ball covers the region, however small it is
    covering = max(0.0, math.log(region) + math.log(1.5 * math.sqrt(n)) - math.log(delta))
    error = B * math.sqrt(c) * math.sqrt(v) * math.sqrt(d * covering - math.log(delta))
    root = math.sqrt(v) / math.sqrt(n) * (((1 + delta) * v + 2 * s * error) / beta)
    statistical = 4 * root * root
    surrogate = optimisation + statistical
    margin = positive_number(margin, "margin")
    risk = psi_inverse(surrogate, margin, s) if surrogate < psi_transform(1.0, margin, s) else 1.0
    return ExcessRiskBound(risk, surrogate, optimisation, statistical)
