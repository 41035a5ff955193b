import numpy as np
import pytest
from api import _system, conjugate_gradients_of, exact_step
from c_functions import ARRAY, FLAG, NUMBER, SIZE, c_function
from naive_smsvm import line_search_l1
from systems import cholesky_solve, l1_model_minimum

run_sweeps = c_function(_system, "run_sweeps", FLAG, SIZE, *[ARRAY] * 6, FLAG, NUMBER)


def quadratic_step(w, d, b, a, weight, s_max=np.inf):
    return exact_step(lambda s: (b + 2 * a * s, 2 * a), w, d, weight, s_max)


def draw(seed, m=9):
    rng = np.random.default_rng(seed)
    w, d = rng.standard_normal((2, m))
    w[2], d[4] = 0.0, 0.0
    return w, d, -abs(rng.standard_normal()) * 4, abs(rng.standard_normal()) + 0.05, rng.random() * 0.5


@pytest.mark.parametrize("seed", range(60))
def test_quadratic_step_is_algorithm_4_and_beats_a_grid(seed):
    w, d, b, a, l1 = draw(seed)
    s, hit = quadratic_step(w, d, b, a, np.full(len(w), l1))
    expected, expected_hit = line_search_l1(w, d, b, a, l1)
    assert s == pytest.approx(expected, rel=1e-7, abs=1e-12) and hit == expected_hit
    grid = np.linspace(0, 2 * s + 1, 4001)

    def f(t):
        return a * t**2 + b * t + l1 * np.abs(w + np.multiply.outer(t, d)).sum(-1)

    assert f(s) <= f(grid).min() + 1e-12
    if hit >= 0:
        assert abs(w[hit] + s * d[hit]) < 1e-14


def test_some_minima_lie_on_breakpoints():
    # without the l1 weight in line 13 of the paper the slope never changes there, and none would
    hits = [quadratic_step(*draw(seed)[:4], np.full(9, draw(seed)[4]))[1] for seed in range(60)]
    assert sum(hit >= 0 for hit in hits) > 5


def test_a_step_stops_at_its_limit_and_an_ascent_is_not_taken():
    w, d, weight = np.ones(3), np.ones(3), np.zeros(3)
    assert quadratic_step(w, d, -1.0, 0.1, weight, 2.0) == (2.0, -1)
    assert quadratic_step(w, d, 1.0, 0.1, weight) == (0.0, -1)
    assert quadratic_step(w, d, -1.0, 0.0, weight, 3.0) == (3.0, -1)


def test_exact_step_on_a_smooth_function_far_from_quadratic():
    def phi(s):                                    # sqrt(1 + (s - 7)^2): Newton alone diverges from 0
        root = np.sqrt(1 + (s - 7) ** 2)
        return (s - 7) / root, root**-3

    s, hit = exact_step(phi, np.zeros(1), np.ones(1), np.zeros(1), np.inf, 1e-12)
    assert s == pytest.approx(7, abs=1e-9) and hit == -1


@pytest.mark.parametrize("end", [1e-3, 1e-8, 1e-40, 1e-150])
def test_exact_step_comes_back_from_a_far_end_that_hardly_rises(end):
    def phi(s):                                    # falls by 1 to the end, and rises by 1e-5 from there on
        return (-1.0, 0.0) if s < end else (1e-5, 0.0)

    s, _ = exact_step(phi, np.zeros(1), np.ones(1), np.zeros(1), 16.0, 1e-4)
    assert 1e-5 * max(s - end, 0) < min(s, end)    # lower than the start


def spd(n, rank, seed, ridge=0.1):
    Z = np.random.default_rng(seed).standard_normal((rank, n))
    return Z.T @ Z / rank + ridge * np.eye(n)


@pytest.mark.parametrize("n, rank", [(1, 1), (6, 9), (40, 200), (60, 15)])
def test_l1_model_minimum_is_optimal(n, rank):
    H, g = spd(n, rank, 3, 1e-3), np.random.default_rng(4).standard_normal(n)
    w = np.random.default_rng(5).standard_normal(n) * (np.arange(n) % 3 == 0)
    l1 = np.full(n, 0.4)
    l1[-1] = 0.0                                   # an intercept that is not penalised
    x = w + l1_model_minimum(np.triu(H), g, w, l1, rounds=60, tol=1e-9)
    slope = g + H @ (x - w)
    assert np.abs((slope + l1 * np.sign(x))[x != 0]).max(initial=0) < 1e-6
    assert np.all(np.abs(slope[x == 0]) <= l1[x == 0] + 1e-6)
    if n > 6:
        assert 0 < (x == 0).sum() < n              # exact zeros, not small numbers


@pytest.mark.parametrize("n, rank", [(30, 12), (90, 40), (200, 120)])
@pytest.mark.parametrize("seed", range(4))
def test_a_model_with_more_columns_in_use_than_directions_is_minimised(n, rank, seed):
    # Newton's direction is long where the model is flat, and each round stopped what came to zero: after all rounds
    # slopes were off by the l1 weight and more, with nearly all columns still in use
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((rank, n))
    H, l1 = Z.T @ Z / rank, np.full(n, 1e-3)
    w, g = rng.standard_normal(n) * (rng.random(n) < 0.9), rng.standard_normal(rank) @ Z / rank / 100
    x = w + l1_model_minimum(np.triu(H), g, w, l1, tol=1e-6)
    slope, used = g + H @ (x - w), x != 0
    assert np.abs(slope + l1 * np.sign(x))[used].max() < 1e-2 * l1[0]
    assert np.abs(slope).max() < 1.01 * l1[0]
    assert used.sum() <= rank


def test_sweeps_only_go_down():
    H, g = spd(12, 30, 8), np.random.default_rng(9).standard_normal(12)
    x, gradient, l1 = np.ones(12), g + H @ np.ones(12), np.full(12, 0.3)
    bounds = np.full(12, -np.inf), np.full(12, np.inf)

    def model(x):
        return g @ x + x @ H @ x / 2 + l1 @ np.abs(x)

    values = [model(x)]
    for _ in range(20):
        run_sweeps(12, H, gradient, x, l1, *bounds, 1, 0.0)
        values.append(model(x))
    assert np.all(np.diff(values) <= 1e-14)
    np.testing.assert_allclose(gradient, g + H @ x, atol=1e-12)


def test_cholesky_adds_a_ridge_only_where_it_must():
    H, b = spd(7, 20, 1), np.arange(7.0)
    x, ridge = cholesky_solve(np.triu(H), b)
    assert ridge == 0
    np.testing.assert_allclose(H @ x, b, atol=1e-12)
    singular = np.zeros((3, 3))
    singular[0, 0] = 2.0
    x, ridge = cholesky_solve(singular, np.array([1.0, 0.0, 0.0]))
    assert 0 < ridge < 1e-8 and x[0] == pytest.approx(0.5, rel=1e-6)
    assert np.isnan(cholesky_solve(np.full((2, 2), np.nan), np.ones(2))[1])


def test_conjugate_gradients():
    H, b = spd(30, 90, 2), np.ones(30)
    x, products = conjugate_gradients_of(lambda p: H @ p, b, np.diag(H), 1e-20, 200)
    np.testing.assert_allclose(H @ x, b, atol=1e-9)
    assert 1 < products < 60
    assert conjugate_gradients_of(lambda p: H @ p, b, np.diag(H), 1e9, 200)[1] == 0
