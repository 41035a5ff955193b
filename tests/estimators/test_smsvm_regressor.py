"""SmSVMRegressor against independent solvers: HiGHS for linear programs, SLSQP for small quadratic ones."""


import numpy as np
import pytest
from naive_regression import kinks_of, objective
from scipy.optimize import linprog, minimize

from cmargin import SmSVMRegressor

LOSSES = [("epsilon_insensitive", 0.3), ("epsilon_insensitive", 0.0), ("quantile", 0.5), ("quantile", 0.1)]


def model(loss, parameter, **more):
    return SmSVMRegressor(loss, **{"epsilon" if loss == "epsilon_insensitive" else "quantile": parameter}, **more)


def random_problem(rng):
    n, m = int(rng.integers(1, 25)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, m)) * 10.0 ** rng.integers(-1, 2, m)
    t = X @ rng.standard_normal(m) * rng.integers(0, 2) + rng.standard_t(2, n) * 10.0 ** rng.integers(-1, 2) + 3
    s = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else np.ones(n)
    loss, parameter = LOSSES[rng.integers(len(LOSSES))]
    if loss == "epsilon_insensitive" and parameter > 0:
        parameter = float(10.0 ** rng.uniform(-3, 1))
    return X, t, s, loss, parameter


def as_program(X, t, s, kinks, l1, fit_intercept):
    """Linear program of w+, w-, b and the losses above and below: costs, inequalities, bounds."""
    (n, m), (up, down, e) = X.shape, kinks
    costs = np.concatenate([np.full(2 * m, l1), [0.0], up * s / s.sum(), down * s / s.sum()])
    b = np.full((n, 1), float(fit_intercept))
    above = np.hstack([-X, X, -b, -np.eye(n), np.zeros((n, n))])           # t - w x - b - e <= above
    below = np.hstack([X, -X, b, np.zeros((n, n)), -np.eye(n)])
    bounds = [(0, None)] * (2 * m) + [(None, None)] + [(0, None)] * (2 * n)
    return costs, np.vstack([above, below]), np.concatenate([e - t, e + t]), bounds


def check(found, X, t, s, kinks, l2, l1, best):
    """The objective is that of the weights; the gap that is told covers the distance to the ``best``, found apart."""
    value = objective(X, t, found.coef_, found.intercept_, kinks, l2, l1, s)
    assert found.objective_[0] == pytest.approx(value, rel=1e-9, abs=1e-12 * np.abs(t).max())
    slack = 1e-8 * np.abs(t).max() + 1e-7 * best
    assert value >= best - slack
    assert value - best <= found.duality_gap_[0] * max(value, 0) + slack
    assert found.duality_gap_[0] <= found.tol or value <= 1e-12 * np.abs(t).max()


@pytest.mark.parametrize("seed", range(150))
def test_linear_programs_are_certified(seed):
    rng = np.random.default_rng([59, seed])
    X, t, s, loss, parameter = random_problem(rng)
    l1, fit_intercept, kinks = float(10.0 ** rng.uniform(-3, 0)), bool(rng.integers(2)), kinks_of(loss, parameter)
    costs, A, b, bounds = as_program(X, t, s, kinks, l1, fit_intercept)
    best = linprog(costs, A, b, bounds=bounds, method="highs").fun
    found = model(loss, parameter, l2=0.0, l1=l1, fit_intercept=fit_intercept, tol=1e-6).fit(X, t, s)
    check(found, X, t, s, kinks, 0.0, l1, best)


@pytest.mark.parametrize("seed", range(60))
def test_quadratic_programs_are_certified(seed):
    rng = np.random.default_rng([60, seed])
    X, t, s, loss, parameter = random_problem(rng)
    X, unit = X / np.abs(X).max(), np.abs(t).max()
    t, kinks = t / unit, kinks_of(loss, parameter)
    l2, l1 = float(10.0 ** rng.uniform(-3, 0)), float(10.0 ** rng.uniform(-3, 0)) * rng.integers(2)
    costs, A, b, bounds = as_program(X, t, s, kinks, l1, True)
    m = X.shape[1]

    def value(v):
        w = v[:m] - v[m:2 * m]
        return costs @ v + l2 / 2 * w @ w, costs + l2 * np.concatenate([w, -w, np.zeros(len(v) - 2 * m)])

    start = np.concatenate([np.zeros(2 * m + 1), np.maximum(t - kinks[2], 0), np.maximum(-t - kinks[2], 0)])
    best = minimize(value, start, jac=True, method="SLSQP", bounds=bounds, options={"ftol": 1e-13, "maxiter": 1000},
                    constraints={"type": "ineq", "fun": lambda v: b - A @ v, "jac": lambda v: -A})
    found = model(loss, parameter, l2=l2, l1=l1, tol=1e-6).fit(X, t, s)
    if best.success:
        check(found, X, t, s, kinks, l2, l1, min(best.fun, found.objective_[0]))
    assert found.duality_gap_[0] <= 1e-6
