"""Dual values: how far from the optimum a point can be at most, from sums one look at the rows has made anyway."""

import numpy as np


def soft_threshold(v, l1):
    return np.sign(v) * np.maximum(np.abs(v) - l1, 0.0)


def dual_value(gradient, dual_pos, dual_neg, l2, l1, free):
    """D(a) = S - |soft(v, l1)|^2 / (2 l2) with v = (1/N) sum s a y x, S = (1/N) sum s a: a bound from below.

    It is the dual of the hinge with both penalties (doc/algorithms/smsvm.md, "Certificate").

    Parameters
    ----------
    gradient : (2, p) array
        The parts of v over positive and negative rows.
    dual_pos, dual_neg : float
        Their parts of S.
    l2, l1 : float
    free : int or None
        Column of ones that is not penalised: a must balance the classes, so the heavier side is shrunk. The value
        stays a valid lower bound whatever a was.

    Returns
    -------
    float
        A lower bound of the objective; 0, the bound of a = 0, at worst. NaN where none exists (l1 = l2 = 0).
    """
    if l1 == 0 and l2 == 0:
        return np.nan
    pos, neg = 1.0, 1.0
    if free is not None:
        if dual_pos > dual_neg:
            pos = dual_neg / dual_pos
        elif dual_neg > 0:
            neg = dual_pos / dual_neg
    v = pos * gradient[0] + neg * gradient[1]
    if free is not None:
        v = v[:free]
    total = pos * dual_pos + neg * dual_neg
    if l2 == 0:
        largest = np.abs(v).max(initial=0.0)
        return total * min(1.0, l1 / largest) if largest > 0 else total
    if l1 == 0:
        with np.errstate(over="ignore"):
            square = v @ v
        if not square < np.inf:
            return 0.0                                                    # that of a = 0
        shrink = min(1.0, l2 * total / square) if square > 0 else 1.0     # the best multiple of a
        return shrink * total - shrink * shrink * square / (2 * l2)
    v = soft_threshold(v, l1)
    return max(0.0, total - v @ v / (2 * l2))
