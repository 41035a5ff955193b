"""Dual values: how far from the optimum a point can be at most, from sums one look at the rows has made anyway.

For any dual variables a, 0 <= a <= 1 (squared hinge: a >= 0), v = (1/N) sum s a y x and S = (1/N) sum s G(a) bound the
objective by

    D(a) = S - |soft(v, l1)|^2 / (2 l2),

G(a) = -F*(-a): a for the hinge, a - a^2/4 for the squared hinge, the entropy of a for the logistic loss. G is concave
and G(0) = 0, so that G(ta) >= t G(a) for 0 <= t <= 1: a part t of the dual variables is worth t S at least
(doc/algorithms/smsvm.md, "Certificate"). Sums in double have errors; `ROUNDING` times their size is held against D.
"""

import numpy as np

ROUNDING = 8 * np.finfo(float).eps      # of a sum of N terms, beside the root mean square of a term


def feasible(gradient, dual_pos, dual_neg, free, worth=None):
    """S and v of dual variables that are feasible.

    Parameters
    ----------
    gradient : (2, p) array
        The parts of v over positive and negative rows.
    dual_pos, dual_neg : float
        Sums of s a over them.
    worth : pair of float or None
        Sums of s G(a) over them; None: those of s a, as the hinge has it.
    free : int or None
        Column of ones that is not penalised: a must balance the classes, so the heavier side is shrunk. The value
        stays a valid lower bound whatever a was.

    Returns
    -------
    float, (p,) array, that of ``free`` left out (it is the last)
    """
    pos, neg = 1.0, 1.0
    if free is not None:
        if dual_pos > dual_neg:
            pos = dual_neg / dual_pos
        elif dual_neg > 0:
            neg = dual_pos / dual_neg
    v = pos * gradient[0] + neg * gradient[1]
    worth = (dual_pos, dual_neg) if worth is None else worth
    return pos * worth[0] + neg * worth[1], v if free is None else v[:free]


def bound(total, v, l2, l1, noise=0.0):
    """The best of D(t a), 0 <= t <= 1: a lower bound of the objective; 0, the bound of a = 0, at worst.

    Parameters
    ----------
    total : float, S
    v : (p,) array
    l2, l1 : float
    noise : (p,) array or 0
        What rounding may have taken from |v|.

    Returns
    -------
    float, NaN where there is no bound (l1 = l2 = 0)
    """
    if l1 == 0 and l2 == 0:
        return np.nan
    size = np.abs(v) + noise
    largest = size.max(initial=0.0)
    if not (np.isfinite(total) and largest < np.inf and total > 0):
        return 0.0
    if l2 == 0:
        return total * min(1.0, l1 / largest) if largest > 0 else total
    t = best_multiple(total, size, l2, l1)
    over = np.maximum(t * size - l1, 0.0)
    with np.errstate(over="ignore"):
        value = t * total - over @ over / (2 * l2)
    return max(0.0, value)


def best_multiple(total, size, l2, l1):
    """argmax over 0 <= t <= 1 of t S - sum max(0, t |v_j| - l1)^2 / (2 l2).

    The derivative S - sum_{t |v_j| > l1} (t v_j^2 - l1 |v_j|) / l2 falls with t: its root with the k largest |v_j|.
    """
    if l1 == 0:
        with np.errstate(over="ignore"):
            square = size @ size
        return min(1.0, l2 * total / square) if square > 0 else 1.0
    order = np.sort(size)[::-1]
    order = order[order > 0]
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        root = (l2 * total + l1 * np.cumsum(order)) / np.cumsum(order * order)
    k = np.count_nonzero(root * order > l1)      # a root belongs to its k columns as long as the k-th is over l1
    return min(1.0, root[k - 1]) if k else 1.0


def dual_value(gradient, dual_pos, dual_neg, l2, l1, free):
    """`bound` of what `feasible` makes of the sums."""
    return bound(*feasible(gradient, dual_pos, dual_neg, free), l2, l1)
