"""Linear constraints of the weights: optima beside an independent solver, the certificate, every way, bad input."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from api import _constrained_model, _penalties
from killed_fits import stopped
from naive_smsvm import dual_value_within, model_minimum_within
from ranks_in_threads import on_ranks
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from tensors import strict

import cmargin
from cmargin import SmSVMClassifier, SmSVMClassifierCV, SmSVMRegressor
from cmargin._estimators.smsvm_fit import penalty_of
from cmargin._estimators.validation import InvalidParameterError
from cmargin.data.open import open_rows
from cmargin.solvers.constraints import Constraints, Infeasible

X_bc, y_bc = load_breast_cancer(return_X_y=True)
X_bc = scale(X_bc)


def covariance_within(X, column, most):
    """(A, b) that say: the covariance of the scores with a column is between -most and most."""
    a = (column - column.mean()) @ X / len(X)
    return np.array([a, -a]), np.array([most, most])


FAIR = covariance_within(X_bc, X_bc[:, 1] > 0, 0.02)


def meets(model, A, b):
    W = np.atleast_2d(model.coef_)
    sizes = np.abs(A).sum(axis=1)[:, None] * np.abs(W).max() + np.abs(b)[:, None] + 1e-300
    return bool(((A @ W.T + b[:, None]) / sizes >= -1e-13).all())


def constraints_of(rng, m):
    """Such as some weights meet: now and then rows that depend on each other, equalities, signs."""
    q = int(rng.integers(1, 6))
    w = rng.standard_normal(m) * rng.choice([0, 0.1, 1])
    A = rng.standard_normal((q, m)) * 10**rng.uniform(-1, 1, (q, 1))
    A *= rng.random((q, m)) < rng.choice([0.4, 1])
    b = np.where(rng.random(q) < 0.5, 0, rng.exponential(1, q)) - A @ w
    if rng.random() < 0.3:
        b[0] = -A[0] @ w
        A, b = np.vstack([A, -A[:1], 2 * A[:1]]), np.concatenate([b, -b[:1], 2 * b[:1]])
    if rng.random() < 0.3:
        A, b = np.vstack([A, np.diag(np.where(w < 0, -1.0, 1.0))]), np.append(b, np.zeros(m))
    return A, b


def least(X, t, loss, parameter, l2, A, b, intercept):
    """The minimum and the weights that SLSQP finds; losses with kinks by the parts that rows exceed them by."""
    (n, m), smooth = X.shape, loss in ("logistic", "squared_hinge")
    rows = t[:, None] * np.column_stack([X, np.full(n, float(intercept))])
    under = over = None
    if loss == "quantile":
        rows, under, over = rows / t[:, None], 1 - parameter, parameter

    def smooth_value(v):
        z = rows @ v
        short = np.maximum(0, 1 - z)
        value, slope = (np.logaddexp(0, -z), -1 / (1 + np.exp(z))) if loss == "logistic" else (short**2, -2 * short)
        return l2 / 2 * v[:m] @ v[:m] + value.mean(), np.append(l2 * v[:m], 0) + slope @ rows / n

    def parts_value(v):
        weight = np.full(n, 1 / n) if loss == "hinge" else np.concatenate([np.full(n, over / n), np.full(n, under / n)])
        return l2 / 2 * v[:m] @ v[:m] + weight @ v[m + 1:], np.concatenate([l2 * v[:m], [0], weight])

    k = 0 if smooth else n if loss == "hinge" else 2 * n
    held, beyond = [np.hstack([A, np.zeros((len(A), 1 + k))])], [b]
    if loss == "hinge":
        held, beyond = [*held, np.hstack([rows, np.eye(n)])], [*beyond, -np.ones(n)]
    elif loss == "quantile":
        eye, none = np.eye(n), np.zeros((n, n))
        held, beyond = [*held, np.hstack([rows, eye, none]), np.hstack([-rows, none, eye])], [*beyond, -t, t]
    held, beyond = np.vstack(held), np.concatenate(beyond)
    start = np.concatenate([np.zeros(m + 1), np.full(k, 30 * np.abs(t).max())])
    return minimize(smooth_value if smooth else parts_value, start, jac=True, method="SLSQP",
                    bounds=[(None, None)] * (m + 1) + [(0, None)] * k,
                    constraints={"type": "ineq", "fun": lambda v: held @ v + beyond, "jac": lambda v: held},
                    options={"ftol": 1e-13, "maxiter": 1000})


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge", "quantile"])
def test_optima_are_those_of_an_independent_solver(loss):
    compared = held = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, m = (int(rng.integers(8, 25)) if loss in ("hinge", "quantile") else int(rng.integers(8, 80))), \
            int(rng.integers(2, 8))
        X, (A, b) = rng.standard_normal((n, m)) + rng.choice([0, 2]), constraints_of(rng, m)
        l2, intercept, parameter = float(10**rng.uniform(-3, 0)), bool(rng.random() < 0.7), float(rng.uniform(0.1, 0.9))
        t = X @ rng.standard_normal(m) + rng.standard_normal(n)
        if loss == "quantile":
            model = SmSVMRegressor(loss, quantile=parameter, l2=l2, constraints=(A, b), tol=1e-7,
                                   fit_intercept=intercept).fit(X, t)
        else:
            t = np.where(t > np.median(t), 1.0, -1.0)
            model = SmSVMClassifier(l2=l2, loss=loss, constraints=(A, b), tol=1e-7, fit_intercept=intercept).fit(X, t)
        found = least(X, t, loss, parameter, l2, A, b, intercept)
        assert model.duality_gap_[0] <= 1e-7 and meets(model, A, b)
        held += (A @ model.coef_.ravel() + b <= 1e-9 * (1 + np.abs(b))).any()
        if found.success and (A @ found.x[:m] + b >= -1e-7).all():
            compared += 1
            assert model.objective_[0] * (1 - model.duality_gap_[0]) <= found.fun * (1 + 1e-6) + 1e-9
            assert model.objective_[0] <= found.fun * (1 + 1e-6) + 1e-9
    assert compared > 40 and held > 30


# ---------------------------------------------------------------- the parts

def test_the_dual_value_is_that_of_its_definition():
    rng = np.random.default_rng(0)
    for _ in range(40):
        m = int(rng.integers(1, 6))
        found, v, l2 = Constraints.of(*constraints_of(rng, m)), rng.standard_normal(m), float(10**rng.uniform(-2, 0))
        if found is None:
            continue
        total, held = float(10**rng.uniform(-1, 1)), _penalties.LinearConstraints(found.A, found.b)
        known = _penalties.bound_within(total, v, l2, held)
        twin = dual_value_within(total, v, l2, found.A, found.b)
        np.testing.assert_allclose(known, max(twin, 0), rtol=1e-5, atol=1e-7)
        unsure = _penalties.bound_within(total, v, l2, held, 1e-3)       # of every v that is as near as that
        assert unsure <= known
        for _ in range(20):
            near = v + 1e-3 * rng.choice([-1.0, 1.0], len(v))
            assert unsure <= _penalties.bound_within(total, near, l2, held) + 1e-12 * abs(known)


def test_constraints_that_are_always_met_change_no_dual_value():
    rng = np.random.default_rng(1)
    for _ in range(20):
        v, total, l2 = rng.standard_normal(5), float(10**rng.uniform(-1, 1)), float(10**rng.uniform(-2, 0))
        held = _penalties.LinearConstraints(rng.standard_normal((3, 5)), np.full(3, 1e6))
        np.testing.assert_allclose(_penalties.bound_within(total, v, l2, held), _penalties.bound(total, v, l2, 0.0))


def test_a_step_is_the_minimum_of_its_model():
    rng = np.random.default_rng(2)
    for trial in range(150):
        n = int(rng.integers(1, 7))
        found = Constraints.of(*constraints_of(rng, n))
        if found is None:
            continue
        B = rng.standard_normal((2 * n, n)) * 10**rng.uniform(-1, 1, n)
        H, g, w = B.T @ B / n + 1e-3 * np.eye(n), rng.standard_normal(n), found.nearest(rng.standard_normal(n))
        d = _constrained_model.minimum_within(np.triu(H), g, w, _penalties.LinearConstraints(found.A, found.b))
        exact = model_minimum_within(H, g, w, found.A, found.b)
        values = [g @ e + e @ H @ e / 2 for e in (d, exact)]
        assert values[0] <= values[1] + 1e-7 * (1 + abs(values[1])), trial
        assert (found.A @ (w + d) + found.b >= -1e-12 * (1 + np.abs(w).max() + np.abs(d).max() + np.abs(found.b))).all()


def test_contradictions_are_proven():
    rng, contradict = np.random.default_rng(3), 0
    for _ in range(300):
        q, m = int(rng.integers(1, 8)), int(rng.integers(1, 4))
        A, b = rng.standard_normal((q, m)) * (rng.random((q, m)) < 0.8), rng.standard_normal(q) - 0.3
        try:
            found = Constraints.of(A, b)
        except Infeasible as proof:
            y, contradict = proof.multipliers, contradict + 1
            assert (y >= 0).all() and y @ b == pytest.approx(-1)
            np.testing.assert_allclose(y @ A, 0, atol=1e-8 * y.max() * np.abs(A).max())
        else:
            w = np.zeros(m) if found is None else found.nearest(np.zeros(m))
            assert (A @ w + b >= -1e-8).all()
    assert 50 < contradict < 250


def test_rows_that_nearly_depend_on_each_other():
    X, y = X_bc[:, :2], y_bc
    with pytest.raises(ValueError, match=r"No weights shorter than 5 meet all constraints: rows 0, 1 of A"):
        SmSVMClassifier(constraints=([[1, 0], [-1, 1e-9]], [0, -5e-9])).fit(X, y)
    for angle in 10.0**-np.arange(1, 7):                         # w_0 >= 0 and w_1 >= 5 + w_0 / angle
        model = SmSVMClassifier(constraints=([[1, 0], [-1, angle]], [0, -5 * angle])).fit(X, y)
        assert model.coef_[0, 0] >= -1e-9 and model.coef_[0, 1] >= 5 - 1e-6 and model.duality_gap_[0] <= 1e-4


def test_a_fit_says_which_constraints_it_misses(monkeypatch):
    monkeypatch.setattr(Constraints, "missed", lambda *given: 1e-3)
    with pytest.warns(ConvergenceWarning, match="Constraints are missed by 1.0e-03 of the sizes of their sums"):
        SmSVMClassifier(constraints=FAIR).fit(X_bc, y_bc)


# ---------------------------------------------------------------- every way of a fit

@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_rows_of_every_kind_have_the_same_weights(loss):
    given = {"l2": 1e-3, "loss": loss, "constraints": FAIR, "tol": 1e-5}
    reference = SmSVMClassifier(**given).fit(X_bc, y_bc)
    assert meets(reference, *FAIR) and reference.duality_gap_[0] <= 1e-5
    assert reference.objective_ > SmSVMClassifier(l2=1e-3, loss=loss, tol=1e-5).fit(X_bc, y_bc).objective_ + 1e-3
    for X in (sp.csr_matrix(X_bc), np.asfortranarray(X_bc)):
        np.testing.assert_allclose(SmSVMClassifier(**given).fit(X, y_bc).coef_, reference.coef_, atol=1e-7)
    single = SmSVMClassifier(**given).fit(X_bc.astype(np.float32), y_bc)
    assert meets(single, *FAIR)
    np.testing.assert_allclose(single.coef_, reference.coef_, atol=1e-2)
    for threads in (1, 2):
        assert np.array_equal(SmSVMClassifier(**given, n_jobs=threads).fit(X_bc, y_bc).coef_, reference.coef_)


@pytest.mark.parametrize("shape", [(60_000, 8), (400, 700), (40, 300)])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_many_rows_and_many_columns(shape, loss):
    rng = np.random.default_rng(5)
    X = rng.standard_normal(shape)
    sensitive = X[:, 0] + rng.standard_normal(len(X)) > 0
    y = X @ rng.standard_normal(shape[1]) / np.sqrt(shape[1]) + sensitive + rng.standard_normal(len(X)) > 0
    A, b = covariance_within(X, sensitive, 1e-3)
    model = SmSVMClassifier(l2=1e-3, loss=loss, constraints=(A, b)).fit(X, y)
    assert model.duality_gap_[0] <= 1e-4 and meets(model, A, b)
    assert np.abs(np.cov(model.decision_function(X), sensitive, bias=True)[0, 1]) <= 1e-3 * (1 + 1e-9)


def test_several_classes_weights_warm_starts_and_penalised_intercepts():
    X, y = load_iris(return_X_y=True)
    A, b = np.array([[1.0, -1, 0, 0], [0, 0, 1, -1]]), np.array([0.0, 0.1])       # an order of weights
    for more in ({}, {"penalize_intercept": True}, {"fit_intercept": False}, {"max_time": 100.0}, {"C": 1.0},
                 {"class_weight": "balanced"}, {"class_weight": {0: 2}, "class_weight_on": "positives"}):
        model = SmSVMClassifier(constraints=(A, b), **more).fit(X, y)
        assert model.coef_.shape == (3, 4) and model.duality_gap_.max() <= 1e-4 and meets(model, A, b)
        model.set_params(warm_start=True, constraints=(-A, b + 0.3)).fit(X, y)
        assert model.duality_gap_.max() <= 1e-4 and meets(model, -A, b + 0.3)
    repeated = SmSVMClassifier(constraints=(A, b), tol=1e-6).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    weighted = SmSVMClassifier(constraints=(A, b), tol=1e-6).fit(X, y, np.full(len(y), 2.0))
    np.testing.assert_allclose(repeated.coef_, weighted.coef_, atol=1e-4)
    with_offset = SmSVMClassifier(constraints=(A, b)).fit(X, y == 1, offset=X[:, 0])
    assert with_offset.duality_gap_[0] <= 1e-4 and meets(with_offset, A, b)


def test_bounds_can_be_rows():
    by_rows = SmSVMClassifier(l2=1e-3, tol=1e-7, constraints=(np.eye(30), 0.0)).fit(X_bc, y_bc)
    by_bounds = SmSVMClassifier(l2=1e-3, tol=1e-7, lower=0).fit(X_bc, y_bc)
    np.testing.assert_allclose(by_rows.objective_, by_bounds.objective_, rtol=2e-7)
    np.testing.assert_allclose(by_rows.coef_, by_bounds.coef_, atol=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_bounds_beside_constraints_are_rows_of_theirs(loss):
    rng = np.random.default_rng(3)
    lower, upper = np.where(np.arange(30) % 3, -0.05, -np.inf), np.full(30, 0.2)
    upper[4] = lower[4]                                               # a weight that is given
    for bounds in ({"lower": 0}, {"upper": 0.1}, {"lower": lower, "upper": upper}):
        low, high = (np.broadcast_to(bounds.get(name, none), 30) for name, none in (("lower", -np.inf),
                                                                                    ("upper", np.inf)))
        A = np.vstack([FAIR[0], np.eye(30)[np.isfinite(low)], -np.eye(30)[np.isfinite(high)]])
        b = np.concatenate([np.broadcast_to(FAIR[1], len(FAIR[0])), -low[np.isfinite(low)], high[np.isfinite(high)]])
        beside = SmSVMClassifier(l2=1e-3, tol=1e-7, loss=loss, constraints=FAIR, **bounds)
        rows = SmSVMClassifier(l2=1e-3, tol=1e-7, loss=loss, constraints=(A, b)).fit(X_bc, y_bc)
        for _ in range(2):                                            # the second from weights that miss them
            beside.fit(X_bc, y_bc)
            assert beside.duality_gap_[0] <= 1e-7 and meets(beside, *FAIR)
            assert (beside.coef_ >= low).all() and (beside.coef_ <= high).all()
            np.testing.assert_allclose(beside.objective_, rows.objective_, rtol=2e-7)
            assert ((beside.coef_[0] == low) | (beside.coef_[0] == high)).sum() > 3
            beside.coef_ = rng.standard_normal((1, 30))
            beside.set_params(warm_start=True)


def test_bounds_beside_constraints_are_so_many_at_most():
    with pytest.raises(ValueError, match="constraints= takes up to 256 bounds beside it; lower and upper are 400"):
        SmSVMClassifier(constraints=(np.ones((1, 200)), 0), lower=-1, upper=1).fit(np.eye(200), np.arange(200) % 2)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "quantile"])
@pytest.mark.parametrize("intercept", [{"fit_intercept": False}, {}, {"penalize_intercept": True}],
                         ids=["none", "free", "penalised"])
def test_wide_rows_have_as_many_unknowns_as_rows_and_constraints(loss, intercept):
    rng = np.random.default_rng(11)
    X = rng.standard_normal((40, 300)) / np.arange(1, 301) ** 0.5
    scores = X @ rng.standard_normal(300) + 0.2 * rng.standard_normal(40)
    a = rng.standard_normal((3, 300))
    A, b = np.vstack([a, -a[:1], X[:1]]), np.array([0.3, 0.01, 0.1, -0.3, 0.05])      # the first two an equation
    for form in (X, sp.csr_matrix(X), X.astype(np.float32)):
        model = (SmSVMRegressor if loss == "quantile" else SmSVMClassifier)(
            loss=loss, l2=1e-3, tol=1e-6, constraints=(A, b), lower=np.where(np.arange(300) < 20, 0.0, -np.inf),
            **intercept)
        y = scores if loss == "quantile" else scores > 0
        reduced, block = (clone(model).set_params(linear_solver=solver).fit(form, y) for solver in ("auto", "cholesky"))
        assert reduced.duality_gap_[0] <= 1e-6 and reduced.n_passes_ < block.n_passes_
        np.testing.assert_allclose(reduced.objective_, block.objective_, rtol=2e-6)
        assert meets(reduced, A, b) and (np.ravel(reduced.coef_)[:20] >= 0).all()
        again = reduced.set_params(warm_start=True).fit(form, y)
        assert again.duality_gap_[0] <= 1e-6 and meets(again, A, b)


def test_vectors_beside_wide_rows_are_what_they_are_among_the_unknowns():
    rng = np.random.default_rng(12)
    X = rng.standard_normal((30, 200))
    for beside in (rng.standard_normal((4, 200)), X[:2] + X[2:4], np.ones((1, 200))):
        wide = open_rows(X).reduced(0.0, beside)
        t = rng.standard_normal(wide.L.shape[1])
        w = wide.out_of(t, intercept=False)
        assert wide.L.shape[0] == 30 and np.linalg.norm(w) == pytest.approx(np.linalg.norm(t))
        np.testing.assert_allclose(beside @ w, wide.beside @ t, atol=1e-11)
        np.testing.assert_allclose(X @ w, wide.L @ t, atol=1e-11)


def test_a_start_that_meets_equations_to_rounding_is_no_contradiction():
    rng = np.random.default_rng(13)
    a = rng.standard_normal((2, 70))
    within = Constraints.of(np.vstack([a, -a]), np.array([0.3, -0.2, -0.3, 0.2]))
    w = within.nearest(rng.standard_normal(70))
    for _ in range(50):
        start = w + 1e-15 * rng.standard_normal(70)
        assert within.missed(within.nearest(start), 1.0) < 1e-12


@pytest.mark.parametrize("apart", [1e-13, 1e-11])
def test_equations_whose_two_rows_contradict_by_rounding_are_equations(apart):
    rng = np.random.default_rng(14)
    X = rng.standard_normal((20, 6))
    y = X @ rng.standard_normal(6) > 0
    for seed in range(10):
        a = np.random.default_rng(seed).standard_normal(6)
        given = {"loss": "squared_hinge", "l2": 1e-2, "tol": 1e-7, "lower": -0.1}
        near, exact = (SmSVMClassifier(constraints=(np.vstack([a, -a]), [0.2, -0.2 - by]), **given).fit(X, y)
                       for by in (apart, 0))
        assert near.duality_gap_[0] <= 1e-7 and abs(near.coef_[0] @ a + 0.2) < 10 * apart
        np.testing.assert_allclose(near.coef_, exact.coef_, atol=1e-3)
        near.set_params(warm_start=True).coef_ = rng.standard_normal((1, 6))
        assert near.fit(X, y).duality_gap_[0] <= 1e-7


def test_what_is_always_met_changes_nothing():
    plain = SmSVMClassifier(l2=1e-3, tol=1e-7).fit(X_bc, y_bc)
    for A, b in ((np.zeros((2, 30)), [0, 1]), (np.ones((1, 30)), 1e6)):
        model = SmSVMClassifier(l2=1e-3, tol=1e-7, constraints=(A, b)).fit(X_bc, y_bc)
        np.testing.assert_allclose(model.objective_, plain.objective_, rtol=2e-7)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)


def test_constraints_come_in_any_array():
    A, b = FAIR
    reference = SmSVMClassifier(constraints=FAIR).fit(X_bc, y_bc)
    for given in ([A.tolist(), b.tolist()], (np.asfortranarray(A), b), (sp.csr_matrix(A), b), (A, 0.02),
                  (A, list(b))):
        assert np.array_equal(SmSVMClassifier(constraints=given).fit(X_bc, y_bc).coef_, reference.coef_)
    single = SmSVMClassifier(constraints=(A.astype(np.float32), b)).fit(X_bc, y_bc)
    np.testing.assert_allclose(single.coef_, reference.coef_, atol=1e-3)


def test_the_scale_of_a_row_says_nothing():
    A, b = FAIR
    for factor in (1e-150, 1e150, np.array([[1e-6], [1e6]])):
        model = SmSVMClassifier(constraints=(A * factor, b * np.ravel(factor))).fit(X_bc, y_bc)
        np.testing.assert_allclose(model.objective_, SmSVMClassifier(constraints=FAIR).fit(X_bc, y_bc).objective_,
                                   rtol=2e-4)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "huber", "quantile"])
def test_targets_in_any_unit(loss):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((200, 4))
    t = X @ [1.0, -2, 0.5, 0] + 0.3 * rng.standard_normal(200)
    A, b = np.array([[0, 1.0, 0, 0], [1, 0, -1, 0]]), np.array([1.0, -1.0])
    given = {"loss": loss, "epsilon": 0.1, "delta": 0.5, "quantile": 0.3, "l2": 1e-3}
    model = SmSVMRegressor(**given, constraints=(A, b)).fit(X, t)
    assert model.duality_gap_[0] <= 1e-4 and meets(model, A, b) and model.coef_[1] == pytest.approx(-1)
    unit, degree = 1e5, 2 if loss in ("squared_epsilon_insensitive", "huber") else 1
    given |= {"epsilon": 0.1 * unit, "delta": 0.5 * unit, "l2": 1e-3 * unit**(degree - 2)}
    scaled = SmSVMRegressor(**given, constraints=(A, b * unit)).fit(X, t * unit)
    assert scaled.duality_gap_[0] <= 1e-4
    np.testing.assert_allclose(scaled.objective_, model.objective_ * unit**degree, rtol=2e-4)
    several = SmSVMRegressor(loss, l2=1e-3, constraints=(A, b)).fit(X, np.column_stack([t, 3 * t]))
    assert several.coef_.shape == (2, 4) and meets(several, A, b)


def test_rows_in_files_over_ranks_and_on_a_device(tmp_path):
    given = {"l2": 1e-3, "constraints": FAIR, "tol": 1e-5}
    here = SmSVMClassifier(**given).fit(X_bc, y_bc)
    np.save(tmp_path / "X.npy", X_bc)
    np.save(tmp_path / "y.npy", y_bc)
    models = [SmSVMClassifier(**given).fit(tmp_path / "X.npy", tmp_path / "y.npy")]
    models += on_ranks(2, lambda comm: SmSVMClassifier(**given).fit(X_bc[comm.rank::2], y_bc[comm.rank::2],
                                                                   comm=comm))[0]
    if strict is not None:
        models.append(SmSVMClassifier(**given).fit(strict.asarray(X_bc), y_bc))
    for model in models:
        assert meets(model, *FAIR) and model.duality_gap_[0] <= 1e-5
        np.testing.assert_allclose(np.asarray(model.coef_), here.coef_, atol=1e-5)


def test_a_fit_that_is_stopped_meets_them():
    X, y = load_iris(return_X_y=True)
    A, b = np.array([[1.0, 1, 0, 0]]), np.array([-0.5])
    seen = []

    def stop(model):
        seen.append(meets(model, A, b))
        return len(seen) > 1

    model = SmSVMClassifier(constraints=(A, b), callback=stop).fit(X, y)
    assert all(seen) and meets(model, A, b)
    with pytest.warns(ConvergenceWarning):
        assert meets(SmSVMClassifier(constraints=(A, b), max_time=1e-9).fit(X, y), A, b)


def test_a_fit_goes_on_from_its_checkpoint(tmp_path):
    given, path = {"constraints": FAIR, "tol": 1e-5}, tmp_path / "state"
    whole = SmSVMClassifier(**given).fit(X_bc, y_bc)
    model = stopped(SmSVMClassifier(**given), path, 3, X_bc, y_bc)
    with pytest.raises(ValueError, match=r"is of another fit: .*constraints"):
        clone(model).set_params(constraints=(FAIR[0], FAIR[1] * 2), checkpoint=path).fit(X_bc, y_bc)
    again = model.set_params(checkpoint=path).fit(X_bc, y_bc)
    assert np.array_equal(again.coef_, whole.coef_) and again.n_iter_ == whole.n_iter_


def test_models_are_kept_and_searched(tmp_path):
    model = SmSVMClassifier(constraints=FAIR).fit(X_bc, y_bc)
    model.save(tmp_path / "model")
    loaded = cmargin.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(X_bc), model.predict(X_bc))
    assert np.array_equal(loaded.constraints[0], FAIR[0]) and np.array_equal(loaded.constraints[1], FAIR[1])
    assert np.array_equal(clone(model).fit(X_bc, y_bc).coef_, model.coef_)
    assert np.array_equal(model.to_sklearn().predict(X_bc), model.predict(X_bc))
    search = SmSVMClassifierCV(l2s=(1e-3, 1e-1), cv=3, estimator=SmSVMClassifier(constraints=FAIR)).fit(X_bc, y_bc)
    assert meets(search, *FAIR) and search.cv_results_["mean_test_score"].min() > 0.8
    assert str(penalty_of(model, 569.0, 30)) == "l2=0.0001, 2 linear constraints"


def test_a_fit_within_constraints_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SmSVMClassifier(constraints=FAIR).fit(X_bc, y_bc)


# ---------------------------------------------------------------- bad input, and what is refused

ROW = np.eye(30)[:1]


@pytest.mark.parametrize(("given", "said"), [
    ({"constraints": np.eye(30)}, r"The 'constraints' parameter of \w+ must be a pair \(A, b\) or None"),
    ({"constraints": (ROW,)}, r"must be a pair \(A, b\) or None"),
    ({"constraints": 3}, r"must be a pair \(A, b\) or None"),
    ({"constraints": (ROW, "0")}, "must be arrays of floats"),
    ({"constraints": (ROW, ["a"])}, "must be arrays of floats"),
    ({"constraints": (1j * ROW, 0)}, "must be arrays of floats"),
    ({"constraints": (np.ma.masked_greater(ROW, ROW.min()), 0)}, "must be arrays of floats"),
    ({"constraints": (ROW[0], 0)}, r"should be of shapes \(n_constraints, n_features\) and \(n_constraints,\)"),
    ({"constraints": (ROW, [0, 1])}, r"should be of shapes .* Got \(1, 30\) and \(2,\), instead"),
    ({"constraints": (np.empty((0, 30)), [])}, r"should be of shapes"),
    ({"constraints": (ROW * np.nan, 0)}, "contains NaN or infinity"),
    ({"constraints": (ROW, np.inf)}, "contains NaN or infinity"),
    ({"constraints": (np.eye(4), 0)}, "constraints has 4 columns but the input data X has 30 features"),
    ({"constraints": (np.vstack([ROW, -2 * ROW, ROW + 1]), [-1, 1, 0])},
     r"No weights meet all constraints: rows 0, 1 of A, times 2, 1, add up to 0, and b to -1"),
    ({"constraints": (np.vstack([ROW, 0 * ROW]), [0, -2])}, "No weights meet all constraints: row 1 of A, times 0.5,"),
    ({"constraints": (ROW, 0), "l1": 1e-3}, "constraints= needs l1=0"),
    ({"constraints": (ROW, 0), "l1_ratio": 0.5}, "constraints= needs l1_ratio=None"),
    ({"constraints": (np.abs(ROW), -1), "upper": 0},
     r"No weights meet all constraints: rows 0, upper\[0\] of A and bounds, times 1, 1, add up to 0, and b to -1"),
    ({"constraints": (ROW, 0), "lower": np.zeros(4)}, r"'lower' should be of shape \(30,\) when an array-like"),
    ({"constraints": (ROW, 0), "groups": np.arange(30)}, "constraints= needs groups=None"),
    ({"constraints": (ROW, 0), "l2": 0}, "constraints= needs l2 above 0"),
    ({"constraints": (ROW, 0), "C": np.inf}, "constraints= needs l2 above 0"),
    ({"constraints": (ROW, 0), "l2": np.ones(30)}, "constraints= needs one l2 for all columns"),
    ({"constraints": (ROW, 0), "linear_solver": "cg"}, "constraints= needs linear_solver='auto' or 'cholesky'"),
    ({"constraints": (ROW, 0), "linear_solver": "dual"}, "constraints= needs linear_solver='auto' or 'cholesky'"),
])
@pytest.mark.parametrize("estimator", [SmSVMClassifier, SmSVMRegressor])
def test_constraints_that_are_none(estimator, given, said):
    with pytest.raises((InvalidParameterError, ValueError), match=said):
        estimator(**given).fit(X_bc, y_bc)


def test_ways_that_know_no_constraints():
    model = SmSVMClassifier(constraints=FAIR).fit(X_bc, y_bc)
    with pytest.raises(ValueError, match=r"leave_one_out takes one l2 .* neither lower nor upper nor constraints"):
        model.leave_one_out(X_bc, y_bc)
    with pytest.raises(ValueError, match=r"A path takes one l2 .* neither lower nor upper nor constraints"):
        model.path(X_bc, y_bc)
    with pytest.raises(ValueError, match="nor constraints"):
        SmSVMClassifierCV(cv="loo", estimator=SmSVMClassifier(constraints=FAIR)).fit(X_bc, y_bc)
    with pytest.raises(ValueError, match="standardize=True scales the columns of each fold"):
        SmSVMClassifierCV(standardize=True, estimator=SmSVMClassifier(constraints=FAIR)).fit(X_bc, y_bc)
    with pytest.raises(InvalidParameterError, match="needs constraints=None"):
        SmSVMClassifier(constraints=FAIR, multi_class="crammer_singer").fit(X_bc, y_bc)
    for more, said in (({"prune": True}, "nor constraints"), ({"coef_dtype": "float32"}, "needs coef_dtype='float64'")):
        with pytest.raises(InvalidParameterError if "coef_dtype" in more else ValueError, match=said):
            SmSVMClassifier(constraints=FAIR, **more).fit(X_bc, y_bc)
    with pytest.raises(ValueError, match="line_search='exact'"):
        SmSVMClassifier(constraints=FAIR, line_search="quadratic").fit(X_bc, y_bc)
    wide = sp.random(20, 4001, 0.01, format="csr", random_state=0)
    with pytest.raises(ValueError, match="constraints= needs a factor of all columns, of which there may be 4,000"):
        SmSVMClassifier(constraints=(np.ones((1, 4001)), 0)).fit(wide, np.arange(20) % 2)
