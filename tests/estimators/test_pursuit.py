import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from estimators import quietly
from naive_pursuit import objective, projected_steps, psi, random_rows
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize, scale

from cmargin import MarginPursuitClassifier, PegasosClassifier, SLNDClassifier, SmSVMClassifier, margins
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.solvers import cost, prices
from cmargin.solvers.first_order.margin_pursuit import weighted_draws
from cmargin.solvers.per_class import class_streams

X_bc, y_bc = load_breast_cancer(return_X_y=True)
X_bc = scale(X_bc)
sign_bc = np.where(y_bc == 1, 1.0, -1.0)


def fit(X, y, sample_weight=None, **parameters):
    parameters = {"random_state": 5, "n_jobs": 2, "l2": 1e-3, **parameters}
    return quietly(MarginPursuitClassifier(**parameters), X, y, sample_weight)


# ---------------------------------------------------------------- newton

@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_row_pass_sums_margin_pursuit(sparse, fit_intercept):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((500, 6)) * (rng.random((500, 6)) < 0.7)
    signed_weight, d, level, s = rng.standard_normal(500), rng.standard_normal(6 + fit_intercept), 0.8, 0.6
    rows = open_rows(sp.csr_matrix(X) if sparse else X).row_pass(signed_weight, intercept=fit_intercept, n_threads=2)
    rows.pursue(level, s)
    rows.start()
    with single_threaded_blas():
        sums, gradient, hessian = rows.evaluate(d, 0.7, 1.0, 1.0, 0.0, True)
    A = np.column_stack([X, np.ones(500)])[:, :6 + fit_intercept]
    y, weight = np.sign(signed_weight), np.abs(signed_weight)
    z = y * (A @ (0.7 * d))
    u = (level - z) / s
    curvature = weight * np.where(np.abs(u) <= np.sqrt(2), 1 - u**2 / 2, 0)
    value = lambda t: objective(A, y, t * d, 0, level, s, 0, weight)[0] * weight.sum()  # noqa: E731
    assert sums[0] == pytest.approx(value(0.7))
    assert sums[1] == pytest.approx((value(0.7 + 1e-5) - value(0.7 - 1e-5)) / 2e-5, rel=1e-6)
    assert sums[7] == pytest.approx(curvature.sum())
    np.testing.assert_allclose(gradient[0], A.T @ (weight * y * s * psi(u)), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(np.triu(hessian), np.triu(A.T @ (curvature[:, None] * A)), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(rows.margins(), z, atol=1e-12)
    assert rows.line(0.7, 1.0)[:2] == pytest.approx((sums[0], sums[1]))
    with single_threaded_blas():
        product, _ = rows.hessp(np.arange(1.0, A.shape[1] + 1), 1.0)
    np.testing.assert_allclose(product, A.T @ (curvature * (A @ np.arange(1.0, A.shape[1] + 1))), atol=1e-9)


@pytest.mark.parametrize("l2", [0.0, 1e-6, 1e-2])
@pytest.mark.parametrize("level, s", [(1.0, "auto"), (1.0, 0.1), (2.0, 0.7), (0.5, 20.0)])
def test_newton_finds_the_minimum(l2, level, s):
    model = MarginPursuitClassifier(margin=level, scale=s, l2=l2, tol=1e-8, n_jobs=2).fit(X_bc, y_bc)
    width = model.scale_[0]
    assert width == (level if s == "auto" else s) and model.n_passes_ <= 30
    value, gradient = objective(X_bc, sign_bc, model.coef_[0], model.intercept_[0], level, width, l2)
    _, at_zero = objective(X_bc, sign_bc, np.zeros(30), 0, level, width, l2)
    assert np.linalg.norm(gradient) <= 2e-8 * np.linalg.norm(at_zero)
    assert model.objective_[0] == pytest.approx(value, rel=1e-10)


def test_newton_goes_as_low_as_another_solver():
    ours = fit(X_bc, y_bc, l2=0.01, scale=0.5, tol=1e-8)
    found = minimize(lambda v: objective(X_bc, sign_bc, v[:-1], v[-1], 1.0, 0.5, 0.01), np.zeros(31), jac=True,
                     method="L-BFGS-B", options={"maxiter": 1000, "gtol": 1e-7, "ftol": 1e-14})
    assert ours.objective_[0] <= found.fun * (1 + 1e-12)
    np.testing.assert_allclose(np.append(ours.coef_[0], ours.intercept_), found.x, atol=1e-4)


def test_a_wide_scale_is_ridge_regression_and_a_narrow_one_median_regression():
    # s -> infinity: s^2 rho(u/s) -> u^2/2; s -> 0: s rho -> (2 sqrt 2 / 3) |u|
    X, y = X_bc[:, :5], sign_bc
    wide = fit(X, y, scale=1e4, l2=0.1, tol=1e-10)
    A, penalty = np.column_stack([X, np.ones(len(y))]), np.diag([0.1] * 5 + [0.0])
    ridge = np.linalg.solve(A.T @ A / len(y) + penalty, A.T @ y / len(y))
    np.testing.assert_allclose(np.append(wide.coef_[0], wide.intercept_), ridge, atol=1e-7)
    narrow = fit(X, y, scale=0.01, l2=0, tol=1e-6, max_passes=500)
    near = np.mean(np.abs(1 - y * narrow.decision_function(X)) < 0.01 * np.sqrt(2))
    below = np.mean(1 - y * narrow.decision_function(X) > 0.01 * np.sqrt(2))
    assert abs(below - 0.5) < 0.25 and near < 0.7


def test_a_gradient_that_overflows_is_not_called_small():
    X = np.random.default_rng(0).normal(size=(50, 3)) * 1e155
    with pytest.warns(ConvergenceWarning, match="overflowed"), np.errstate(all="ignore"):
        MarginPursuitClassifier(trace=False).fit(X, X[:, 0] > 0)


def test_data_with_more_columns_than_rows(monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 300))
    y = np.sign(X[:, 0] + 0.3 * rng.standard_normal(60))
    reduced = fit(X, y, tol=1e-9)
    monkeypatch.setattr(prices, "reducing_pays_off", lambda *_: False)
    direct = fit(X, y, tol=1e-9)
    monkeypatch.setattr(cost, "PURSUIT_FACTOR_UP_TO_COLUMNS", 100)
    products = fit(X, y, tol=1e-9)
    for model in (direct, products):
        np.testing.assert_allclose(model.coef_, reduced.coef_, atol=1e-7)
        np.testing.assert_allclose(model.intercept_, reduced.intercept_, atol=1e-7)
    assert reduced.n_passes_ < 3 and products.n_passes_ > direct.n_passes_


# ---------------------------------------------------------------- gd

def test_gradient_descent_is_algorithm_1():
    model = fit(X_bc, y_bc, solver="gd", l2=0.01, step_size=0.05, max_passes=7, scale=0.8)
    w, b = np.zeros(30), 0.0
    for _ in range(7):
        _, g = objective(X_bc, sign_bc, w, b, 1.0, 0.8, 0.01)
        w, b = w - 0.05 * g[:-1], b - 0.05 * g[-1]
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-12)
    assert model.intercept_[0] == pytest.approx(b) and model.history_["pass"].tolist() == list(range(1, 8))


