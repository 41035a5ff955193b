"""SmSVMClassifier(C=np.inf): the minimum without a penalty where there is one, and words where there is none."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, minimize
from sklearn.exceptions import ConvergenceWarning

from cmargin import SmSVMClassifier

LOSSES = {"hinge": lambda z: np.maximum(0, 1 - z), "squared_hinge": lambda z: np.maximum(0, 1 - z) ** 2,
          "logistic": lambda z: np.logaddexp(0, -z)}


def problem(seed, apart):
    rng = np.random.default_rng([74, seed])
    n, m = int(rng.integers(20, 120)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, m))
    y = np.where(X @ rng.normal(size=m) + (0 if apart else 2) * rng.normal(size=n) > 0, 1, -1)
    y[:2] = -1, 1
    return X, y


def least(loss, X, y):
    """The minimum: of the hinge by HiGHS, of smooth losses by L-BFGS."""
    A, n = np.column_stack([X, np.ones(len(X))]), len(X)
    if loss == "hinge":
        found = linprog(np.r_[np.zeros(A.shape[1]), np.full(n, 1 / n)], np.column_stack([-y[:, None] * A, -np.eye(n)]),
                        -np.ones(n), bounds=[(None, None)] * A.shape[1] + [(0, None)] * n, method="highs")
        return found.fun
    return minimize(lambda w: LOSSES[loss](y * (A @ w)).mean(), np.zeros(A.shape[1]), tol=1e-14,
                    options={"maxiter": 5000}).fun


@pytest.mark.parametrize("loss", LOSSES)
def test_minimum_of_overlapping_classes_is_that_of_an_independent_solver(loss):
    for seed in range(30):
        X, y = problem(seed, apart=False)
        optimum = least(loss, X, y)
        model = SmSVMClassifier(C=np.inf, loss=loss).fit(sp.csr_matrix(X) if seed % 2 else X, y)
        objective = LOSSES[loss](y * model.decision_function(X)).mean()
        assert model.objective_[0] == pytest.approx(objective, abs=1e-12)
        if optimum > 1e-9:
            assert objective == pytest.approx(optimum, rel=2e-4) and np.isnan(model.duality_gap_[0])


@pytest.mark.parametrize("shape", [(150, 4), (20, 50), (12_000, 6)])
@pytest.mark.parametrize("loss", LOSSES)
def test_separable_classes_reach_0_and_only_the_loss_without_a_minimum_says_so(loss, shape):
    rng = np.random.default_rng(2)
    X = rng.normal(size=shape)
    y = X[:, 0] > 0
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = SmSVMClassifier(C=np.inf, loss=loss).fit(X, y)
    assert model.score(X, y) == 1 and np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
    assert 0 <= model.objective_[0] < 1e-12 and 0 <= model.duality_gap_[0] < 1e-12
    words = [str(one.message) for one in said if one.category is ConvergenceWarning]
    assert len(words) == (loss == "logistic")
    assert all("has no minimum: classes are separable (1 of 1 binary problems)" in text for text in words)


def test_one_separable_class_among_several_is_counted():
    X = np.r_[np.random.default_rng(1).normal(size=(80, 2)), [[50.0, 0.0], [51.0, 0.0]]]
    y = np.r_[np.arange(80) % 2, 2, 2]
    with pytest.warns(ConvergenceWarning, match=r"\(1 of 3 binary problems\)"):
        SmSVMClassifier(C=np.inf, loss="logistic").fit(X, y)
