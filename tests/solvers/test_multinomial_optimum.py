"""The multinomial objective to its optimum: certificate, solver, ends."""

import time
import warnings

import naive_softmax as naive
import numpy as np
import pytest
from multinomial_problems import K, M, N, laid_out, problem, solve
from scipy.special import logsumexp
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression

from cmargin import SLNDClassifier
from cmargin._runtime.clock import TimeUp
from cmargin.data import open_rows
from cmargin.solvers.multinomial import newton as multinomial_newton
from cmargin.solvers.multinomial.certificate import dual_point
from cmargin.solvers.multinomial.newton import Run, Settings

# ---------------------------------------------------------------- certificate

@pytest.mark.parametrize("intercept", [False, True])
def test_dual_value_is_the_dual_and_bounds_every_objective(intercept):
    X, labels, weight = problem()
    l2, rng = 0.05, np.random.default_rng(9)
    share = np.bincount(labels, weight) / N
    sums = np.stack([(weight * (labels == c)) @ X / N for c in range(K)], axis=1)
    best = solve(X, labels, weight, K, Settings(l2, 1e-12, intercept))[0]
    for scale in (0.0, 0.1, 1.0):
        V = scale * rng.standard_normal((M + intercept, K))
        _, entropy, gradient = naive.risk(X, labels, weight, V, intercept)
        total, v = dual_point(entropy, gradient, sums, share, intercept)
        bound = total - np.sum(v**2) / (2 * l2)
        assert bound <= best.objective + 1e-12
        p = np.array([naive.softmax(h) for h in naive.with_ones(X, intercept) @ V])
        if not intercept:
            assert bound == pytest.approx(naive.dual(X, labels, weight, p, l2), rel=1e-12)
            continue
        # mixed as the text says, the rows are feasible, and their dual is the bound or better
        slope = weight @ (p - np.eye(K)[labels]) / N
        t = np.max(slope / share) / (1 + np.max(slope / share))
        mixed = (1 - t) * p + t * (share - slope * (1 - t) / t)
        assert np.all(mixed >= -1e-15)
        np.testing.assert_allclose(weight @ (mixed - np.eye(K)[labels]), 0, atol=1e-12)
        exact = naive.dual(X, labels, weight, np.maximum(mixed, 0), l2)
        assert bound <= exact + 1e-12 <= best.objective + 2e-12
        if scale == 0:
            assert bound == pytest.approx(exact, abs=0.3)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_optimum_is_that_of_logistic_regression(C, dtype):
    X, y = load_digits(return_X_y=True)
    X, y = (X[:500, 18:38] / 16).astype(dtype), y[:500]
    other = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=200).fit(X.astype(np.float64), y)
    l2 = 1 / (C * len(y))
    best = naive.objective(X, y, np.ones(len(y)), other.coef_, other.intercept_, l2)
    for tol in (1e-4, 1e-6):
        fit, interrupted = solve(X, y, None, 10, Settings(l2, tol))
        assert interrupted is None and fit.stopped == "tol" and fit.gap <= tol
        value = naive.objective(X, y, np.ones(len(y)), fit.W, fit.bias, l2)
        assert fit.objective == pytest.approx(value, rel=1e-12)
        assert fit.objective * (1 - fit.gap) <= best * (1 + 1e-12)         # the certificate holds
        assert fit.objective <= best * (1 + tol)
    if dtype == np.float64:
        fit = solve(X, y, None, 10, Settings(l2, 1e-12))[0]
        np.testing.assert_allclose(fit.W, other.coef_ - other.coef_.mean(axis=0), atol=1e-3)


@pytest.mark.parametrize("layout", ["C", "csr"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(40, 90, 3), (300, 5, 6), (60, 4, 2)])
def test_weights_wide_rows_and_two_classes(layout, intercept, shape):
    n, m, k = shape
    X, labels, weight = problem(2, n, m, k)
    weight[5:9] = 0
    weight *= n / weight.sum()
    X, l2 = laid_out(X, layout), 1e-3
    fit, _ = solve(X, labels, 7 * weight, k, Settings(l2, 1e-7, intercept))
    assert fit.stopped == "tol"
    if not intercept:
        assert np.all(fit.bias == 0)
    value, _, gradient = naive.risk(X, labels, weight, np.vstack([fit.W.T, fit.bias]), True)
    value += l2 / 2 * np.sum(fit.W**2)
    assert value == pytest.approx(fit.objective, rel=1e-12)
    gradient[:m] += l2 * fit.W.T
    assert np.sum(gradient[:m] ** 2) / (2 * l2) <= 1.01e-7 * value      # strong convexity says the same


