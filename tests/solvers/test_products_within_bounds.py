"""Newton steps by products within bounds: directions that end at the first bound, and when a block takes over."""

import numpy as np
import pytest
import scipy.sparse as sp
from killed_fits import same, stopped
from naive_smsvm import projected_direction
from sklearn.base import clone

from cmargin import SmSVMClassifier, SmSVMRegressor
from cmargin.data.loss import Loss
from cmargin.data.open import open_rows
from cmargin.solvers import prices
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.penalty import ByColumn
from cmargin.solvers.problem import Problem, Settings

BOUNDS = [{"lower": 0.0}, {"lower": -0.02, "upper": 0.05}, {"lower": 0.01, "upper": np.inf}]


def numbers(n, m, seed=0, stored=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    y = X[:, :m // 2].sum(axis=1) + 2 * rng.standard_normal(n) > 0
    return X if stored == 1 else sp.csr_matrix(np.where(rng.random((n, m)) < stored, X, 0)), y


def penalty(m, lower=0.0, upper=np.inf, l1=0.0, l2=1e-3):
    return ByColumn(*(np.full(m, float(each)) for each in (l2, l1, lower, upper)))


@pytest.mark.parametrize("shape, loss, about, limit", [
    ((4000, 400), "logistic", {}, 18), ((4000, 400), "squared_hinge", {}, 18), ((4000, 400), "hinge", {}, 0),
    ((4000, 60), "logistic", {}, 0), ((4000, 400), "logistic", {"l2": 0.0}, 0), ((200, 400), "logistic", {}, 0),
])
def test_products_limit(shape, loss, about, limit):
    problem = Problem(penalty(shape[1], **about), None, Loss(loss))
    assert prices.products_limit(open_rows(np.zeros(shape)).describe(), problem, Settings(max_passes=1000.0)) == limit


@pytest.mark.parametrize("lower, upper, l1", [(0.0, np.inf, 0.0), (-0.02, 0.05, 0.0), (-0.02, 0.05, 0.01),
                                              (-np.inf, 0.03, 0.02)])
def test_the_direction_is_that_of_the_definition(lower, upper, l1):
    X, y = numbers(600, 100)
    sign, rng = np.where(y, 1.0, -1.0), np.random.default_rng(3)
    w = np.clip(0.05 * rng.standard_normal(100), lower, upper) * (rng.random(100) < 0.7)
    own = penalty(100, lower, upper, l1)
    rows = open_rows(X).row_pass(sign, intercept=False, n_threads=1)
    newton = ContinuationNewton(rows, Problem(own, None, Loss("logistic")), Settings(1e-9, max_passes=1000), w=w,
                                products=90)
    newton.run()
    step, reads = newton.result.history[1][7], np.diff([row[0] for row in newton.result.history])
    first = ContinuationNewton(open_rows(X).row_pass(sign, intercept=False, n_threads=1),
                               Problem(own, None, Loss("logistic")),
                               Settings(1e-9, max_passes=newton.result.history[1][0] + 1), w=w, products=90)
    first.run()
    p = 1 / (1 + np.exp(sign * (X @ w)))
    H = (X * (p * (1 - p))[:, None]).T @ X / 600 + 1e-3 * np.eye(100)
    d = projected_direction(H, X.T @ (-sign * p) / 600 + 1e-3 * w, w, own.l1_each, own.lower, own.upper, 0.1)
    assert reads[0] > 2 and np.abs(d).max() > 0.01
    np.testing.assert_allclose(first.point, w + step * d, atol=1e-9)
    held = np.isin(first.point, [lower, upper])
    assert step < 1 or held.any()


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huberised_hinge"])
@pytest.mark.parametrize("bounds", BOUNDS, ids=["not negative", "both", "without zero"])
@pytest.mark.parametrize("stored", [1.0, 0.1])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_optimum_is_that_of_steps_by_a_block(loss, bounds, stored, intercept):
    X, y = numbers(1500, 200, 1, stored)
    by_products, block = (SmSVMClassifier(loss=loss, l2=1e-2, tol=1e-7, fit_intercept=intercept, linear_solver=solver,
                                          n_jobs=1, **bounds).fit(X, y) for solver in ("auto", "cholesky"))
    assert by_products.duality_gap_[0] <= 1e-7 and (stored < 1 or by_products.n_passes_ > block.n_passes_)
    assert by_products.objective_[0] == pytest.approx(block.objective_[0], rel=2e-7)
    np.testing.assert_allclose(by_products.coef_, block.coef_, atol=5e-4)          # sqrt(2 tol P / l2)
    held = (by_products.coef_ == bounds["lower"]) | (by_products.coef_ == bounds.get("upper", np.inf))
    assert held.sum() > 10
    assert (by_products.coef_ >= bounds["lower"]).all() and (by_products.coef_ <= bounds.get("upper", np.inf)).all()


@pytest.mark.parametrize("loss", ["huber", "squared_epsilon_insensitive"])
def test_residuals_too(loss):
    X, y = numbers(1500, 200, 2)
    t = X[:, 0] - X[:, 1] + y
    model, block = (SmSVMRegressor(loss=loss, l2=1e-2, tol=1e-7, lower=-0.1, upper=0.3, linear_solver=solver,
                                   n_jobs=1).fit(X, t) for solver in ("auto", "cholesky"))
    assert np.max(model.duality_gap_) <= 1e-7 and model.n_passes_ > block.n_passes_
    np.testing.assert_allclose(model.coef_, block.coef_, atol=1e-3)


def test_few_reads_where_columns_are_alike_in_size():
    # 7 evaluations with curvature before, each as dear as nine of these reads
    X, y = numbers(3000, 150, 4)
    model = SmSVMClassifier(loss="logistic", l2=1e-2, lower=0.0, fit_intercept=False, n_jobs=1).fit(X, y)
    assert model.duality_gap_[0] <= 1e-4 and model.n_passes_ <= 14


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_where_the_wrong_columns_stop_a_block_goes_on(loss):
    # columns that a few directions explain: projected steps were cut short a hundred times, for 2,000 reads
    rng = np.random.default_rng(6)
    X = rng.standard_normal((1200, 40)) @ rng.standard_normal((40, 160)) + 0.3 * rng.standard_normal((1200, 160))
    y = X @ rng.standard_normal(160) > 0
    given = {"loss": loss, "l2": 1e-5, "lower": 0.0, "fit_intercept": False, "n_jobs": 1}
    model = SmSVMClassifier(**given).fit(X, y)
    block = SmSVMClassifier(linear_solver="cholesky", **given).fit(X, y)
    assert model.duality_gap_[0] <= 1e-4 and model.n_passes_ <= block.n_passes_ + 150
    assert model.objective_[0] == pytest.approx(block.objective_[0], rel=2e-4)


@pytest.mark.parametrize("stored", [1.0, 0.05])
def test_a_stopped_fit_goes_on_with_the_same_bits(stored, tmp_path):
    X, y = numbers(1500, 200, 5, stored)
    model = SmSVMClassifier(loss="logistic", l2=1e-4, lower=0.0, tol=1e-8, n_jobs=1)
    assert same(stopped(model, tmp_path / "kept", 3, X, y).fit(X, y), clone(model).fit(X, y))
