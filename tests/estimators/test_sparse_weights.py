"""`sparsify` and `densify`, the probabilities of SmSVM's logistic loss, intercepts: as scikit-learn has them."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from estimators import quick_estimators
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from cmargin import SLNDClassifier, SmSVMClassifier
from cmargin.export import load_liblinear, save_liblinear

X, Y = blobs(n=200, d=9, k=3)
INDICATOR = np.stack([Y == 0, Y > 0], axis=1).astype(int)
LINEAR = [model for model in quick_estimators() if not hasattr(model, "cv")]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("model", LINEAR, ids=lambda model: repr(model)[:60])
@pytest.mark.parametrize("labels", [Y, Y == 0, INDICATOR], ids=["three", "two", "indicator"])
def test_a_matrix_of_weights_predicts_the_same(model, labels):
    if labels.ndim == 1 and labels.dtype == bool:
        labels = labels.astype(int)
    model.fit(X, labels)
    dense, scores = model.coef_.copy(), model.decision_function(X)
    assert model.sparsify() is model and sp.issparse(model.coef_)
    for copy in (model, pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(copy.decision_function(X), scores, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(copy.predict(sp.csr_matrix(X)), copy.predict(X))
    np.testing.assert_array_equal(model.to_sklearn().predict(X), model.predict(X))
    assert model.densify() is model and np.array_equal(model.coef_, dense)


@pytest.mark.parametrize("model", [SmSVMClassifier(warm_start=True), SLNDClassifier(warm_start=True, random_state=0)],
                         ids=["SmSVM", "SLND"])
def test_training_goes_on_from_a_matrix_of_weights(model):
    model.fit(X, Y)
    again = pickle.loads(pickle.dumps(model)).fit(X, Y)
    assert np.array_equal(model.sparsify().fit(X, Y).coef_, again.coef_)
    model.sparsify()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, Y[1:])
    assert sp.issparse(model.coef_)                       # as it was
    assert np.array_equal(model.densify().coef_, again.coef_)


def test_partial_fit_goes_on_from_a_matrix_of_weights():
    model = SLNDClassifier(random_state=0).partial_fit(X, Y, classes=[0, 1, 2])
    again = pickle.loads(pickle.dumps(model)).partial_fit(X, Y)
    assert np.array_equal(model.sparsify().partial_fit(X, Y).coef_, again.coef_)


def test_rows_beyond_the_range_of_doubles_and_text_of_liblinear(tmp_path):
    model = SmSVMClassifier(l1=0.05).fit(X, Y)
    huge = X.copy()
    huge[0] = 1e308
    scores = model.decision_function(huge)
    np.testing.assert_allclose(model.sparsify().decision_function(huge), scores, rtol=1e-12)
    assert 0 < model.coef_.nnz < model.coef_.shape[0] * model.coef_.shape[1]
    save_liblinear(model, tmp_path / "model")
    np.testing.assert_array_equal(load_liblinear(tmp_path / "model").predict(X), model.predict(X))


def test_there_is_nothing_to_make_a_matrix_of_before_a_fit():
    for method in ("sparsify", "densify"):
        with pytest.raises(NotFittedError):
            getattr(SmSVMClassifier(), method)()


def test_probabilities_of_the_logistic_loss():
    model = SmSVMClassifier(loss="logistic", C=1.0, tol=1e-10)
    theirs = LogisticRegression(tol=1e-10, max_iter=1000).fit(X, Y == 0)
    np.testing.assert_allclose(model.fit(X, Y == 0).predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    shares = model.fit(X, Y).predict_proba(X)
    odds = expit(model.decision_function(X))
    np.testing.assert_allclose(shares, odds / odds.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(model.fit(X, INDICATOR).predict_proba(X), expit(model.decision_function(X)))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_hinge_has_no_probabilities(loss):
    for model in (SmSVMClassifier(loss=loss), SmSVMClassifier(loss=loss).fit(X, Y)):
        assert not hasattr(model, "predict_proba") and not hasattr(model, "predict_log_proba")
        with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as refused:
            model.predict_proba(X)
        assert "not available for loss" in str(refused.value.__cause__)


def test_the_intercepts_of_the_penalised_optimum_are_those_of_logistic_regression():
    # a softmax does not tell intercepts that are all larger by one number: ours added up to anything
    model = SLNDClassifier(l2=1 / len(X), tol=1e-10).fit(X, Y)
    assert abs(model.intercept_.sum()) < 1e-12
    np.testing.assert_allclose(model.intercept_, LogisticRegression(tol=1e-10, max_iter=2000).fit(X, Y).intercept_,
                               atol=1e-4)
