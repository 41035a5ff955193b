"""Trained models as scikit-learn's objects and, through them, as ONNX: the same predictions without this package."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from estimators import quick_estimators
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from cmargin import BSNClassifier, SLNDClassifier, SmSVMClassifier, SmSVMClassifierCV
from cmargin.baselines import BalancedSGDClassifier

X, Y = blobs(n=300, d=7, k=4)
NEW = np.random.default_rng(11).normal(size=(500, 7)) * 2
LABELS = {"four": Y, "two": np.where(Y == 0, 1, -1), "strings": np.array(["ash", "birch", "elm", "fir"])[Y],
          "indicator": np.stack([Y == 0, Y > 1, Y % 2 == 0], axis=1).astype(int)}


@pytest.fixture(autouse=True)
def short_fits():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def same_predictions(model, twin, rows):
    np.testing.assert_array_equal(twin.predict(rows), model.predict(rows))
    if hasattr(model, "predict_proba") and hasattr(twin, "predict_proba"):
        np.testing.assert_allclose(twin.predict_proba(rows), model.predict_proba(rows), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("model", quick_estimators(), ids=lambda m: repr(m)[:60])
def test_the_twin_of_every_estimator_predicts_the_same(model, labels, dtype):
    if labels == "indicator" and hasattr(model, "cv"):
        pytest.skip("a search takes labels")
    model.fit(X.astype(dtype), LABELS[labels])
    twin = model.to_sklearn()
    parts = twin.estimators_ if isinstance(twin, OneVsRestClassifier) else [twin]
    assert {part.coef_.dtype for part in parts} == {part.intercept_.dtype for part in parts} == {model.coef_.dtype}
    same_predictions(model, twin, NEW.astype(dtype))
    same_predictions(model, twin, sp.csr_matrix(NEW.astype(dtype)))


def test_the_shape_of_the_twin():
    def twin(labels, **parameters):
        return SLNDClassifier(max_passes=2, random_state=3, **parameters).fit(X, LABELS[labels]).to_sklearn()

    assert type(twin("four")) is LogisticRegression and twin("four").coef_.shape == (4, 7)
    assert type(twin("two")) is LogisticRegression
    assert type(twin("two", loss="multinomial")) is LogisticRegression
    assert type(twin("four", loss="logistic").estimators_[3]) is LogisticRegression
    assert type(twin("indicator").estimators_[0]) is LogisticRegression
    assert type(twin("four", loss="squared", negatives_per_positive=None)) is LinearSVC
    assert type(SmSVMClassifier().fit(X, Y).to_sklearn()) is LinearSVC
    assert type(SmSVMClassifier(loss="logistic").fit(X, LABELS["two"]).to_sklearn()) is LogisticRegression


@pytest.mark.parametrize("labels", ["four", "two", "indicator"])
@pytest.mark.parametrize("weight", [None, np.linspace(0.5, 2, len(Y))], ids=["alike", "weighted"])
def test_the_correction_for_drawn_negatives_is_in_the_intercept(labels, weight):
    model = BSNClassifier(loss="logistic", negatives_per_positive=1, random_state=3).fit(X, LABELS[labels], weight)
    assert not np.allclose(model.class_prior_, model.sampled_prior_, rtol=0.05)
    twin = model.to_sklearn()
    same_predictions(model, twin, NEW)
    np.testing.assert_allclose(twin.decision_function(NEW), model.decision_function(NEW), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", ["calibrated_hinge", "squared"])
@pytest.mark.parametrize("labels", ["four", "two", "indicator"])
def test_a_correction_that_is_not_linear_is_refused(loss, labels):
    model = SLNDClassifier(loss=loss, negatives_per_positive=1, random_state=3).fit(X, LABELS[labels])
    with pytest.raises(ValueError, match="correction for the prior is no linear function"):
        model.to_sklearn()
    model.set_params(negatives_per_positive=None).fit(X, LABELS[labels])
    same_predictions(model, model.to_sklearn(), NEW)
    assert not hasattr(model.to_sklearn(), "predict_proba")          # theirs would be other probabilities


@pytest.mark.parametrize("model", [SmSVMClassifier(), SLNDClassifier(loss="logistic", random_state=3),
                                   SmSVMClassifierCV((1e-2,), cv=2)], ids=lambda m: type(m).__name__)
def test_names_of_columns_go_along(model):
    names = list("abcdefg")
    twin = model.fit(X, Y).to_sklearn()
    assert not hasattr(twin, "feature_names_in_") and twin.n_features_in_ == 7
    model.feature_names_in_ = np.array(names, object)
    twin = model.to_sklearn()
    parts = [twin, *getattr(twin, "estimators_", [])]               # which look at the columns, each for itself
    assert all(part.feature_names_in_.tolist() == names and part.n_features_in_ == 7 for part in parts)


def test_the_twin_is_a_model_of_its_own():
    model = SmSVMClassifier().fit(X, Y)
    twin = pickle.loads(pickle.dumps(model.to_sklearn()))
    before, shared = model.predict(NEW), model.to_sklearn()
    model.coef_[:] = 0
    model.classes_[:] = 9
    np.testing.assert_array_equal(shared.predict(NEW), before)
    np.testing.assert_array_equal(twin.predict(NEW), before)
    assert "cmargin" not in pickle.dumps(shared).decode("latin1")


def test_an_estimator_that_was_not_fitted_says_so():
    for model in (SmSVMClassifier(), SLNDClassifier(), SmSVMClassifierCV(), BalancedSGDClassifier()):
        with pytest.raises(ValueError, match="not fitted yet"):
            model.to_sklearn()


# ---------------------------------------------------------------- ONNX, by skl2onnx; nothing of ours is registered

ONNX_MODELS = [SmSVMClassifier(), SmSVMClassifier(loss="logistic"), SLNDClassifier(random_state=3),
               SLNDClassifier(loss="logistic", random_state=3)]


def run_onnx(onnx, rows):
    return pytest.importorskip("onnxruntime").InferenceSession(onnx.SerializeToString()).run(None, {"X": rows})


@pytest.mark.parametrize("model", ONNX_MODELS, ids=str)
@pytest.mark.parametrize("labels", ["four", "two", "strings"])
def test_onnxruntime_agrees(model, labels, dtype):
    skl2onnx, rows = pytest.importorskip("skl2onnx"), NEW.astype("f")
    twin = model.fit(X.astype(dtype), LABELS[labels]).to_sklearn()
    predicted, more = run_onnx(skl2onnx.to_onnx(twin, X[:1].astype("f")), rows)
    np.testing.assert_array_equal(predicted, model.predict(rows))
    if hasattr(model, "predict_proba"):
        found = np.array([[row[label] for label in model.classes_] for row in more])
        np.testing.assert_allclose(found, model.predict_proba(rows), atol=1e-5)
    if dtype == np.float64 and hasattr(twin, "predict_proba"):       # in doubles, of what has probabilities
        predicted, found = run_onnx(skl2onnx.to_onnx(twin, X[:1], options={"zipmap": False}), NEW)
        np.testing.assert_array_equal(predicted, model.predict(NEW))
        np.testing.assert_allclose(found, twin.predict_proba(NEW), atol=1e-12)


def test_onnx_of_a_label_indicator():
    skl2onnx, rows = pytest.importorskip("skl2onnx"), NEW.astype("f")
    model = SLNDClassifier(random_state=3).fit(X.astype("f"), LABELS["indicator"])
    onnx = skl2onnx.to_onnx(model.to_sklearn(), rows[:1])
    np.testing.assert_array_equal(run_onnx(onnx, rows)[0], model.predict(rows))
    # of an indicator without probabilities skl2onnx compares scores with 1/2: label by label it is right
    model = SmSVMClassifier().fit(X.astype("f"), LABELS["indicator"])
    for c, one in enumerate(model.to_sklearn().estimators_):
        np.testing.assert_array_equal(run_onnx(skl2onnx.to_onnx(one, rows[:1]), rows)[0], model.predict(rows)[:, c])
