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


def left_out_path(G, weight, penalty, a, i, end):
    """Margin of row i of the hinge's optimum where its dual variable has come from weight_i a_i to ``end``.

    G: (n, q) rows; a: (n,) dual variables of the optimum, of which those of independent rows at the kink are between 0
    and 1; the conditions of all rows at the kink are solved anew at every vertex.
    """
    n, q = G.shape
    kink, up, alpha = [j for j in range(n) if 1e-9 < a[j] < 1 - 1e-9 and j != i], a > 0.5, weight * a

    def solved(right, ones):
        K = np.block([[np.diag(penalty), -G[kink].T], [G[kink], np.zeros((len(kink), len(kink)))]])
        found = np.linalg.solve(K, np.r_[right, np.full(len(kink), ones)])
        return found[:q], found[q:]
    while True:
        others = [j for j in range(n) if j not in kink]
        v, alpha[kink] = solved(alpha[others] @ G[others], 1.0)
        dv, dalpha = solved(-np.sign(alpha[i] - end) * G[i], 0.0)
        z, dz, step, event = G @ v, G @ dv, abs(alpha[i] - end), None
        for at, j in enumerate(kink):
            limit = (weight[j] if dalpha[at] > 0 else 0.0) - alpha[j]
            if dalpha[at] and limit / dalpha[at] < step:
                step, event = limit / dalpha[at], (j, dalpha[at] > 0)
        for j in others:
            if j != i and (dz[j] > 0) == up[j] and dz[j] and 0 <= (1 - z[j]) / dz[j] < step:
                step, event = (1 - z[j]) / dz[j], (j, None)
        alpha[kink] += step * dalpha
        alpha[i] -= np.sign(alpha[i] - end) * step
        if event is None:
            return G[i] @ (v + step * dv)
        j, rises = event
        if rises is None:
            kink.append(j)
        else:
            kink.remove(j)
            up[j], alpha[j] = rises, weight[j] * rises
