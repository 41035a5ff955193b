"""The model of a Newton step with norms of groups: its minimum is that of proximal gradients."""

import numpy as np
import pytest
from naive_groups import members
from systems import group_model_minimum, l1_model_minimum


def model_value(H, g, w, group, mu, d):
    norms = sum(mu[c][0] * np.linalg.norm((w + d)[c]) for c in members(group) if group[c[0]] >= 0)
    return g @ d + d @ H @ d / 2 + norms


def violation(H, g, w, group, mu, d):
    """Of the conditions of the minimum, over mu; of a column without a group, over 1."""
    slope, x, worst = g + H @ d, w + d, 0.0
    for c in members(group):
        size = np.linalg.norm(x[c])
        if group[c[0]] < 0:
            worst = max(worst, np.abs(slope[c]).max())
        elif size > 0:
            worst = max(worst, np.linalg.norm(slope[c] + mu[c][0] * x[c] / size) / mu[c][0])
        else:
            worst = max(worst, np.linalg.norm(slope[c]) / mu[c][0] - 1)
    return worst


def a_model(seed):
    rng = np.random.default_rng(seed)
    n, group = int(rng.integers(2, 40)), None
    group = rng.integers(0, max(1, n // 3), n)
    if seed % 2:
        group[-1] = -1
    A = rng.standard_normal((int(rng.integers(2, 3 * n)), n)) * 10.0 ** rng.uniform(-1, 1, n)
    H = A.T @ A / len(A) + 1e-6 * np.eye(n)
    weight = 10.0 ** rng.uniform(-2, 1) * np.sqrt(rng.integers(1, 9, n + 1))
    w = rng.standard_normal(n) * (rng.random(n + 1) < 0.5)[group]
    return H, A.T @ rng.standard_normal(len(A)) * 3 / len(A), w, group, weight[group]


@pytest.mark.parametrize("seed", range(40))
def test_its_minimum_satisfies_the_conditions(seed):
    H, g, w, group, mu = a_model(seed)
    d = group_model_minimum(H, g, w, group, mu, rounds=200, tol=1e-9)
    assert violation(H, g, w, group, mu, d) <= 1e-7 * max(1.0, violation(H, g, w, group, mu, 0 * d))
    for c in members(group):
        assert group[c[0]] < 0 or not (w + d)[c].any() or (w + d)[c].all()


def test_rounds_of_a_step_leave_what_they_may():
    worst = [violation(*model, d) / max(1e-9, violation(*model, 0 * d))
             for model, d in ((model, group_model_minimum(*model)) for model in map(a_model, range(100, 300)))]
    assert np.max(worst) <= 1e-2 and np.quantile(worst, 0.95) <= 1e-3


def test_groups_of_one_column_are_the_l1_model():
    for seed in range(20):
        H, g, w, _, mu = a_model(2 * seed)
        one, other = l1_model_minimum(H, g, w, mu, tol=1e-9), group_model_minimum(H, g, w, np.arange(len(w)), mu,
                                                                                  rounds=200, tol=1e-9)
        value = model_value(H, g, w, np.arange(len(w)), mu, one)
        assert model_value(H, g, w, np.arange(len(w)), mu, other) <= value + 1e-7 * abs(value)


def test_curvature_that_is_not_finite_is_no_minimum():
    H, g, w, group, mu = a_model(3)
    H[0, 0] = np.inf
    with pytest.raises(AssertionError):
        group_model_minimum(H, g, w, group, mu)
