"""Losses with straight sides, where rows have a slope and no curvature, beside L-BFGS-B and proximal gradients."""

import naive_groups
import numpy as np
import pytest
from scipy.optimize import minimize

from cmargin import SmSVMClassifier, SmSVMRegressor


def straight(u, knee, height):
    """F and F' of a parabola ``height`` u^2 from 0 to ``knee``, and of its tangent beyond."""
    inside = np.clip(u, 0, knee)
    return height * inside * (2 * np.maximum(u, 0) - inside), 2 * height * inside


KINDS = {"huberised_hinge": (0.05, 10.0), "modified_huber": (2.0, 1.0)}


def problem(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 40)), int(rng.integers(1, 8))
    X = rng.standard_normal((n, m)) * rng.choice([0.1, 1, 10], m) + rng.choice([0, 2])
    y = np.where(X @ rng.standard_normal(m) + rng.standard_normal(n) > 0, 1.0, -1.0)
    y[0] = -y[1]
    return rng, X, y


def started(model, rng, m):
    """Weights set by hand, with which most rows are on the straight side."""
    model.coef_, model.intercept_ = 10 * rng.standard_normal((1, m)), rng.standard_normal(1)
    model.classes_ = np.array([-1.0, 1.0])
    return model.set_params(warm_start=True)


def least(X, y, loss, l1, lower, upper):
    m = X.shape[1]

    def value(v):
        value, slope = straight(1 - y * (X @ (v[:m] - v[m:-1]) + v[-1]), *KINDS[loss])
        gradient = -X.T @ (slope * y) / len(y)
        return value.mean() + l1 * v[:-1].sum(), np.concatenate([gradient + l1, l1 - gradient, [-(slope * y).mean()]])

    bounds = [(0, upper)] * m + [(0, -lower)] * m + [(None, None)]
    return min(minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds,
                        options={"maxiter": 10**5, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-11}).fun
               for start in (np.zeros(2 * m + 1), np.full(2 * m + 1, 0.1)))


@pytest.mark.parametrize("loss", KINDS)
def test_starts_where_no_row_has_curvature_come_to_the_minimum(loss):
    for seed in range(40):
        rng, X, y = problem(seed)
        bounds = {"lower": -0.5, "upper": 2.0} if seed % 2 else {}
        model = SmSVMClassifier(loss=loss, delta=0.05, l2=0.0, l1=0.01, tol=1e-6, **bounds)
        started(model, rng, X.shape[1]).fit(X, y)
        best = least(X, y, loss, 0.01, bounds.get("lower", -np.inf), bounds.get("upper", np.inf))
        assert 0 <= model.duality_gap_[0] <= 1e-6
        assert model.objective_[0] * (1 - model.duality_gap_[0]) <= best * (1 + 1e-9)
        assert model.objective_[0] <= best * (1 + 2e-6)


@pytest.mark.parametrize("loss", KINDS)
def test_groups_without_l2_come_to_the_minimum(loss):
    knee, height = KINDS[loss]

    def of_margins(z):
        return straight(1 - z, knee, height)

    for seed in range(12):
        rng, X, y = problem(100 + seed)
        X = X / X.std(0)
        groups = rng.integers(0, 3, X.shape[1])
        model = SmSVMClassifier(loss=loss, delta=0.05, l2=0.0, l1=0.03, tol=1e-6, groups=groups, fit_intercept=False)
        if seed % 2:
            started(model, rng, X.shape[1])
        model.fit(X, y)
        there = (lambda z: of_margins(z)[0], lambda z: -of_margins(z)[1], 2 * height)
        best = naive_groups.smooth_minimum(X, y, there, groups, 0.0, 0.03)[1]
        assert 0 <= model.duality_gap_[0] <= 1e-6
        assert model.objective_[0] * (1 - model.duality_gap_[0]) <= best * (1 + 1e-9)


@pytest.mark.parametrize("loss", KINDS)
def test_an_objective_without_a_penalty_is_no_larger_than_that_of_l_bfgs_b(loss):
    for seed in range(20):
        rng, X, y = problem(200 + seed)
        model = SmSVMClassifier(loss=loss, delta=0.05, C=np.inf, tol=1e-6)
        started(model, rng, X.shape[1]).fit(X, y)
        assert model.objective_[0] <= least(X, y, loss, 0.0, -np.inf, np.inf) * (1 + 1e-4) + 1e-7


def test_targets_far_from_what_is_predicted_of_them_are_met():
    for seed in range(20):
        rng, X, _ = problem(300 + seed)
        target = 1e3 + X @ rng.standard_normal(X.shape[1])
        model = SmSVMRegressor(loss="huber", delta=1e-2, l2=0.0, l1=1e-6, tol=1e-6).fit(X, target)
        assert 0 <= model.duality_gap_[0] <= 1e-6