def test_gradient_descent_falls_steadily_to_newtons_minimum():
    X, y = blobs(n=300, k=3)
    X = scale(X)
    slow = fit(X, y, solver="gd", l2=0.05, tol=1e-8, max_passes=2000)
    assert slow.n_iter_ < 2000 and np.all(np.diff(slow.history_["objective"]) <= 1e-15)
    quick = fit(X, y, l2=0.05, tol=1e-10)
    np.testing.assert_allclose(slow.coef_, quick.coef_, atol=1e-6)
    np.testing.assert_allclose(slow.objective_, quick.objective_, rtol=1e-9)


# ---------------------------------------------------------------- sgd

@pytest.mark.parametrize("kind", ["pursuit", "pursuit, no l2", "pegasos"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_projected_steps_are_the_literal_ones(kind, weighted, sparse):
    X, y = blobs(n=90, d=7, k=2)
    weight = np.random.default_rng(2).integers(1, 9, 90).astype(float) if weighted else None
    l2, s = (0.0 if kind == "pursuit, no l2" else 0.04), 0.7
    common = {"l2": l2, "max_passes": 1, "random_state": 5, "n_jobs": 2}
    # one pass, and the last iterate is the one it ends at
    pursuit = MarginPursuitClassifier(solver="sgd", scale=s, **common)
    model = PegasosClassifier(**common) if kind == "pegasos" else pursuit
    model.fit(sp.csr_matrix(X) if sparse else X, y, weight)
    entropy = int(np.random.RandomState(5).randint(1 << 31))
    weight = None if weight is None else weight * (90 / weight.sum())
    rows = random_rows(class_streams([entropy, 0], 1)[0], 90, 90, *(weighted_draws(weight) if weighted else ()))
    assert len(set(rows)) > 40
    radius = 1 / np.sqrt(l2) if l2 else np.inf
    w = np.random.default_rng(np.random.SeedSequence([entropy, 1, 0])).standard_normal(7)
    w *= min(1, radius) / np.linalg.norm(w)
    mean_square = np.average((X**2).sum(axis=1), weights=weight) + 1
    first = {"pegasos": 1 / 0.04, "pursuit": 1 / (s * 0.2), "pursuit, no l2": 1 / mean_square}[kind]

    def slope(z):
        return -float(z < 1) if kind == "pegasos" else -s * psi((1 - z) / s)

    delay = mean_square / l2 if kind == "pegasos" else 0.0
    w, b = projected_steps(X, np.where(y == 1, 1, -1), rows, w, 0.0, slope, l2, first, radius, 1.0, delay)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-9, atol=1e-12)
    assert model.intercept_[0] == pytest.approx(b, rel=1e-9)
    assert np.linalg.norm(np.append(w, b)) <= radius * (1 + 1e-12)


def test_sgd_comes_near_the_minimum_of_newton():
    X, y = load_digits(return_X_y=True)
    X = normalize(X)
    # the same objective on both sides: no intercept, which only sgd penalises
    best = fit(X, y, l2=0.1, fit_intercept=False)
    loose = fit(X, y, l2=0.1, fit_intercept=False, solver="sgd", max_passes=60)
    assert np.all(loose.objective_ >= best.objective_ * (1 - 1e-9))
    assert np.all(loose.objective_ <= best.objective_ * 1.02)
    assert np.all(loose.objective_ < fit(X, y, l2=0.1, fit_intercept=False, solver="sgd", max_passes=1).objective_)


def test_pegasos_reaches_what_another_solver_of_the_hinge_reaches():
    model = PegasosClassifier(l2=0.01, random_state=3, max_passes=100).fit(X_bc, y_bc)
    other = SGDClassifier(alpha=0.01, max_iter=200, tol=None, random_state=3).fit(X_bc, y_bc)
    assert model.score(X_bc, y_bc) > other.score(X_bc, y_bc) - 0.01
    w, b = model.coef_[0], model.intercept_[0]
    value = np.maximum(0, 1 - sign_bc * (X_bc @ w + b)).mean() + 0.005 * (w @ w + b * b)
    assert model.objective_[0] == pytest.approx(value) and model.objective_[0] == model.history_["objective"].min()


# ---------------------------------------------------------------- scale, trace

@pytest.mark.parametrize("solver", ["newton", "gd", "sgd"])
def test_one_pass_has_no_scale_after_it(solver):
    # the scale changed after the only pass, and the objective of a good model was infinite
    first, alone = (fit(X_bc, y_bc, solver=solver, max_passes=1, l2=1e-2, scale=scale) for scale in (1.0, "one-shot"))
    value, _ = objective(X_bc, sign_bc, alone.coef_[0], alone.intercept_[0], 1.0, alone.scale_[0], 1e-2)
    value += 0.005 * alone.intercept_[0] ** 2 * (solver == "sgd")
    assert alone.objective_[0] == pytest.approx(value) and alone.coef_.tobytes() == first.coef_.tobytes()


@pytest.mark.parametrize("solver", ["newton", "gd", "sgd"])
def test_one_shot_scale_is_the_formula_at_the_first_pass(solver):
    first = fit(X_bc, y_bc, solver=solver, max_passes=1, l2=1e-2)
    model = fit(X_bc, y_bc, solver=solver, max_passes=3, l2=1e-2, scale="one-shot")
    assert model.history_["scale"][0] == 1.0
    if solver == "sgd":                      # its scale is that of the pass's end, and what is kept is its mean
        assert model.history_["scale"][-1] == model.scale_[0] != 1.0
        return
    v = np.quantile(np.abs(first.decision_function(X_bc)), 0.75)
    assert model.scale_[0] == pytest.approx(np.sqrt(len(y_bc) * v / (2e-2 * np.log(20))), rel=1e-6)
    assert model.history_["scale"][-1] == model.scale_[0]
    value, gradient = objective(X_bc, sign_bc, model.coef_[0], model.intercept_[0], 1.0, model.scale_[0], 1e-2)
    assert model.objective_[0] == pytest.approx(value)
    zero = objective(X_bc, sign_bc, np.zeros(30), 0, 1.0, model.scale_[0], 1e-2)[1]
    relative = np.linalg.norm(gradient) / np.linalg.norm(zero)
    assert model.gradient_norm_[0] == pytest.approx(relative, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize("solver", ["newton", "gd", "sgd"])
def test_trace_is_the_margin_summary_of_the_weights(solver):
    seen = []

    def visit(model):
        q = sign_bc * model.decision_function(X_bc)
        seen.append(margins.margin_summary(q, scale=model.history_["scale"][-1]))

    # every pass of these is the best so far, so that the weights seen are those traced
    model = fit(X_bc, y_bc, solver=solver, l2=0.1, callback=visit, max_passes=3 if solver != "sgd" else 1)
    history = model.history_
    for k, summary in enumerate(seen):
        for name in ("mean", "median", "location", "variance", "skewness"):
            assert history[f"margin_{name}"][k] == pytest.approx(summary[name], rel=1e-7, abs=1e-9), name
        for name, value in zip(("q05", "q25", "q75", "q95"), summary["quantiles"][[0, 1, 3, 4]], strict=True):
            assert history[f"margin_{name}"][k] == pytest.approx(value, rel=1e-7)
        assert history["margin_share_negative"][k] == pytest.approx(summary["share_nonpositive"])
    assert "margin_mean" not in fit(X_bc, y_bc, solver=solver, max_passes=2, trace=False).history_


def test_margins_gather_at_the_level():
    # the paper's point: symmetric margins of small variance, where the hinge lets them run away
    pursuit = fit(X_bc, y_bc, l2=1e-3)
    q = sign_bc * pursuit.decision_function(X_bc)
    pegasos = PegasosClassifier(l2=1e-3, random_state=3).fit(X_bc, y_bc)
    p = sign_bc * pegasos.decision_function(X_bc)
    # measured: location 0.79 against 5.8, spread over mean 0.52 against 0.75, skewness -0.2 against 2.4
    assert 0.7 < margins.location_estimate(q, 1.0) < 1.1 < margins.location_estimate(p, 1.0)
    assert q.std() / q.mean() < 0.8 * p.std() / p.mean() and pursuit.score(X_bc, y_bc) > 0.95
    assert abs(margins.margin_summary(q)["skewness"]) < 0.5 < abs(margins.margin_summary(p)["skewness"])


# ---------------------------------------------------------------- stopping, going on, refusing

@pytest.mark.parametrize("solver", ["newton", "gd", "sgd"])
def test_warm_start_goes_on(solver):
    options = {"solver": solver, "l2": 0.01, "warm_start": True}
    model = MarginPursuitClassifier(**options, max_passes=150, random_state=5, tol=1e-2 if solver == "gd" else 1e-6)
    model.fit(X_bc, y_bc)
    before, passes = model.objective_.copy(), model.n_iter_
    model.fit(X_bc, y_bc)
    assert model.objective_[0] <= before[0] * (1 + (1e-12 if solver != "sgd" else 0.05))
    assert model.n_iter_ == (0 if solver != "sgd" else passes)
    with pytest.raises(ValueError, match="warm_start needs the classes of the last fit"):
        model.fit(X_bc, y_bc + 3)
    with pytest.raises(ValueError, match="has 4 features, but the fit to go on from has 30"):
        model.fit(X_bc[:, :4], y_bc)


@pytest.mark.parametrize("solver", ["newton", "gd", "sgd"])
def test_interrupt_leaves_the_best_weights(solver):
    objectives = []

    def press(model):
        objectives.append(model.objective_[0])
        if len(objectives) == 2:
            raise KeyboardInterrupt

    model = MarginPursuitClassifier(solver=solver, l2=1e-2, callback=press, random_state=3, scale=0.1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X_bc, y_bc)
    assert len(objectives) == 2 and model.objective_[0] <= min(objectives)       # of passes, or of the ridge regression
    w = model.coef_[0]
    value = objective(X_bc, sign_bc, w, model.intercept_[0], 1.0, 0.1, 1e-2)[0]
    value += 0.005 * model.intercept_[0] ** 2 * (solver == "sgd")
    assert value == pytest.approx(model.objective_[0]) and model.score(X_bc, y_bc) > 0.85
    assert len(model.history_["pass"]) == 2


def test_a_warning_says_how_far_the_fit_got():
    with pytest.warns(ConvergenceWarning, match=r"after 3 passes the gradient norm is .* where tol=1e-06 was asked"):
        MarginPursuitClassifier(solver="gd", max_passes=3).fit(X_bc, y_bc)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MarginPursuitClassifier(solver="newton", l2=1e-3).fit(X_bc, y_bc)
        MarginPursuitClassifier(solver="sgd", l2=1e-3, max_passes=2).fit(X_bc, y_bc)


def test_a_class_between_others_has_no_margin_to_gather():
    # README, "When not to use it": iris in five folds
    flowers = load_iris(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)

    def right(model):
        return cross_val_score(make_pipeline(StandardScaler(), model), *flowers, cv=folds).mean()

    assert right(MarginPursuitClassifier()) == pytest.approx(0.81, abs=0.03)
    assert right(SmSVMClassifier()) == pytest.approx(0.94, abs=0.03)
    assert right(SLNDClassifier(random_state=0)) == pytest.approx(0.98, abs=0.03)


def test_a_problem_that_has_converged_stays_where_it_is():
    # one label is told apart in fewer steps than the other; together the first must end where it ends alone
    codes = np.column_stack([y_bc == 1, X_bc[:, 3] + 0.5 * np.sin(np.arange(len(X_bc))) > 0]).astype(int)
    settings = {"solver": "gd", "tol": 1e-2, "l2": 1e-2, "max_passes": 500}
    alone = [fit(X_bc, signed_weight, **settings) for signed_weight in codes.T]
    together = fit(X_bc, codes, **settings)
    assert alone[0].n_iter_ != alone[1].n_iter_
    np.testing.assert_allclose(together.coef_, np.vstack([model.coef_ for model in alone]), rtol=1e-9, atol=1e-12)
