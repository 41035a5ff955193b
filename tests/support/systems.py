"""Newton's system of a curvature block, H known by its upper triangle, as the compiled steps solve it."""

import numpy as np
from api import _group_model, _system
from c_functions import ARRAY, FLAG, NUMBER, SIZE, c_function

solve_upper = c_function(_system, "solve_upper", NUMBER, SIZE, ARRAY, SIZE, ARRAY, ARRAY, ARRAY)
l1_work_size = c_function(_system, "l1_work_size", SIZE, SIZE)
l1_minimum = c_function(_system, "l1_minimum", FLAG, SIZE, *[ARRAY] * 6, FLAG, *[NUMBER] * 3, *[ARRAY] * 3)
group_work_size = c_function(_group_model, "group_work_size", SIZE, SIZE)
group_minimum = c_function(_group_model, "group_minimum", FLAG, SIZE, *[ARRAY] * 5, FLAG, *[NUMBER] * 3, *[ARRAY] * 3)


def cholesky_solve(upper, rhs):
    """H^-1 rhs (n,), and the ridge it took, NaN where H is not finite."""
    x, scratch = np.empty(len(rhs)), np.empty(upper.shape)
    return x, solve_upper(len(rhs), upper, 1, rhs, x, scratch)


def l1_model_minimum(upper, g, w, l1, rounds=20, tol=1e-3, lowest=None, highest=None):
    """argmin over d of g'd + d'Hd/2 + sum l1_j |w_j + d_j| between bounds of w + d, in the rounds and to the tolerance
    of a Newton step.
    """
    n = len(w)
    d, work, index = np.empty(n), np.empty(l1_work_size(n)), np.empty(3 * n, np.intp)
    assert l1_minimum(n, upper, g, w, l1, lowest, highest, rounds, tol, 0.0, np.inf, d, work, index)
    return d


def group_model_minimum(upper, g, w, group, mu, rounds=20, tol=1e-3):
    """argmin over d of g'd + d'Hd/2 + sum of mu |w + d| over groups, mu that of every column's; group -1: of none."""
    n = len(w)
    d, work, index = np.empty(n), np.empty(group_work_size(n)), np.empty(3 * n, np.intp)
    assert group_minimum(n, upper, g, w, np.array(group, float), mu, rounds, tol, 0.0, np.inf, d, work, index)
    return d
