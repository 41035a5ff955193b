"""The multinomial optimum with l1, elastic net or norms of columns: its certificate, against twins and peers."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from cmargin._runtime.clock import TimeUp
from cmargin.data import open_rows
from cmargin.solvers.multinomial.by_columns import ColumnRun
from cmargin.solvers.multinomial.newton import Settings, solve
from tests.kernels.api import ColumnModel
from tests.support.multinomial_problems import LAYOUTS, laid_out, problem
from tests.twins.naive_multinomial import gradient, row_losses, softmax
from tests.twins.naive_multinomial_l1 import nearest, objective, optimum

PENALTIES = [(0.0, 0.05, False), (0.03, 0.03, False), (0.0, 0.08, True), (0.02, 0.08, True)]


def fit(X, y, weight, n_classes, l2, l1, grouped, intercept=True, **settings):
    settings = Settings(l2, fit_intercept=intercept, l1=l1, grouped=grouped, **settings)
    return solve(open_rows(X), y, weight, n_classes, settings, kind=ColumnRun)[0]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("l2", "l1", "grouped"), PENALTIES)
def test_the_optimum_of_the_twin(l2, l1, grouped, intercept):
    X, y, weight = problem()
    result = fit(X, y, weight, 4, l2, l1, grouped, intercept, tol=1e-10)
    W, b = optimum(X, y, weight, 4, l2, l1, grouped, intercept)
    assert result.stopped == "tol" and result.gap <= 1e-10
    np.testing.assert_allclose(result.W, W, atol=1e-5)
    np.testing.assert_allclose(result.bias, b - b.mean() * intercept, atol=1e-5)
    assert np.array_equal(result.W != 0, W != 0) and (result.W == 0).any()
    assert result.objective == pytest.approx(objective(X, y, weight, result.W, result.bias, l2, l1, grouped), rel=1e-12)


@pytest.mark.parametrize("seed", range(24))
def test_a_certificate_holds_whatever_stops_the_fit(seed):
    # the reference: L-BFGS-B on W = U - V, U, V >= 0; or the twin, with norms
    rng = np.random.default_rng(seed)
    n, m, k = rng.integers(8, 40), rng.integers(1, 12), rng.integers(2, 6)
    X = rng.standard_normal((n, m)) * 10 ** rng.uniform(-1, 1, m) * (rng.random((n, m)) < rng.choice([0.3, 1.0]))
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    weight, grouped, intercept = rng.uniform(0, 2, n), bool(seed % 4 == 3), bool(rng.random() < 0.7)
    l1, l2 = 10 ** rng.uniform(-3, -0.7), rng.choice([0.0, 10 ** rng.uniform(-4, 0)])
    rows = sparse.csr_array(X) if rng.random() < 0.5 else X
    result = fit(rows, y, weight, k, l2, l1, grouped, intercept, tol=rng.choice([1e-2, 1e-4, 1e-7]))
    least = reference(X, y, weight, k, l2, l1, grouped, intercept)
    assert result.objective * (1 - result.gap) <= least * (1 + 1e-9)
    assert result.objective <= least * (1 + 1e-9) / (1 - result.gap)
    assert result.stopped == "tol"


def reference(X, y, weight, k, l2, l1, grouped, intercept):
    m = X.shape[1]
    if grouped:
        W, b = optimum(X, y, weight, k, l2, l1, True, intercept)
        return objective(X, y, weight, W, b, l2, l1, True)

    def split(z):
        U, V, b = np.split(z, [m * k, 2 * m * k])
        return (U - V).reshape(k, m), b * intercept

    def value(z):
        W, b = split(z)
        G, g = gradient(X, y, W, b, weight / weight.sum())
        ahead = (G + l2 * W).ravel()
        return (weight @ row_losses(X @ W.T + b, y) / weight.sum() + l2 / 2 * (W**2).sum() + l1 * z[:2 * m * k].sum(),
                np.concatenate([ahead + l1, -ahead + l1, g * intercept]))

    bounds = [(0, None)] * (2 * m * k) + [(None, None)] * k
    found = minimize(value, np.zeros(2 * m * k + k), jac=True, bounds=bounds, method="L-BFGS-B",
                     options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 0, "gtol": 1e-10, "maxcor": 30})
    W, b = split(found.x)
    return objective(X, y, weight, W, b, l2, l1, False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_has_the_same_optimum(layout, dtype):
    X, y, weight = problem(dtype=dtype)
    rows = laid_out(X, layout)
    plain = rows.toarray() if sparse.issparse(rows) else np.array(rows)
    result = fit(rows, y, weight, 4, 0.01, 0.01, False, tol=1e-9)
    same = fit(plain.astype(float), y, weight, 4, 0.01, 0.01, False, tol=1e-9)
    assert result.gap <= 1e-9
    np.testing.assert_allclose(result.W, same.W, atol=1e-5)


def test_fewer_columns_than_there_are():
    # 1,500 columns of which three tell the classes: rounds list some of them
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 1500))
    y = (X[:, :3] @ rng.standard_normal((3, 5)) * 2 + rng.gumbel(size=(120, 5))).argmax(axis=1)
    for grouped, sparse_rows in ((False, False), (True, False), (False, True)):
        rows = sparse.csr_array(np.where(np.abs(X) > 1, X, 0)) if sparse_rows else X
        result = fit(rows, y, None, 5, 0.0, 0.03, grouped, tol=1e-7)
        used = np.any(result.W != 0, axis=0)
        assert result.gap <= 1e-7 and 0 < used.sum() < 200
        if grouped:
            assert np.all(result.W[:, used] != 0)


def test_columns_of_unequal_size_are_listed_one_after_the_other():
    # without l2 the gap hardly falls until the last of them is there, while the objective does from round to round
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 40)) * 10 ** rng.uniform(-4, 4, 40)
    result = fit(X, rng.integers(0, 4, 80), None, 4, 0.0, 0.1, False, tol=1e-5)
    assert result.stopped == "tol" and result.history["gap"][6] > 0.5


@pytest.mark.parametrize("l2", [0.0, 1e-3])
def test_weights_so_large_that_single_precision_sees_no_curvature(l2):
    X = sparse.csr_array(np.repeat(np.eye(4), 5, axis=0))
    y = np.repeat(np.arange(4), 5)
    cold = fit(X, y, None, 4, l2, 0.01, False, False, tol=1e-7)
    start = 200 * np.eye(4), np.zeros(4)
    settings = Settings(l2, fit_intercept=False, l1=0.01, tol=1e-7)
    far, _ = solve(open_rows(X), y, None, 4, settings, start, kind=ColumnRun)
    assert cold.stopped == far.stopped == "tol"
    np.testing.assert_allclose(far.W, cold.W, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_a_start_worse_than_no_weights(seed):
    X, y, weight = problem()
    rng = np.random.default_rng(seed)
    start = 1e3 * rng.standard_normal((4, X.shape[1])), 1e3 * rng.standard_normal(4)
    far, _ = solve(open_rows(X), y, weight, 4, Settings(0.0, l1=0.01, tol=1e-7), start, kind=ColumnRun)
    assert far.stopped == "tol"
    np.testing.assert_allclose(far.W, fit(X, y, weight, 4, 0.0, 0.01, False, tol=1e-7).W, atol=1e-5)


@pytest.mark.parametrize("ending", [TimeUp, KeyboardInterrupt])
def test_what_a_round_had_come_to_is_kept(ending, monkeypatch):
    X, y, weight = problem()
    whole, steps = ColumnRun.step, []

    def step(run, *arguments):
        steps.append(len(run.result.history["gap"]))
        if steps.count(1) == 3:
            raise ending
        return whole(run, *arguments)

    monkeypatch.setattr(ColumnRun, "step", step)
    result, interruption = solve(open_rows(X), y, weight, 4, Settings(0.0, l1=0.002, tol=1e-9), kind=ColumnRun)
    assert result.stopped == ("interrupted" if interruption else "max_time") and result.W.any()
    told = objective(X, y, weight, result.W, result.bias, 0.0, 0.002, False)
    assert result.objective == pytest.approx(told, rel=1e-12)
    assert result.objective < result.history["objective"][-1] and result.gap < result.history["gap"][-1]


@pytest.mark.parametrize("threads", [2, 3])
def test_the_bits_do_not_depend_on_threads(threads):
    X, y, weight = problem(n=3000, m=40)
    one = fit(X, y, weight, 4, 0.0, 0.002, False)
    more = fit(X, y, weight, 4, 0.0, 0.002, False, n_threads=threads)
    assert np.array_equal(one.W, more.W) and np.array_equal(one.bias, more.bias)


@pytest.mark.parametrize("k", [2, 3, 4, 7, 10, 14, 16, 17, 40])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("dense", [True, False])
def test_the_model_ends_at_its_minimum(k, grouped, dense):
    rng = np.random.default_rng(k)
    n, p = 60, 5
    X = rng.standard_normal((p, n)).astype(np.float32)
    if not dense:
        X[np.abs(X) < 0.7] = 0
    P, weight = softmax(rng.standard_normal((n, k))), rng.uniform(0.5, 1.5, n).astype(np.float32) / n
    W, G = rng.standard_normal((p, k)) * (rng.random((p, 1)) < 0.6), 0.1 * rng.standard_normal((p, k))
    G -= G.mean(axis=1, keepdims=True)
    columns = sparse.csr_array(X)
    values, starts = (X.ravel(), np.arange(p + 1) * n) if dense else (columns.data, columns.indptr)
    model = ColumnModel(values, starts.astype(np.int64), None if dense else columns.indices.astype(np.int32), weight, k,
                        False, grouped)
    l1, l2 = 0.02, 0.003
    model.begin(P, G, W, np.full(p, l1), np.full(p, l2), 1e-10, 60)
    while not model.go(0.0, 1000):                                   # a column at a time
        pass
    D = model.direction
    d = X.T.astype(float) @ D
    q = weight[:, None] * P * (d - (P * d).sum(axis=1, keepdims=True))
    moved = (W + D - (G + X @ q)).T                                  # a proximal step from the minimum ends there
    np.testing.assert_allclose(nearest(moved, 1.0, l2, l1, grouped), (W + D).T, atol=3e-5)


def test_shapes_that_do_not_fit_are_refused():
    ones = np.ones(6, np.float32)
    with pytest.raises(ValueError, match="shapes do not fit"):
        ColumnModel(ones, np.array([0, 2, 5]), None, ones[:3], 2, False, False)
    model = ColumnModel(ones, np.array([0, 3, 6]), None, ones[:3], 2, False, False)
    with pytest.raises(ValueError, match="shapes do not fit"):
        model.begin(np.ones((3, 2)), np.ones((1, 2)), np.ones((2, 2)), np.ones(2), np.ones(2), 0.1, 9)


@pytest.mark.parametrize("penalties", [(0.0, 0.0), (-1.0, 1.0), (0.0, np.inf), (np.nan, 1.0)])
def test_no_penalty_is_refused(penalties):
    with pytest.raises(ValueError, match="must be positive and finite"):
        Settings(penalties[0], l1=penalties[1])
