"""Weights between bounds: optima beside independent solvers, the certificate, every way of a fit, bad input."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from api import _penalties
from killed_fits import stopped
from naive_smsvm import column_model_minimum, dual_value_by_column
from ranks_in_threads import on_ranks
from scipy.optimize import linprog, minimize
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from systems import l1_model_minimum
from tensors import strict

import cmargin
from cmargin import SmSVMClassifier, SmSVMClassifierCV, SmSVMRegressor, smsvm_path
from cmargin._estimators.validation import InvalidParameterError

X_bc, y_bc = load_breast_cancer(return_X_y=True)
X_bc, y_bc = scale(X_bc), 1 - y_bc                  # of which large columns tell the class 1


def losses(loss, z):
    """F and F' at margins z."""
    if loss == "logistic":
        return np.logaddexp(0, -z), -1 / (1 + np.exp(z))
    short = np.maximum(0, 1 - z)
    return (short, -1.0 * (z < 1)) if loss == "hinge" else (short**2, -2 * short)


def objective(model, X, y, l2, l1):
    z = np.where(y, 1, -1) * (X @ model.coef_[0] + model.intercept_[0])
    w = model.coef_[0]
    return losses(model.loss, z)[0].mean() + (l2 * w**2).sum() / 2 + (l1 * np.abs(w)).sum()


def least_smooth(X, y, loss, l2, l1, lower, upper, intercept):
    """The minimum by L-BFGS-B, w split into a part above 0 and one below."""
    (n, m), s = X.shape, np.where(y, 1.0, -1.0)

    def value(v):
        w, b = v[:m] - v[m:2 * m], v[-1] * intercept
        value, slope = losses(loss, s * (X @ w + b))
        gradient = X.T @ (slope * s) / n + l2 * w
        return value.mean() + (l2 * w**2).sum() / 2 + (l1 * (v[:m] + v[m:-1])).sum(), \
            np.concatenate([gradient + l1, l1 - gradient, [(slope * s).mean() * intercept]])

    low = np.concatenate([np.maximum(lower, 0), np.maximum(-upper, 0), [-np.inf]])
    high = np.concatenate([np.maximum(upper, 0), np.maximum(-lower, 0), [np.inf]])
    start = np.clip(np.zeros(2 * m + 1), low, high)
    return minimize(value, start, jac=True, method="L-BFGS-B", bounds=list(zip(low, high, strict=True)),
                    options={"maxiter": 10**5, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-11}).fun


def least_hinge(X, y, l1, lower, upper):
    """The minimum of the mean hinge plus sum l1_j |w_j|, with an intercept, by HiGHS."""
    (n, m), s = X.shape, np.where(y, 1.0, -1.0)[:, None]
    eye = np.eye(m)
    rows = np.vstack([np.hstack([-s * X, np.zeros((n, m)), -s, -np.eye(n)]),
                      np.hstack([eye, -eye, np.zeros((m, n + 1))]), np.hstack([-eye, -eye, np.zeros((m, n + 1))])])
    return linprog(np.concatenate([np.zeros(m), np.broadcast_to(l1, m), [0], np.full(n, 1 / n)]), rows,
                   np.concatenate([-np.ones(n), np.zeros(2 * m)]),
                   bounds=[*zip(lower, upper, strict=True), *[(0, None)] * m, (None, None), *[(0, None)] * n]).fun


