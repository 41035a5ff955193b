"""SmSVMClassifier.fit(offset=): scores added while training, certified; against an independent solver and rows with
a column whose weight is 1."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, minimize
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_validate

import cmargin
from cmargin import SmSVMClassifier

LOSSES = {"hinge": lambda z: np.maximum(0, 1 - z), "squared_hinge": lambda z: np.maximum(0, 1 - z) ** 2,
          "logistic": lambda z: np.logaddexp(0, -z)}


def problem(seed):
    rng = np.random.default_rng([91, seed])
    n, m = int(rng.integers(10, 150)), int(rng.integers(1, 30))
    X = rng.normal(size=(n, m))
    y = np.where(X @ rng.normal(size=m) + rng.normal(size=n) > 0, 1, -1)
    y[:2] = -1, 1
    return X, y, rng.choice([0.3, 2, 20]) * rng.normal(size=n) + rng.choice([0, 3]), rng.exponential(size=n) + 0.01


def objective(model, X, y, s, l2, l1, o):
    scores = X @ model.coef_[0] + model.intercept_[0] + o
    w = model.coef_[0]
    return l2 / 2 * w @ w + l1 * np.abs(w).sum() + s @ LOSSES[model.loss](y * scores) / s.sum()


def least(loss, X, y, s, l2, o):
    """The minimum by L-BFGS, of a smooth loss; of the hinge one that is no more than 1e-4 above it, smoothed."""
    A, s = np.column_stack([X, np.ones(len(X))]), s / s.sum()

    def value(w):
        z = y * (A @ w + o)
        if loss == "hinge":
            u, width = 1 - z, 1e-5
            root = np.sqrt(u * u + width * width)
            f, slope = (u + root) / 2, -(1 + u / root) / 2
        elif loss == "logistic":
            f, slope = np.logaddexp(0, -z), -1 / (1 + np.exp(np.minimum(z, 700)))
        else:
            f, slope = np.maximum(0, 1 - z) ** 2, -2 * np.maximum(0, 1 - z)
        return s @ f + l2 / 2 * w[:-1] @ w[:-1], A.T @ (s * y * slope) + np.r_[l2 * w[:-1], 0]

    return minimize(value, np.zeros(A.shape[1]), jac=True, method="L-BFGS-B",
                    options={"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-10}).fun


@pytest.mark.parametrize("loss", LOSSES)
def test_certificate_holds_beside_an_independent_solver(loss):
    for seed in range(40):
        X, y, o, s = problem(seed)
        l2 = (1e-1, 1e-3)[seed % 2]
        model = SmSVMClassifier(l2=l2, loss=loss).fit(sp.csr_matrix(X) if seed % 3 == 0 else X, y, s, offset=o)
        found = objective(model, X, y, s, l2, 0, o)
        assert model.objective_[0] == pytest.approx(found, rel=1e-9)
        assert 0 <= model.duality_gap_[0] <= 1e-4
        other = least(loss, X, y, s, l2, o)
        bound = found * (1 - model.duality_gap_[0])
        assert bound <= other + 1e-8
        assert found <= other * (1 + 2e-4) + 1e-8


def test_hinge_with_l1_is_the_minimum_of_a_linear_program():
    for seed in range(15):
        X, y, o, s = problem(seed)
        A, n, m = np.column_stack([X, np.ones(len(X))]), *X.shape
        cost = np.r_[np.full(2 * m, 0.01), 0, 0, s / s.sum()]
        rows = -y[:, None] * np.column_stack([X, -X, np.ones(n), -np.ones(n)])
        optimum = linprog(cost, np.column_stack([rows, -np.eye(n)]), -(1 - y * o), method="highs").fun
        model = SmSVMClassifier(l2=0, l1=0.01).fit(X, y, s, offset=o)
        assert A.shape[1] == m + 1
        assert optimum * (1 - 1e-9) <= model.objective_[0] <= optimum * (1 + 2e-4)
        assert model.objective_[0] * (1 - model.duality_gap_[0]) <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "huberised_hinge", "modified_huber"])
@pytest.mark.parametrize("shape", [(300, 8), (40, 300), (15_000, 5)])
def test_a_constant_offset_is_taken_up_by_the_intercept(loss, shape):
    rng = np.random.default_rng(3)
    X = rng.normal(size=shape)
    y = X[:, 0] + rng.normal(size=len(X)) > 0
    plain = SmSVMClassifier(l2=1e-2, loss=loss, tol=1e-6).fit(X, y)
    moved = SmSVMClassifier(l2=1e-2, loss=loss, tol=1e-6).fit(X, y, offset=np.full(len(X), 2.5))
    assert moved.objective_[0] == pytest.approx(plain.objective_[0], rel=3e-6)
    np.testing.assert_allclose(moved.intercept_ + 2.5, plain.intercept_, atol=0.02)
    zero = SmSVMClassifier(l2=1e-2, loss=loss, tol=1e-6).fit(X, y, offset=np.zeros(len(X)))
    assert zero.objective_[0] == pytest.approx(plain.objective_[0], rel=3e-6)


def test_groups_of_columns_go_with_it():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 8))
    y, groups = X[:, 0] + rng.normal(size=300) > 0, np.arange(8) // 2
    plain = SmSVMClassifier(l2=1e-2, l1=1e-2, groups=groups, tol=1e-6).fit(X, y)
    moved = SmSVMClassifier(l2=1e-2, l1=1e-2, groups=groups, tol=1e-6).fit(X, y, offset=np.full(300, -1.0))
    assert moved.objective_[0] == pytest.approx(plain.objective_[0], rel=3e-6)


def test_scores_of_a_model_as_the_offset_leave_what_it_has_missed():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2000, 6))
    y = X @ np.arange(6) + rng.logistic(size=2000) > 0
    first = SmSVMClassifier(l2=1e-6, loss="logistic", tol=1e-8).fit(X[:, :3], y)
    scores = first.decision_function(X[:, :3])
    second = SmSVMClassifier(l2=1e-6, loss="logistic", tol=1e-8).fit(X, y, offset=scores)
    whole = SmSVMClassifier(l2=1e-6, loss="logistic", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(second.decision_function(X) + scores, whole.decision_function(X), atol=1e-2)
    assert second.decision_function(X) == pytest.approx(X @ second.coef_[0] + second.intercept_[0])


def test_each_problem_has_a_column_of_its_own():
    rng = np.random.default_rng(5)
    X, o = rng.normal(size=(200, 4)), rng.normal(size=(200, 3))
    label = rng.integers(0, 3, 200)
    indicator = np.eye(3, dtype=int)[label]
    several = SmSVMClassifier(l2=1e-2).fit(X, label, offset=o)
    labels = SmSVMClassifier(l2=1e-2).fit(X, indicator, offset=o)
    assert (several.coef_ == labels.coef_).all()
    for c in range(3):
        one = SmSVMClassifier(l2=1e-2).fit(X, label == c, offset=o[:, c])
        assert one.objective_[0] == pytest.approx(several.objective_[c], rel=2e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_any_format_and_any_number_of_threads(dtype, tmp_path):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(40_000, 8)).astype(dtype)
    y, o = X[:, 0] + rng.normal(size=40_000) > 0, rng.normal(size=40_000)
    one = SmSVMClassifier(n_jobs=1).fit(X, y, offset=o)
    assert (SmSVMClassifier(n_jobs=2).fit(np.asfortranarray(X), y, offset=list(o)).coef_ == one.coef_).all()
    np.save(tmp_path / "X.npy", X)
    mapped = SmSVMClassifier(n_jobs=1).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y, offset=o)
    assert (mapped.coef_ == one.coef_).all()
    filed = SmSVMClassifier(n_jobs=1).fit(cmargin.data.files.open_files(tmp_path / "X.npy"), y, offset=o)
    assert filed.objective_[0] == pytest.approx(one.objective_[0], rel=2e-4)


def test_metadata_routing_and_searches_take_it():
    rng = np.random.default_rng(7)
    X, o = rng.normal(size=(120, 3)), rng.normal(size=120)
    y = X[:, 0] + o > 0
    search = GridSearchCV(SmSVMClassifier(), {"l2": [1e-1, 1e-2]}, cv=3).fit(X, y, offset=o)
    assert search.best_score_ > 0.4
    with config_context(enable_metadata_routing=True):
        model = SmSVMClassifier().set_fit_request(offset=True)
        assert len(cross_validate(model, X, y, cv=3, params={"offset": o})["test_score"]) == 3


def test_a_fit_out_of_time_reports_the_objective_of_its_weights():
    X, y, o, s = problem(1)
    with pytest.warns(ConvergenceWarning):
        model = SmSVMClassifier(max_time=1e-9).fit(X, y, s, offset=o)
    assert model.objective_[0] == pytest.approx(objective(model, X, y, s, 1e-4, 0, o), rel=1e-6)


X3, Y3 = np.random.default_rng(1).normal(size=(6, 2)), np.array([0, 1, 2, 0, 1, 2])


@pytest.mark.parametrize(("parameters", "y", "offset", "words"), [
    ({}, Y3, np.zeros(6), r"for two classes; here are 3 problems: give one of shape \(6, 3\)"),
    ({}, Y3 > 0, np.zeros(5), r"must have the shape \(6,\).*got \(5, 1\)"),
    ({}, Y3, np.zeros((6, 2)), r"must have the shape \(6, 3\)"),
    ({}, Y3 > 0, [0, 0, np.nan, 0, 0, 0], "Input offset contains NaN"),
    ({}, Y3 > 0, ["a"] * 6, "could not convert string to float|dtype='numeric'"),
    ({"linear_solver": "dual"}, Y3 > 0, np.zeros(6), "does not go with linear_solver='dual'"),
    ({"line_search": "quadratic"}, Y3 > 0, np.zeros(6), "does not go with line_search='quadratic'"),
    ({"checkpoint": "file"}, Y3 > 0, np.zeros(6), "does not go with checkpoint="),
    ({"class_weight": {0: 1, 1: 2, 2: 1}, "class_weight_on": "positives"}, Y3, np.zeros((6, 3)), "weights of each"),
])
def test_what_does_not_go_with_an_offset_is_refused_and_leaves_the_last_fit(parameters, y, offset, words):
    model = SmSVMClassifier(l2=1e-2).fit(X3, Y3 > 0)
    before = dict(vars(model.set_params(**parameters)))
    with pytest.raises(ValueError, match=words):
        model.fit(X3, y, offset=offset)
    assert vars(model) == before


def test_ranks_are_refused():
    with pytest.raises(ValueError, match="does not go with comm="):
        SmSVMClassifier().fit(X3, Y3 > 0, comm=object(), offset=np.zeros(6))