@pytest.mark.parametrize("C", [1e4, 3e4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_step_leaves_the_objective_higher(C, dtype):
    # a step was taken where the slope was a tenth of the first, beyond the least value: the objective rose from 0.44 to
    # 53.8, the fit turned back and ended there, with 0.935 and 0.474 of the training rows right where all can be
    X, y = load_digits(return_X_y=True)
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    fit, _ = solve(X.astype(dtype), y, None, 10, Settings(1 / (C * len(y))))
    assert fit.stopped == "tol" and fit.gap <= 1e-4
    assert np.all(np.argmax(X @ fit.W.T + fit.bias, axis=1) == y)
    assert np.max(np.diff(fit.history["objective"])) <= 1e-4 * fit.objective


def test_intercepts_that_come_in_slowly_are_no_rounding():
    # gradients said five times that the gap was within tol: to first order in the intercepts it was
    X, y = load_iris(return_X_y=True)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    fit, _ = solve(X, y, None, 3, Settings(1 / (1e4 * len(y))))
    assert fit.stopped == "tol" and fit.gap <= 1e-4


def test_a_fit_that_went_astray_goes_on_in_double_precision():
    X, labels, weight = problem(n=300, dtype=np.float32)
    run = Run(open_rows(X), labels, weight, K, Settings(1e-4, 1e-6))
    run.arrive(*run.source.risk(run.V), None)
    run.steps(2)
    assert not run.source.precise
    low = run.newton.low_V.copy()
    run.V = 100 * run.V
    assert not run.arrive(*run.source.risk(run.V), None) and run.source.precise           # astray, and not the end
    np.testing.assert_allclose(run.V[:M], low[:M])
    run.go(None)
    assert run.result.stopped == "tol" and run.result.gap <= 1e-6


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_wide_rows_of_low_rank(seed):
    # the eigenvalues behind the pairs were taken for 0, so that what rounding of single precision leaves there was
    # multiplied by 1 / l2; steps of one product each followed, some 130 of them
    X, labels = np.random.default_rng(seed).standard_normal((60, 900)), np.arange(60) % 2
    fit, _ = solve(X, labels, None, 2, Settings(1e-8))
    assert fit.stopped == "tol" and fit.n_newton < 100


def test_separable_rows_and_a_large_penalty():
    X = np.eye(6).repeat(3, axis=0)
    labels = np.arange(6).repeat(3)
    fit, _ = solve(X, labels, None, 6, Settings(1e-7, 1e-6))
    assert fit.gap <= 1e-6 and np.all(np.argmax(X @ fit.W.T + fit.bias, axis=1) == labels)
    X, labels, weight = problem()
    fit, _ = solve(X, labels, weight, K, Settings(1e6, 1e-6))
    share = np.bincount(labels, weight) / N
    assert fit.gap <= 1e-6
    assert fit.objective == pytest.approx(-np.sum(share * np.log(share)), rel=1e-4)


def test_a_class_without_rows():
    X, labels, weight = problem()
    labels = labels + (labels >= 2)                                # class 2 has none
    fit, _ = solve(X, labels, weight, K + 1, Settings(1e-3, 1e-6))
    assert fit.gap <= 1e-6 and np.all(fit.W[2] == 0) and np.isfinite(fit.bias[2])
    assert np.all(np.argmax(X @ fit.W.T + fit.bias, axis=1) != 2)
    assert naive.objective(X, labels, weight, fit.W, fit.bias, 1e-3) == pytest.approx(fit.objective, rel=1e-12)
    one, _ = solve(X, np.zeros(N, np.int64), None, 1, Settings(1e-3))
    assert one.objective == 0 and np.all(one.W == 0)


def test_columns_of_very_different_size():
    X, labels, weight = problem(n=400)
    X = (X * 10.0 ** np.arange(-3, 4)).astype(np.float32)
    fit, _ = solve(X, labels[:400], weight, K, Settings(1e-4, 1e-6))
    assert fit.stopped == "tol"


@pytest.mark.parametrize("big", [1e8, 1e12, 1e14, 1e16])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_entry_far_larger_than_all_others(big, seed):
    # scores kept from step to step were not those of the weights any more; P went from 0.7 to NaN, and NaN was returned
    rng = np.random.default_rng(seed)
    X, y = rng.random((9, 8)), np.array([3, 3, 2, 3, 1, 0, 3, 1, 2])
    X[8, 4] = big
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SLNDClassifier(loss="multinomial", l2=0.01, max_passes=20).fit(X, y)
    h = model.decision_function(X)
    risk = np.mean(logsumexp(h, axis=1) - h[np.arange(9), y])
    np.testing.assert_allclose(model.objective_, risk + 0.005 * np.sum(model.coef_**2), rtol=1e-6)
    assert model.objective_ < 1.28                       # of the shares of the classes alone
    assert model.duality_gap_ >= 0


def test_a_tolerance_beyond_float64_ends():
    X, labels, weight = problem()
    fit, _ = solve(X, labels, weight, K, Settings(1e-3, 1e-18))
    assert fit.stopped in ("rounding", "tol") and fit.gap < 1e-12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_not_rounding_is_not_taken_for_it(dtype):
    # rows that a plane separates: intercepts come in more slowly than the weights, and single precision creeps
    for seed in (4, 10, 25, 33):
        for n, m, k in ((3, 5, 3), (4, 5, 2), (6, 10, 3)):
            X = np.random.default_rng(seed).standard_normal((n, m)).astype(dtype)
            for l2 in (1e-5, 1e-7):
                fit, _ = solve(X, np.arange(n) % k, None, k, Settings(l2, 1e-4))
                assert fit.stopped == "tol" and fit.gap <= 1e-4 and fit.n_newton < 60


def test_a_start_near_the_optimum_is_used():
    X, labels, weight = problem(n=1000, m=20)
    cold, _ = solve(X, labels, weight, K, Settings(1e-4, 1e-6))
    warm, _ = solve(X, labels, weight, K, Settings(1e-4, 1e-6), start=(cold.W, cold.bias))
    assert warm.n_newton == 0 and cold.n_newton > 1
    assert warm.objective == pytest.approx(cold.objective, rel=1e-6)


# ---------------------------------------------------------------- ends

def test_deadline_callback_and_interrupt():
    X, labels, weight = problem(n=2000, m=30)
    late, _ = solve(X, labels, weight, K, Settings(1e-6, 1e-9, deadline=time.perf_counter() - 1))
    assert late.stopped == "max_time" and np.all(np.isfinite(late.W)) and late.gap == np.inf
    seen = []

    def watch(result):
        seen.append(result.objective)
        return len(seen) == 3

    received, _ = solve(X, labels, weight, K, Settings(1e-6, 1e-9), on_step=watch)
    assert received.stopped == "callback" and received.n_newton == 2 and seen[0] > seen[1] > seen[2]

    def break_off(result):
        if result.n_newton == 2:
            raise KeyboardInterrupt

    cut, interruption = solve(X, labels, weight, K, Settings(1e-6, 1e-9), on_step=break_off)
    assert cut.stopped == "interrupted" and isinstance(interruption.error, KeyboardInterrupt)
    np.testing.assert_array_equal(cut.W, received.W)
    few, _ = solve(X, labels, weight, K, Settings(1e-6, 1e-9, max_newton=2))
    assert few.stopped == "max_newton" and np.isfinite(few.gap)
    np.testing.assert_array_equal(few.W, received.W)
    run = Run(open_rows(X), labels, weight, K, Settings(1e-6, deadline=time.perf_counter() - 1))
    with pytest.raises(TimeUp):
        run.source.risk(np.zeros((31, K)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("intercept", [False, True])
def test_steps_one_by_one_are_those_that_nobody_looks_at(dtype, intercept):
    X, labels, weight = problem(3, 900, m=12, dtype=dtype)
    settings, seen = Settings(1e-5, 1e-6, intercept), []
    free, _ = solve(X, labels, weight, K, settings)
    looked_at, _ = solve(X, labels, weight, K, settings, on_step=lambda result: seen.append(result.objective))
    np.testing.assert_array_equal(free.W, looked_at.W)
    np.testing.assert_array_equal(free.bias, looked_at.bias)
    assert (free.gap, free.n_newton, free.reads) == (looked_at.gap, looked_at.n_newton, looked_at.reads)
    assert free.n_newton >= 4 and len(seen) >= free.n_newton
    for name in ("passes", "objective", "gap", "products"):
        assert free.history[name] == looked_at.history[name], name
    assert np.all(np.diff(free.history["seconds"]) >= 0)


@pytest.mark.parametrize("bad", [{"l2": 0.0}, {"l2": np.nan}, {"l2": 1.0, "tol": 0.0}])
def test_settings_are_checked(bad):
    with pytest.raises(ValueError, match=r"l2|tol"):
        Settings(**bad)


def test_weights_are_checked():
    X, labels, _ = problem()
    for weight in (np.zeros(N), np.full(N, np.nan), -np.ones(N)):
        with pytest.raises(ValueError, match="weights"):
            solve(X, labels, weight, K, Settings(1e-3))


def test_history_has_an_entry_a_step():
    X, labels, weight = problem(n=500)
    run = Run(open_rows(X), labels, weight, K, Settings(1e-4, 1e-6))
    run.go(None)
    history = run.result.history
    assert {len(column) for column in history.values()} == {len(history["passes"])}
    assert np.all(np.diff(history["objective"]) < 0) and np.all(np.diff(history["passes"]) > 0)


def test_a_class_without_rows_changes_no_more_than_the_weights():
    # fields of the result were told by their place, and came to stand in those of others
    X, y = np.random.default_rng(4).standard_normal((90, 4)), np.arange(90) % 3
    settings = Settings(0.1, 1e-6, True, n_threads=1)
    (few, _), (all_classes, _) = (multinomial_newton.solve(open_rows(X), labels, None, n_classes, settings)
                                  for labels, n_classes in ((y, 3), (y + (y > 0), 4)))
    np.testing.assert_array_equal(all_classes.W, np.insert(few.W, 1, 0, axis=0))
    for name in ("objective", "gap", "stopped", "from_ridge", "n_newton", "reads"):
        assert getattr(all_classes, name) == getattr(few, name), name