def drawn(seed):
    """Rows of columns of different sizes, some constant, and bounds of every kind."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(5, 90)), int(rng.integers(1, 10))
    X = rng.standard_normal((n, m)) * rng.choice([0.1, 1, 10], m) + rng.choice([0, 1, 5])
    if rng.random() < 0.2:
        X[:, 0] = rng.choice([0, 1])
    y = X @ rng.standard_normal(m) + rng.standard_normal(n) > rng.standard_normal()
    y[0] = not y[1:].all()
    lower = np.where(rng.random(m) < 0.3, -np.inf, rng.choice([0, 0, -0.1, 0.1, 0.02], m))
    room = rng.choice([0, 0.05, 0.5], m)
    upper = np.where(rng.random(m) < 0.6, np.inf, np.where(np.isfinite(lower), lower, 0) + room)
    return rng, X, y, lower, upper


def is_within(model, lower, upper):
    return bool((model.coef_ >= lower).all() and (model.coef_ <= upper).all())


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_smooth_optima_are_those_of_l_bfgs_b(loss):
    at_bounds = 0
    for seed in range(50):
        rng, X, y, lower, upper = drawn(seed)
        l2, l1, intercept = float(10**rng.uniform(-3, 0)), float(rng.choice([0, 1e-3, 0.1])), bool(rng.random() < 0.7)
        model = SmSVMClassifier(l2=l2, l1=l1, loss=loss, tol=1e-6, lower=lower, upper=upper,
                                fit_intercept=intercept).fit(X, y)
        assert is_within(model, lower, upper)
        at_bounds += ((model.coef_ == lower) | (model.coef_ == upper)).sum()
        there, least = objective(model, X, y, l2, l1), least_smooth(X, y, loss, l2, l1, lower, upper, intercept)
        np.testing.assert_allclose(there, model.objective_[0], rtol=1e-10)
        assert 0 <= model.duality_gap_[0] <= 1e-6
        assert there * (1 - model.duality_gap_[0]) <= least * (1 + 1e-10)          # the bound is one
        assert there <= least * (1 + 2e-6)
    assert at_bounds > 100


def test_hinge_optima_without_l2_are_those_of_highs():
    for seed in range(50):
        rng, X, y, lower, upper = drawn(100 + seed)
        l1 = float(rng.choice([1e-3, 0.05]))
        model = SmSVMClassifier(l2=0.0, l1=l1, tol=1e-5, lower=lower, upper=upper).fit(X, y)
        there, least = model.objective_[0], least_hinge(X, y, l1, lower, upper)
        assert is_within(model, lower, upper) and model.duality_gap_[0] <= 1e-5
        assert there * (1 - model.duality_gap_[0]) <= least * (1 + 1e-9) + 1e-12
        assert there <= least * (1 + 2e-5) + 1e-12


def test_hinge_optima_with_l2_are_those_of_a_quadratic_program():
    for seed in range(15):
        rng, X, y, lower, upper = drawn(200 + seed)
        X, y, m = np.vstack([X[:1], X[-24:]]), np.append(not y[-24:].all(), y[-24:]), X.shape[1]
        l2, s, n = float(10**rng.uniform(-2, 0)), np.where(y, 1.0, -1.0)[:, None], len(y)
        model = SmSVMClassifier(l2=l2, tol=1e-6, lower=lower, upper=upper).fit(X, y)
        rows = np.hstack([s * X, s, np.eye(n)])
        bounds = [*zip(lower, upper, strict=True), (-np.inf, np.inf), *[(0, np.inf)] * n]
        start = np.concatenate([np.clip(np.zeros(m), lower, upper), [0], np.full(n, 30.0)])
        found = minimize(lambda v: l2 / 2 * v[:m] @ v[:m] + v[m + 1:].sum() / n,                      # noqa: B023
                         start, jac=lambda v: np.concatenate([l2 * v[:m], [0], np.full(n, 1 / n)]),   # noqa: B023
                         bounds=bounds,
                         constraints={"type": "ineq", "fun": lambda v: rows @ v - 1, "jac": lambda v: rows},  # noqa: B023
                         method="SLSQP", options={"ftol": 1e-12, "maxiter": 1000})
        assert model.duality_gap_[0] <= 1e-6 and is_within(model, lower, upper)
        if found.success:
            np.testing.assert_allclose(model.objective_[0], found.fun, rtol=1e-5, atol=1e-8)


# ---------------------------------------------------------------- the parts

def random_columns(rng, p):
    own = np.empty((4, p))
    own[0] = 10**rng.uniform(-2, 1, p) * (rng.random(p) < 0.7)
    own[1] = 10**rng.uniform(-2, 0, p) * (rng.random(p) < 0.5)
    own[2] = np.where(rng.random(p) < 0.5, -np.inf, rng.choice([0.0, -1.0, 0.3], p))
    own[3] = np.where(rng.random(p) < 0.5, np.inf, np.maximum(own[2], 0) + rng.choice([0.0, 0.5], p))
    own[1] = np.where((own[0] == 0) & (own[1] == 0), 0.01, own[1])
    return own


def test_the_dual_value_is_that_of_its_definition():
    rng = np.random.default_rng(0)
    for _ in range(60):
        own, v, total = random_columns(rng, 5), rng.standard_normal(5), float(10**rng.uniform(-2, 1))
        known = _penalties.bound_in_columns(total, v, own)
        np.testing.assert_allclose(known, dual_value_by_column(total, v, own), rtol=1e-9, atol=1e-12)
        assert _penalties.bound_in_columns(total, v, own, 1e-3) <= known


def test_the_dual_value_of_columns_that_are_alike_is_that_of_the_elastic_net():
    rng = np.random.default_rng(1)
    for _ in range(100):
        v, total = rng.standard_normal(12) * 10**rng.uniform(-2, 2), float(10**rng.uniform(-2, 1))
        l2, l1 = (0.0, 0.1) if rng.random() < 0.2 else 10**rng.uniform(-3, 0, 2)
        own = np.repeat([[l2], [l1], [-np.inf], [np.inf]], 12, axis=1)
        np.testing.assert_allclose(_penalties.bound_in_columns(total, v, own),
                                   _penalties.bound(total, v, float(l2), float(l1)), rtol=1e-9, atol=1e-14)


def test_there_is_no_dual_value_where_a_weight_may_grow_for_ever():
    own = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [1.0, np.inf]])
    assert np.isnan(_penalties.bound_in_columns(1.0, np.array([0.1, -0.1]), own))


def test_a_step_is_the_minimum_of_its_model():
    rng = np.random.default_rng(2)
    for trial in range(60):
        n = int(rng.integers(1, 25))
        A = rng.standard_normal((int(rng.integers(1, 3) * n), n))
        H, g = A.T @ A / len(A) + 1e-3 * np.eye(n), rng.standard_normal(n)
        _, l1, lower, upper = random_columns(rng, n)
        w = np.clip(np.where(rng.random(n) < 0.5, 0, rng.standard_normal(n)), lower, upper)
        d = l1_model_minimum(np.triu(H), g, w, l1, 50, 1e-9, lower, upper)
        exact = column_model_minimum(H, g, w, l1, lower, upper)
        values = [g @ e + e @ H @ e / 2 + l1 @ np.abs(w + e) for e in (d, exact)]
        assert values[0] <= values[1] + 1e-9 * (1 + abs(values[1])), trial
        assert (w + d >= lower - 1e-15).all() and (w + d <= upper + 1e-15).all()


# ---------------------------------------------------------------- every way of a fit

@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_rows_of_every_kind_have_the_same_weights(loss):
    given = {"l2": 1e-3, "loss": loss, "lower": 0, "upper": 0.4, "tol": 1e-5}
    reference = SmSVMClassifier(**given).fit(X_bc, y_bc)
    assert (reference.coef_ == 0).any() and is_within(reference, 0, 0.4) and reference.duality_gap_[0] <= 1e-5
    for X in (sp.csr_matrix(X_bc), np.asfortranarray(X_bc)):
        np.testing.assert_allclose(SmSVMClassifier(**given).fit(X, y_bc).coef_, reference.coef_, atol=1e-8)
    single = SmSVMClassifier(**given).fit(X_bc.astype(np.float32), y_bc)
    assert is_within(single, 0, 0.4)
    np.testing.assert_allclose(single.coef_, reference.coef_, atol=1e-2)
    for threads in (1, 2):
        assert np.array_equal(SmSVMClassifier(**given, n_jobs=threads).fit(X_bc, y_bc).coef_, reference.coef_)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_more_columns_than_a_block_has(loss, sparse):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((400, 700)) * (rng.random((400, 700)) < (0.05 if sparse else 1))
    y = X @ np.maximum(0, rng.standard_normal(700)) + rng.standard_normal(400) > 0
    some = np.where(rng.random(700) < 0.5, 0, -np.inf)
    for lower, upper, l1 in ((0, None, 0), (0.01, 0.5, 1e-3), (some, 0.05, 1e-3)):
        model = SmSVMClassifier(l2=1e-3, l1=l1, loss=loss, lower=lower, upper=upper, tol=1e-5)
        model.fit(sp.csr_matrix(X) if sparse else X, y)
        assert model.duality_gap_[0] <= 1e-5
        assert is_within(model, lower, np.inf if upper is None else upper)
        np.testing.assert_allclose(objective(model, X, y, 1e-3, l1), model.objective_[0], rtol=1e-9)


def test_many_rows_begin_with_a_subset():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((60_000, 8))
    y = X @ rng.standard_normal(8) + rng.standard_normal(60_000) > 0
    model = SmSVMClassifier(lower=0.05, loss="hinge").fit(X, y)
    assert model.duality_gap_[0] <= 1e-4 and model.coef_.min() == 0.05
    assert np.isnan(model.history_["gap"]).any()                 # there was one


def test_columns_without_entries_rest_at_their_bound():
    X = sp.random(300, 3000, 0.002, format="csr", random_state=0)
    X = sp.hstack([X, sp.csr_matrix((300, 3000))]).tocsr()
    y = np.random.default_rng(0).integers(0, 2, 300)
    assert not SmSVMClassifier(lower=-0.5, upper=1).fit(X, y).coef_[0, 3000:].any()
    model = SmSVMClassifier(lower=0.01).fit(X, y)
    assert (model.coef_[0, 3000:] == 0.01).all() and model.duality_gap_[0] <= 1e-4


def test_several_classes_warm_starts_and_weights():
    X, y = load_iris(return_X_y=True)
    for more in ({}, {"penalize_intercept": True}, {"fit_intercept": False}, {"max_time": 100.0},
                 {"class_weight": "balanced"}, {"class_weight": {0: 2}, "class_weight_on": "positives"}):
        model = SmSVMClassifier(l2=1e-2, lower=[-1, 0, 0, -np.inf], upper=[0.5, 0.1, np.inf, 1], **more).fit(X, y)
        assert model.coef_.shape == (3, 4) and model.duality_gap_.max() <= 1e-4
        assert is_within(model, model.lower, model.upper)
        model.set_params(warm_start=True, lower=0.2, upper=None).fit(X, y)
        assert model.duality_gap_.max() <= 1e-4 and model.coef_.min() == 0.2
    repeated = SmSVMClassifier(lower=0, tol=1e-6).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    weighted = SmSVMClassifier(lower=0, tol=1e-6).fit(X, y, np.full(len(y), 2.0))
    np.testing.assert_allclose(repeated.coef_, weighted.coef_, atol=1e-4)


def test_one_column_and_no_room():
    model = SmSVMClassifier(lower=[0.1], upper=0.1, loss="logistic").fit(X_bc[:, :1], y_bc)
    assert model.coef_ == 0.1 and model.duality_gap_[0] <= 1e-4
    everywhere = SmSVMClassifier(lower=-np.inf, upper=[np.inf] * 30).fit(X_bc, y_bc)
    assert np.array_equal(everywhere.coef_, SmSVMClassifier().fit(X_bc, y_bc).coef_)


def test_bounds_on_both_sides_are_enough_for_a_certificate():
    model = SmSVMClassifier(l2=0, lower=-0.2, upper=0.3).fit(X_bc, y_bc)
    assert model.duality_gap_[0] <= 1e-4 and is_within(model, -0.2, 0.3)


def test_without_a_penalty_there_is_no_certificate_and_the_fit_says_so():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((80, 4))
    y = X[:, 0] + rng.standard_normal(80) > 0
    model = SmSVMClassifier(l2=0, lower=0).fit(X, y)
    assert np.isnan(model.duality_gap_[0])
    np.testing.assert_allclose(model.objective_[0], least_hinge(X, y, 0.0, np.zeros(4), np.full(4, np.inf)), rtol=1e-4)
    with pytest.warns(ConvergenceWarning, match="no gap known"):
        SmSVMClassifier(l2=0, lower=0, max_passes=2, loss="logistic").fit(X, y)


def test_models_are_kept_and_searched(tmp_path):
    model = SmSVMClassifier(lower=np.zeros(30), upper=np.linspace(0.1, 1, 30)).fit(X_bc, y_bc)
    model.save(tmp_path / "model")
    loaded = cmargin.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(X_bc), model.predict(X_bc)) and np.array_equal(loaded.upper, model.upper)
    assert np.array_equal(clone(model).fit(X_bc, y_bc).coef_, model.coef_)
    search = SmSVMClassifierCV(l2s=(1e-3, 1e-1), cv=3, estimator=SmSVMClassifier(lower=0)).fit(X_bc, y_bc)
    assert search.coef_.min() == 0 and search.cv_results_["mean_test_score"].min() > 0.9


# ---------------------------------------------------------------- bad input, and what is refused

@pytest.mark.parametrize(("given", "said"), [
    ({"lower": "0"}, "The 'lower' parameter of SmSVMClassifier must be a float, an array-like of floats or None"),
    ({"upper": True}, "The 'upper' parameter of SmSVMClassifier must be a float"),
    ({"lower": ["a", "b"]}, "The 'lower' parameter of SmSVMClassifier must be a float or an array-like of floats"),
    ({"lower": np.nan}, "The 'lower' parameter of SmSVMClassifier contains NaN"),
    ({"upper": [0.0] * 29 + [np.nan]}, "The 'upper' parameter of SmSVMClassifier contains NaN"),
    ({"lower": np.inf}, "The 'lower' parameter of SmSVMClassifier must be below inf"),
    ({"upper": -np.inf}, "The 'upper' parameter of SmSVMClassifier must be above -inf"),
    ({"lower": 1, "upper": 0}, r"One \(or more\) features have lower > upper"),
    ({"lower": np.r_[np.zeros(29), 2], "upper": 1}, r"One \(or more\) features have lower > upper"),
    ({"lower": np.zeros((1, 30))}, r"'lower' should be of shape \(n_features,\) when an array-like is provided"),
    ({"lower": np.zeros(29)}, r"'lower' should be of shape \(30,\) when an array-like is provided. Got \(29,\)"),
    ({"lower": np.zeros(30), "upper": np.ones(4)}, r"lower and upper should be of the same shape \(n_features,\)"),
])
def test_bounds_that_are_none(given, said):
    with pytest.raises((InvalidParameterError, ValueError), match=said):
        SmSVMClassifier(**given).fit(X_bc, y_bc)


@pytest.mark.parametrize("more", [{"linear_solver": "dual"}, {"linear_solver": "woodbury"}, {"linear_solver": "cg"},
                                  {"line_search": "quadratic"}])
def test_ways_that_know_no_bounds(more):
    with pytest.raises(ValueError, match="Bounds, and l2 or l1 by column, need linear_solver='auto' or 'cholesky' and"):
        SmSVMClassifier(lower=0, **more).fit(X_bc, y_bc)


def test_paths_and_leaving_one_out_know_no_bounds():
    model = SmSVMClassifier(lower=0).fit(X_bc, y_bc)
    with pytest.raises(ValueError, match="leave_one_out takes one l2 and one l1 for all columns, and neither lower"):
        model.leave_one_out(X_bc, y_bc)
    with pytest.raises(ValueError, match="A path takes one l2 and one l1 for all columns, and neither lower nor upper"):
        model.path(X_bc, y_bc)
    with pytest.raises(ValueError, match="takes one l2 and one l1 for all columns"):
        SmSVMClassifierCV(l2s=(1e-3, 1e-2), cv="loo", estimator=SmSVMClassifier(lower=0)).fit(X_bc, y_bc)
    assert smsvm_path(X_bc[:50], y_bc[:50], l2s=[0.1]).coefs.shape[0] == 1


@pytest.mark.parametrize("name", ["l1", "l2"])
def test_a_search_takes_no_penalty_by_column(name):
    estimator = SmSVMClassifier(**{name: np.full(X_bc.shape[1], 0.1)})
    with pytest.raises(ValueError, match=f"{name} of its estimator must be no array"):
        SmSVMClassifierCV(l2s=(1e-3, 1e-2), cv=3, estimator=estimator).fit(X_bc, y_bc)


def test_a_fit_within_bounds_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SmSVMClassifier(lower=0, upper=1).fit(X_bc, y_bc)


# ---------------------------------------------------------------- l2 and l1 by column

def test_penalties_by_column_are_those_of_l_bfgs_b():
    for seed in range(30):
        rng, X, y, lower, upper = drawn(300 + seed)
        m = X.shape[1]
        l1 = rng.choice([0, 1e-3, 0.1], m)
        l2 = np.where((rng.random(m) < 0.2) & (l1 > 0), 0, 10**rng.uniform(-3, 0, m))
        bounds = {"lower": lower, "upper": upper} if seed % 2 else {}
        if not bounds:
            lower, upper = np.full(m, -np.inf), np.full(m, np.inf)
        for loss in ("logistic", "squared_hinge"):
            model = SmSVMClassifier(l2=l2, l1=l1, loss=loss, tol=1e-6, **bounds).fit(X, y)
            least = least_smooth(X, y, loss, l2, l1, lower, upper, True)
            assert is_within(model, lower, upper) and 0 <= model.duality_gap_[0] <= 1e-6
            np.testing.assert_allclose(objective(model, X, y, l2, l1), model.objective_[0], rtol=1e-10)
            assert model.objective_[0] * (1 - model.duality_gap_[0]) <= least * (1 + 1e-10)
            assert model.objective_[0] <= least * (1 + 2e-6)


def test_arrays_of_equal_numbers_are_the_number():
    for given in ({"l2": np.full(30, 1e-3)}, {"l1": [1e-3] * 30, "l2": 1e-3}):
        plain = {name: float(np.ravel(value)[0]) for name, value in given.items()}
        assert np.array_equal(SmSVMClassifier(**given).fit(X_bc, y_bc).coef_,
                              SmSVMClassifier(**plain).fit(X_bc, y_bc).coef_)


def test_a_penalty_for_a_column_is_one_of_a_scaled_column():
    unit = np.linspace(0.5, 2, 30)
    for loss in ("hinge", "logistic"):
        by_column = SmSVMClassifier(l2=1e-3 * unit**2, l1=1e-3 * unit, loss=loss, tol=1e-7).fit(X_bc, y_bc)
        scaled = SmSVMClassifier(l2=1e-3, l1=1e-3, loss=loss, tol=1e-7).fit(X_bc / unit, y_bc)
        np.testing.assert_allclose(by_column.objective_, scaled.objective_, rtol=1e-6)
        np.testing.assert_allclose(by_column.coef_ * unit, scaled.coef_, atol=1e-3)
        assert by_column.duality_gap_[0] <= 1e-7


@pytest.mark.parametrize(("given", "said"), [
    ({"l2": [-1.0] * 30}, r"The 'l2' parameter of SmSVMClassifier must be floats in the range \[0.0, inf\)"),
    ({"l1": [np.inf] * 30}, r"The 'l1' parameter of SmSVMClassifier must be floats in the range \[0.0, inf\)"),
    ({"l1": [np.nan] * 30}, "The 'l1' parameter of SmSVMClassifier contains NaN"),
    ({"l1": ["a"] * 30}, "The 'l1' parameter of SmSVMClassifier must be a float or an array-like of floats"),
    ({"l2": np.ones(4)}, r"'l2' should be of shape \(30,\) when an array-like is provided. Got \(4,\)"),
    ({"l2": np.ones((30, 1))}, r"'l2' should be of shape \(n_features,\) when an array-like is provided"),
    ({"l2": np.ones(30), "C": 1}, "Give l2 or C, not both"),
    ({"l2": np.ones(30), "penalize_intercept": True}, "penalize_intercept=True needs l2 and l1 that are numbers"),
    ({"l1": np.arange(30.0), "linear_solver": "dual"}, "Bounds, and l2 or l1 by column, need linear_solver='auto'"),
])
def test_penalties_by_column_that_are_none(given, said):
    with pytest.raises(ValueError, match=said):
        SmSVMClassifier(**given).fit(X_bc, y_bc)


# ---------------------------------------------------------------- regression

def least_of_residuals(X, t, loss, parameter, l1, lower, upper):
    """The minimum of the mean ε-insensitive or quantile loss plus sum l1_j |w_j|, with an intercept, by HiGHS."""
    n, m = X.shape
    ones, eye, none = np.ones((n, 1)), np.eye(n), np.zeros((n, n))
    over, under, free = (1, 1, parameter) if loss == "epsilon_insensitive" else (parameter, 1 - parameter, 0.0)
    rows = np.vstack([np.hstack([-X, X, -ones, -eye, none]), np.hstack([X, -X, ones, none, -eye])])
    found = linprog(np.concatenate([np.full(2 * m, 1.0) * np.tile(np.broadcast_to(l1, m), 2), [0],
                                    np.full(n, over / n), np.full(n, under / n)]), rows,
                    np.concatenate([free - t, free + t]),
                    bounds=[*zip(np.maximum(lower, 0), np.maximum(upper, 0), strict=True),
                            *zip(np.maximum(-upper, 0), np.maximum(-lower, 0), strict=True),
                            (None, None), *[(0, None)] * (2 * n)])
    return found.fun


def test_regression_within_bounds_is_that_of_highs():
    for seed in range(30):
        rng, X, _, lower, upper = drawn(500 + seed)
        m, scale_of_targets = X.shape[1], 10**rng.uniform(-4, 4)
        lower, upper = lower * scale_of_targets, upper * scale_of_targets
        t = scale_of_targets * (X @ rng.standard_normal(m) + rng.standard_normal(len(X)) + 3)
        loss = str(rng.choice(["epsilon_insensitive", "quantile"]))
        parameter = 0.3 * scale_of_targets if loss == "epsilon_insensitive" else float(rng.uniform(0.1, 0.9))
        l1 = rng.choice([1e-3, 0.1], m)
        name = "epsilon" if loss == "epsilon_insensitive" else "quantile"
        model = SmSVMRegressor(loss=loss, **{name: parameter}, l2=0.0, l1=l1, lower=lower, upper=upper,
                               tol=1e-5).fit(X, t)
        assert (model.coef_ >= lower).all() and (model.coef_ <= upper).all() and model.duality_gap_[0] <= 1e-5
        least = least_of_residuals(X, t, loss, parameter, l1, lower, upper)
        assert model.objective_[0] * (1 - model.duality_gap_[0]) <= least * (1 + 1e-9) + 1e-12 * scale_of_targets
        assert model.objective_[0] <= least * (1 + 2e-5) + 1e-12 * scale_of_targets


def test_every_target_has_the_bounds():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((200, 4))
    T = X @ rng.standard_normal((4, 3)) * [1, 100, 1e-3]
    model = SmSVMRegressor(l2=[1e-3, 1e-2, 1e-3, 1e-4], epsilon=1e-4, lower=0, upper=[1, 1, 0.5, np.inf]).fit(X, T)
    assert model.coef_.shape == (3, 4) and (model.coef_ >= 0).all() and (model.coef_ <= model.upper).all()
    assert model.duality_gap_.max() <= 1e-4
    again = clone(model).set_params(warm_start=True, lower=0.01).fit(X, T)
    again.set_params(lower=0.02).fit(X, T)
    assert again.coef_.min() == 0.02 and again.duality_gap_.max() <= 1e-4
    for more in ({"linear_solver": "cg"}, {"linear_solver": "woodbury"}):
        with pytest.raises(ValueError, match="Bounds, and l2 or l1 by column, need linear_solver"):
            SmSVMRegressor(lower=0, **more).fit(X, T)
    with pytest.raises(ValueError, match="The 'lower' parameter of SmSVMRegressor must be a float"):
        SmSVMRegressor(lower="0").fit(X, T)


def test_groups_take_no_bounds():
    with pytest.raises(ValueError, match="groups= takes one l2 and one l1 for all columns, and neither lower"):
        SmSVMClassifier(lower=0, l1=1e-2, groups=np.arange(30) // 3).fit(X_bc, y_bc)


# ---------------------------------------------------------------- rows elsewhere, and fits that are stopped

GIVEN = {"l2": 1e-3, "l1": np.linspace(0, 1e-3, 30), "lower": np.zeros(30), "upper": 0.4, "tol": 1e-5}


def test_rows_in_files_over_ranks_and_on_a_device(tmp_path):
    here = SmSVMClassifier(**GIVEN).fit(X_bc, y_bc)
    np.save(tmp_path / "X.npy", X_bc)
    np.save(tmp_path / "y.npy", y_bc)
    in_files = SmSVMClassifier(**GIVEN).fit(tmp_path / "X.npy", tmp_path / "y.npy")
    over_ranks = on_ranks(2, lambda comm: SmSVMClassifier(**GIVEN).fit(X_bc[comm.rank::2], y_bc[comm.rank::2],
                                                                      comm=comm))[0]
    models = [in_files, *over_ranks]
    if strict is not None:
        models.append(SmSVMClassifier(**GIVEN).fit(strict.asarray(X_bc), y_bc))
    for model in models:
        assert is_within(model, 0, 0.4) and model.duality_gap_[0] <= 1e-5
        np.testing.assert_allclose(np.asarray(model.coef_), here.coef_, atol=1e-6)


def test_a_fit_that_is_stopped_has_weights_within_the_bounds():
    X, y = load_iris(return_X_y=True)
    seen = []

    def stop(model):
        seen.append(model.coef_.copy())
        return len(seen) > 1

    model = SmSVMClassifier(lower=0.1, upper=0.5, callback=stop).fit(X, y)
    assert all(((coef >= 0.1) & (coef <= 0.5)).all() for coef in [*seen, model.coef_])
    with pytest.warns(ConvergenceWarning):
        late = SmSVMClassifier(lower=0.1, upper=0.5, max_time=1e-9).fit(X, y)
    assert is_within(late, 0.1, 0.5)


def test_a_fit_goes_on_from_its_checkpoint(tmp_path):
    whole, path = SmSVMClassifier(**GIVEN).fit(X_bc, y_bc), tmp_path / "state"
    model = stopped(SmSVMClassifier(**GIVEN), path, 3, X_bc, y_bc)
    with pytest.raises(ValueError, match=r"is of another fit: .*upper"):
        clone(model).set_params(upper=0.3, checkpoint=path).fit(X_bc, y_bc)
    again = model.set_params(checkpoint=path).fit(X_bc, y_bc)
    assert np.array_equal(again.coef_, whole.coef_) and again.n_iter_ == whole.n_iter_
