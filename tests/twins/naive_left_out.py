"""Slow, obvious twin of leaving one out: every problem without a row solved anew by SciPy, from zero."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


def optimum(G, weight, penalty, loss):
    """Weights of least v'Dv/2 + sum_j weight_j F(g_j'v), rows G (n, q), ``penalty`` the diagonal of D."""
    n, q = G.shape
    if loss == "hinge":                          # with a slack for every row: a quadratic programme
        found = minimize(lambda x: 0.5 * (penalty * x[:q]) @ x[:q] + weight @ x[q:], np.r_[np.zeros(q), np.ones(n)],
                         jac=lambda x: np.r_[penalty * x[:q], weight], method="SLSQP",
                         bounds=[(None, None)] * q + [(0, None)] * n, options={"ftol": 1e-15, "maxiter": 1000},
                         constraints=[{"type": "ineq", "fun": lambda x: x[q:] + G @ x[:q] - 1,
                                       "jac": lambda x: np.c_[G, np.eye(n)]}])
        return found.x[:q]

    def value(v):
        z = G @ v
        F = np.maximum(0, 1 - z) ** 2 if loss == "squared_hinge" else np.logaddexp(0, -z)
        slope = -2 * np.maximum(0, 1 - z) if loss == "squared_hinge" else -expit(-z)
        return 0.5 * (penalty * v) @ v + weight @ F, penalty * v + (weight * slope) @ G

    return minimize(value, np.zeros(q), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 10_000}).x


def left_out_margins(X, y, weight, l2, loss, fit_intercept=True, penalize_intercept=False):
    """(n,) margins y_i (<w, x_i> + b) of the optimum without row i; ``weight``: (n,), of sum 1 over all rows."""
    G = y[:, None] * (np.c_[X, np.ones(len(X))] if fit_intercept else X)
    penalty = np.full(G.shape[1], l2)
    if fit_intercept and not penalize_intercept:
        penalty[-1] = 0.0
    others = (np.arange(len(y)) != i for i in range(len(y)))
    return np.array([G[i] @ optimum(G[rows], weight[rows], penalty, loss) for i, rows in enumerate(others)])
