
import numpy as np
import pytest
import scipy.sparse as sp
from api import location
from conftest import blobs
from estimators import quietly
from scipy.optimize import approx_fprime, brentq
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from cmargin.baselines import CatoniHingeClassifier, ODMClassifier, ProjectionProfileClassifier
from cmargin.data import open_rows
from cmargin.solvers.first_order.full_batch import (
    CatoniRisk,
    MarginMoments,
    ProjectionProfile,
    smoothed_hinge,
    weighted_location,
)

X_bc, y_bc = load_breast_cancer(return_X_y=True)
X_bc = scale(X_bc)
sign_bc = np.where(y_bc == 1, 1.0, -1.0)
UNEVEN = (np.arange(569) % 4 + 0.5) / np.mean(np.arange(569) % 4 + 0.5)


def blocks(X, sign, weight=None):
    return open_rows(X).score_blocks(sp.csc_matrix((sign > 0)[:, None].astype(np.int8)), weight, 1)


@pytest.mark.parametrize("make", [
    lambda rows: MarginMoments(rows, 0, 0.3, True, 0.7, 0.4, 0.9, 0.2),
    lambda rows: ProjectionProfile(rows, 0, 0.3, True, 0.8, 1.3),
    lambda rows: CatoniRisk(rows, 0, 0.3, True, 0.4, 0.2),
], ids=["moments", "profile", "catoni"])
@pytest.mark.parametrize("weight", [None, UNEVEN], ids=["alike", "weighted"])
def test_gradients_are_those_of_the_values(make, weight):
    objective = make(blocks(X_bc[:, :4], sign_bc, weight))
    v = np.array([0.4, -0.7, 0.2, 0.1, 0.3])
    numeric = approx_fprime(v, lambda v: objective(v)[0], 1e-7)
    np.testing.assert_allclose(objective(v)[1], numeric, atol=2e-6)


def test_moments_alone_have_a_closed_form():
    # w + 2 lambda1 Cov(yx) w = lambda2 mean(yx)
    model = ODMClassifier(variance_weight=0.6, mean_weight=0.8, hinge_weight=0.0, fit_intercept=False, tol=1e-10)
    quietly(model, X_bc, y_bc)
    Z = sign_bc[:, None] * X_bc
    exact = np.linalg.solve(np.eye(30) + 1.2 * np.cov(Z.T, bias=True), 0.8 * Z.mean(axis=0))
    np.testing.assert_allclose(model.coef_[0], exact, atol=1e-8)
    z = Z @ exact
    assert model.objective_[0] == pytest.approx(exact @ exact / 2 + 0.6 * z.var() - 0.8 * z.mean())


@pytest.mark.parametrize("make", [
    lambda: ODMClassifier(variance_weight=0, mean_weight=0, l2=0.01, smoothing=1e-4),
    lambda: CatoniHingeClassifier(scale=1e4, l2=0.01, smoothing=1e-4),
], ids=["moments", "catoni"])
def test_the_hinge_alone_is_a_support_vector_machine(make):
    # ODM without moments, and the robust risk at a scale that trims nothing
    model = quietly(make(), X_bc, y_bc)
    reference = SVC(kernel="linear", C=1 / (0.01 * len(y_bc)), tol=1e-6).fit(X_bc, y_bc)

    def risk(w, b):
        return np.maximum(0, 1 - sign_bc * (X_bc @ w + b)).mean() + 0.005 * w @ w

    best = risk(reference.coef_[0], reference.intercept_[0])
    assert best - 1e-9 <= risk(model.coef_[0], model.intercept_[0]) <= best * 1.001


@pytest.mark.parametrize("weight", [None, UNEVEN], ids=["alike", "weighted"])
def test_catoni_risk_is_the_root_of_its_equation(weight):
    # unequal weights were refused
    rows = blocks(X_bc[:, :3], sign_bc, weight)
    v = np.array([1.0, -0.5, 0.3, 0.2])
    losses, _ = smoothed_hinge(sign_bc * (X_bc[:, :3] @ v[:-1] + v[-1]), 1e-3)

    def influence(at, s=0.3):
        u = np.clip((at - losses) / s, -np.sqrt(2), np.sqrt(2))
        return np.average(u - u**3 / 6, weights=weight)

    value = CatoniRisk(rows, 0, 0.0, True, 0.3, 1e-3)(v)[0]
    assert value == pytest.approx(brentq(influence, -1, 20, xtol=1e-13), abs=1e-9)
    assert value < np.average(losses, weights=weight)


@pytest.mark.parametrize("scale", [1e-9, 0.03, 1.0, 1e6])
@pytest.mark.parametrize("seed", range(12))
def test_a_location_of_weighted_losses_is_that_of_their_copies(scale, seed):
    rng = np.random.default_rng(seed)
    losses, times = rng.standard_normal(rng.integers(1, 30)) ** 3, None
    losses[::3] = losses[0]
    times = rng.integers(1, 6, len(losses))
    copies = np.repeat(losses, times)
    at = location(copies, float(np.median(copies)), scale)
    assert weighted_location(losses, times / 7.0, scale) == pytest.approx(at, rel=1e-12, abs=1e-12)


def test_robust_risk_is_not_moved_by_a_few_wild_rows():
    X, sign = X_bc[:, :5].copy(), sign_bc
    X[:6] *= 300 * np.where((X[:6] @ np.ones(5)) * sign[:6] > 0, 1, -1)[:, None]
    honest = slice(6, None)
    robust = quietly(CatoniHingeClassifier(scale=0.5, l2=1e-2), X, y_bc)
    plain = quietly(ODMClassifier(variance_weight=0, mean_weight=0, l2=1e-2), X, y_bc)
    assert robust.score(X[honest], y_bc[honest]) > max(0.9, plain.score(X[honest], y_bc[honest]) - 0.01)


def test_projection_profile_falls_and_learns():
    model = quietly(ProjectionProfileClassifier(alpha=0.5, beta=1.0, l2=1e-2), X_bc, y_bc)
    assert np.all(np.diff(model.history_["objective"]) <= 1e-15) and model.objective_[0] < 0.5
    z = sign_bc * model.decision_function(X_bc)
    value = np.where(z > 0, np.exp(-0.5 * z * z), np.exp(-z)).mean() + 0.005 * model.coef_[0] @ model.coef_[0]
    assert model.objective_[0] == pytest.approx(value) and model.score(X_bc, y_bc) > 0.95


@pytest.mark.parametrize("make", [ODMClassifier, ProjectionProfileClassifier, CatoniHingeClassifier])
def test_classes_sparse_threads_and_trace(make):
    X, y = blobs(n=200, k=3)
    X[np.abs(X) < 0.3] = 0
    one, three = (quietly(make(n_jobs=jobs, max_passes=20), X, y) for jobs in (1, 3))
    assert np.array_equal(one.coef_, three.coef_) and one.coef_.shape == (3, 12)
    sparse = quietly(make(max_passes=20), sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.coef_, one.coef_, atol=1e-3 * np.abs(one.coef_).max())
    assert one.score(X, y) > 0.7 and set(one.history_["class"]) == {0, 1, 2}
    last = np.flatnonzero(one.history_["class"] == 1)[-1]
    z = np.where(y == 1, 1, -1) * one.decision_function(X)[:, 1]
    assert one.history_["margin_mean"][last] == pytest.approx(z.mean())
    with pytest.warns(ConvergenceWarning, match="after 2 passes the gradient norm is"):
        make(max_passes=2).fit(X, y)
