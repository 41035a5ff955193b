"""``max_passes`` bounds the reads of a fit whatever reads the rows: evaluations, products with them, sweeps."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cmargin import SmSVMClassifier, SmSVMOneClass, SmSVMRegressor

AT_THE_END = 1                   # read beyond, of the objective at the weights returned


def rows(kind, seed):
    rng = np.random.default_rng(seed)
    n, p = {"tall": (900, 40), "wide": (60, 700), "sparse": (500, 4500)}[kind]
    if kind == "sparse":
        X = sp.random(n, p, 0.01, "csr", random_state=seed)
        return X, X @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n)
    X = rng.standard_normal((n, p)) / np.arange(1, p + 1) ** 0.7
    return X, X @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n)


CLASSIFIERS = [SmSVMClassifier(loss=loss) for loss in ("hinge", "squared_hinge", "logistic", "huberised_hinge")]
REGRESSORS = [SmSVMRegressor(loss=loss) for loss in ("epsilon_insensitive", "quantile", "huber")]


@pytest.mark.parametrize("kind", ["tall", "wide", "sparse"])
@pytest.mark.parametrize("model", CLASSIFIERS + REGRESSORS, ids=lambda model: model.loss)
@pytest.mark.parametrize("allowed", [1, 3, 12])
def test_products_are_reads_that_are_allowed(kind, model, allowed):
    X, score = rows(kind, 5)
    y = score if isinstance(model, SmSVMRegressor) else score > 0
    model.set_params(linear_solver="cg", l2=1e-5, tol=1e-9, max_passes=allowed)
    with pytest.warns(ConvergenceWarning, match=f"stopped at max_passes={allowed} with a relative duality gap"):
        model.fit(X, y)
    assert model.n_passes_ <= allowed + AT_THE_END
    assert 0 < model.duality_gap_[0] <= 1


def test_a_fit_that_runs_out_tells_its_true_gap():
    X, score = rows("wide", 6)
    y = np.where(score > 0, 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short, whole = (SmSVMClassifier(l2=1e-4, linear_solver="cg", max_passes=most, tol=tol, penalize_intercept=True)
                        .fit(X, y) for most, tol in ((60, 1e-9), (10_000, 1e-7)))
    assert short.n_passes_ <= 61 < whole.n_passes_
    w, b = short.coef_[0], short.intercept_[0]
    objective = np.maximum(0, 1 - y * (X @ w + b)).mean() + 0.5e-4 * (w @ w + b * b)
    assert short.objective_[0] == pytest.approx(objective, rel=1e-10)
    assert whole.objective_[0] >= objective * (1 - short.duality_gap_[0]) * (1 - 1e-12)


@pytest.mark.parametrize("allowed", [2, 5, 11, 40, 200])
def test_rows_as_unknowns_of_an_l1_step(allowed):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 2500))
    y = X[:, :900].sum(axis=1) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SmSVMClassifier(l2=1e-3, l1=1e-5, loss="logistic", tol=1e-10, max_passes=allowed).fit(X, y)
    assert model.n_passes_ <= allowed + AT_THE_END


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("intercept", [{}, {"fit_intercept": False}], ids=["free", "none"])
def test_an_l1_fit_that_just_fits_is_the_same_as_without_a_limit(seed, intercept):
    X, score = rows("wide", seed)
    model = SmSVMRegressor(loss="epsilon_insensitive", l2=4e-3, l1=3e-4, tol=1e-3, **intercept).fit(X, score)
    for more in range(5):
        again = clone(model).set_params(max_passes=int(np.ceil(model.n_passes_)) + more).fit(X, score)
        np.testing.assert_array_equal(again.coef_, model.coef_)
        assert again.duality_gap_[0] == model.duality_gap_[0] <= 1e-3


@pytest.mark.parametrize("allowed", [5, 30])
def test_one_class_of_many_columns(allowed):
    X = rows("sparse", 7)[0]
    with pytest.warns(ConvergenceWarning, match="max_passes"):
        model = SmSVMOneClass(nu=0.3, tol=1e-12, max_passes=allowed).fit(X)
    assert model.n_passes_ <= allowed + AT_THE_END


def test_a_fit_within_its_limit_is_the_same_for_any_larger_one():
    X, score = rows("sparse", 8)
    fits = [SmSVMClassifier(loss="squared_hinge", l2=1e-3, linear_solver="cg", max_passes=most).fit(X, score > 0)
            for most in (1000, 5000)]
    assert fits[0].duality_gap_[0] <= 1e-4
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
