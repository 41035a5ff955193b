"""SLND and BSN with ``l2``: the optimum of LogisticRegression, certified, under the estimators' own conventions."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale

from cmargin import BSNClassifier, SLNDClassifier
from cmargin.baselines import BalancedSGDClassifier

X, y = load_digits(return_X_y=True)
X = X / 16


def objective(model, X, y, l2, s=None):
    s = np.ones(len(y)) if s is None else s
    scores = X @ model.coef_.T + model.intercept_
    at = np.searchsorted(model.classes_, y)
    risk = s @ (logsumexp(scores, axis=1) - scores[np.arange(len(y)), at]) / s.sum()
    return risk + l2 / 2 * (model.coef_**2).sum()


def test_nothing_of_the_other_form_survives_a_fit():
    # a certificate of other weights did, and SpectrumDisplay drew the spectrum of a fit before
    model = SLNDClassifier(l2=1e-3, random_state=0).fit(X, y)
    assert model.duality_gap_ <= 1e-4 and not hasattr(model, "eigenvalues_")
    model.set_params(l2=0).fit(X, y)
    assert len(model.eigenvalues_) and not hasattr(model, "duality_gap_") and not hasattr(model, "objective_")
    model.set_params(l2=1e-3).fit(X, y)
    assert model.duality_gap_ <= 1e-4 and not hasattr(model, "eigenvalues_")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_optimum_of_logistic_regression(C, weighted):
    s = np.random.default_rng(3).random(len(y)) + 0.1 if weighted else None
    total = len(y) if s is None else s.sum()
    model = SLNDClassifier(l2=1 / (C * total), tol=1e-8).fit(X, y, s)
    theirs = LogisticRegression(C=C, tol=1e-10, max_iter=5000, solver="newton-cg").fit(X, y, s)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-3 * np.abs(theirs.coef_).max())
    assert model.duality_gap_ <= 1e-8
    assert model.objective_ == pytest.approx(objective(model, X, y, model.l2, s), rel=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("loss", ["auto", "multinomial"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_two_classes_have_one_row_of_weights_and_the_logistic_optimum(C, loss):
    # they had two rows, and scores of two columns, which scikit-learn's meta-estimators took for a label indicator:
    # OneVsRestClassifier ended the process
    rows, labels = scale(X[y < 2]), np.array(["no", "yes"])[y[y < 2]]
    rows = rows[:, np.ptp(rows, axis=0) > 0]
    rows += np.random.default_rng(1).standard_normal(rows.shape)
    model = SLNDClassifier(loss=loss, l2=1 / (C * len(rows)), tol=1e-9, warm_start=True).fit(rows, labels)
    theirs = LogisticRegression(C=C, tol=1e-10, max_iter=5000, solver="newton-cholesky").fit(rows, labels)
    assert model.loss_ == "multinomial" and model.decision_function(rows).shape == (len(rows),)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-4 * np.abs(theirs.coef_).max())
    np.testing.assert_allclose(model.predict_proba(rows), theirs.predict_proba(rows), atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(rows), model.to_sklearn().predict_proba(rows), atol=1e-12)
    margins = np.where(labels == "yes", 1, -1) * model.decision_function(rows)
    assert model.objective_ == pytest.approx(
        np.logaddexp(0, -margins).mean() + model.l2 / 2 * (model.coef_**2).sum(), rel=1e-12)
    assert CalibratedClassifierCV(model, cv=3).fit(rows, labels).score(rows, labels) > 0.8
    assert cross_val_score(model, rows, labels == "yes", scoring="roc_auc", cv=3).min() > 0.8
    both = OneVsRestClassifier(model).fit(rows, np.stack([labels == "yes", labels == "no", rows[:, 0] > 0], axis=1))
    assert both.score(rows, np.stack([labels == "yes", labels == "no", rows[:, 0] > 0], axis=1)) > 0.8
    assert model.fit(rows, labels).n_iter_ == 0                       # goes on from where it is
    assert model.set_params(l2=0.0).fit(rows, labels).coef_.shape == (1, rows.shape[1])
    assert model.set_params(l2=0.1).fit(rows, labels).duality_gap_ <= 1e-9


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("container, dtype", [(np.asarray, np.float32), (sparse.csr_matrix, np.float64)])
def test_two_classes_with_weights(container, dtype, intercept):
    rows, labels = X[y < 2], y[y < 2]
    s = np.random.default_rng(3).random(len(labels)) + 0.1
    model = BSNClassifier(l2=1 / s.sum(), tol=1e-8, fit_intercept=intercept, class_weight={0: 1.0, 1: 3.0})
    model.set_params(l2=1 / (s * np.where(labels == 1, 3.0, 1.0)).sum()).fit(container(rows.astype(dtype)), labels, s)
    theirs = LogisticRegression(tol=1e-10, max_iter=5000, fit_intercept=intercept, class_weight={0: 1.0, 1: 3.0})
    theirs.fit(rows, labels, s)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-3 * np.abs(theirs.coef_).max())
    np.testing.assert_allclose(model.predict_proba(rows), theirs.predict_proba(rows), atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sparse.csr_matrix])
def test_formats_threads_and_the_certificate(container, dtype):
    rows = container(X.astype(dtype))
    models = [BSNClassifier(l2=1e-4, n_jobs=n).fit(rows, y) for n in (1, 2, 3)]
    assert len({m.coef_.tobytes() for m in models}) == 1
    model = models[0]
    exact = rows.toarray() if sparse.issparse(rows) else rows
    assert model.duality_gap_ <= 1e-4 and model.score(rows, y) > 0.97
    assert model.objective_ == pytest.approx(objective(model, exact.astype(float), y, 1e-4), rel=1e-9)


def test_warm_starts_callbacks_and_limits():
    model = SLNDClassifier(l2=1e-4, warm_start=True).fit(X, y)
    cold = model.n_passes_
    assert model.set_params(l2=9e-5).fit(X, y).n_passes_ < cold
    assert model.set_params(l2=0.0, random_state=0).fit(X, y).score(X, y) > 0.9          # and on without a penalty
    seen = []
    stopped = SLNDClassifier(l2=1e-6, callback=lambda m: seen.append(m.score(X, y)) or len(seen) == 3).fit(X, y)
    assert len(seen) == 3 and stopped.score(X, y) == seen[-1]
    with pytest.warns(ConvergenceWarning, match=r"stopped at max_time=0.01 s"):
        SLNDClassifier(l2=1e-8, tol=1e-12, max_time=0.01).fit(X, y)


def test_lines_of_progress(capsys):
    model = SLNDClassifier(l2=1e-3, verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("SLNDClassifier step 0:")
    assert len(lines) == len(model.history_["objective"])


def test_where_a_penalty_means_nothing_it_is_refused():
    iris, species = load_iris(return_X_y=True)
    both = np.stack([species == 0, species < 2], axis=1)
    for parameters, target in (({"loss": "logistic"}, species), ({"loss": "auto"}, both)):
        with pytest.raises(ValueError, match=r"l2=0.1 needs loss='multinomial' .* SmSVMClassifier\(loss='logistic'"):
            SLNDClassifier(l2=0.1, **parameters).fit(iris, target)
    with pytest.raises(ValueError, match="partial_fit takes no l2"):
        SLNDClassifier(l2=0.1).partial_fit(iris, species, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"'l2' parameter of SLNDClassifier must be a float in the range \[0.0, inf\)"):
        SLNDClassifier(l2=-1.0).fit(iris, species)
    assert "l2" not in BalancedSGDClassifier().get_params()


def test_a_refused_fit_leaves_the_last_one():
    iris, species = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SLNDClassifier(l2=1e-2).fit(scale(iris), species)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match=r"l2=0\.01 needs"):
        model.fit(scale(iris), np.stack([species == 0, species < 2], axis=1))
    assert np.array_equal(model.coef_, before) and model.score(scale(iris), species) > 0.9


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("shape", [(60, 5), (30, 50)])
def test_numbers_beyond_single_precision_are_refused_in_words(shape, csr):
    X = 1e150 * np.random.default_rng(0).standard_normal(shape)
    rows = sparse.csr_matrix(X) if csr else X
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="scale the features"):
            SLNDClassifier(loss="multinomial", l2=1e-3).fit(rows, np.arange(len(X)) % 3)
