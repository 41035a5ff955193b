"""Searches by leaving every row out: scores are those of as many refits, and what no bound tells is refused."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score
from sklearn.model_selection import LeaveOneGroupOut, LeaveOneOut, cross_val_predict
from sklearn.preprocessing import scale

from cmargin import SmSVMClassifier, SmSVMClassifierCV

CS = [0.003, 0.1, 3.0]
every_loss = pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])


def some_of(load, step):
    X, y = load(return_X_y=True)
    return scale(X)[::step], y[::step]


def refitted(X, y, loss, C):
    """Predictions by fits to all other rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")          # some stop at a gap a little above
        return cross_val_predict(SmSVMClassifier(C=C, loss=loss, tol=1e-9), X, y, cv=LeaveOneOut())


@every_loss
@pytest.mark.parametrize("load, step", [(load_breast_cancer, 5), (load_iris, 1), (load_wine, 1)])
def test_scores_are_those_of_refits(loss, load, step):
    X, y = some_of(load, step)
    search = SmSVMClassifierCV(Cs=CS, cv="loo", estimator=SmSVMClassifier(loss=loss)).fit(X, y)
    expected = [(refitted(X, y, loss, C) == y).mean() for C in CS]
    np.testing.assert_allclose(search.scores_[0, :, 0], expected, rtol=1e-12)
    assert search.scores_.shape == (1, 3, 1) and search.n_splits_ == 1
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], search.scores_[0, :, 0])
    np.testing.assert_array_equal(search.cv_results_["split0_test_score"], search.scores_[0, :, 0])
    assert search.best_score_ == max(expected) and search.C_ == CS[int(np.argmax(expected))]
    assert (search.cv_results_["max_duality_gap"] <= search._estimator.tol).all()
    again = SmSVMClassifier(C=search.C_, loss=loss).fit(X, y)
    np.testing.assert_array_equal(search.coef_, again.coef_)


def test_scorers_of_predictions_and_weights():
    X, y = some_of(load_breast_cancer, 5)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    found = [SmSVMClassifier(C=C).fit(X, y, weight).leave_one_out(X, y, weight) for C in CS]

    def scores(scoring, X=X):
        return SmSVMClassifierCV(Cs=CS, cv="loo", scoring=scoring).fit(X, y, weight).scores_[0, :, 0]

    np.testing.assert_allclose(scores(None), [one.score for one in found])
    np.testing.assert_allclose(scores("accuracy"), [one.score for one in found])
    np.testing.assert_allclose(scores("f1"), [f1_score(y, one.predictions, sample_weight=weight) for one in found])
    np.testing.assert_array_equal(scores("f1", sparse.csr_matrix(X)), scores("f1"))
    with config_context(enable_metadata_routing=True):
        np.testing.assert_allclose(scores(None), [one.score for one in found])


def test_labels_of_an_indicator_are_right_together():
    X, y = some_of(load_breast_cancer, 5)
    Y = np.c_[y, X[:, 1] > 0]
    search = SmSVMClassifierCV([1e-2, 1e-4], cv="loo").fit(X, Y)
    expected = [SmSVMClassifier(l2=l2).fit(X, Y).leave_one_out(X, Y) for l2 in search.l2s]
    np.testing.assert_array_equal(search.scores_[0, :, 0], [one.score for one in expected])
    macro = SmSVMClassifierCV([1e-2, 1e-4], cv="loo", scoring="f1_macro").fit(X, Y)
    np.testing.assert_allclose(macro.scores_[0, :, 0],
                               [f1_score(Y, one.predictions, average="macro") for one in expected])


@pytest.mark.parametrize("chosen, what", [
    ({"l1s": [0.0, 1e-3]}, "'l1s' parameter"),
    ({"l2s": [0.0, 1e-3]}, "'l2s' parameter"),
    ({"Cs": [1.0, np.inf]}, "'Cs' parameter"),
    ({"standardize": True}, "'standardize' parameter"),
    ({"one_standard_error": True}, "'one_standard_error' parameter"),
    ({"scoring": "roc_auc"}, "scorer of predictions"),
    ({"scoring": lambda model, X, y: 0.0}, "scorer of predictions"),
    ({"cv": "lot"}, "'cv' parameter"),
])
def test_what_is_refused(chosen, what):
    X, y = some_of(load_iris, 5)
    with pytest.raises(ValueError, match=what):
        SmSVMClassifierCV(**{"cv": "loo", **chosen}).fit(X, y)


def test_groups_are_not_ignored():
    X, y = some_of(load_iris, 5)
    groups = np.arange(len(y)) % 3
    with pytest.raises(ValueError, match="not groups"):
        SmSVMClassifierCV(cv="loo").fit(X, y, groups=groups)
    assert SmSVMClassifierCV(cv=LeaveOneGroupOut()).fit(X, y, groups=groups).scores_.shape == (3, 6, 1)


def test_a_class_of_one_row_is_said_and_scored_as_wrong():
    X, y = some_of(load_iris, 3)
    y = np.where(np.arange(len(y)) == 4, "rare", y.astype(str))
    with pytest.warns(UserWarning, match="Class 'rare' has one row") as said:
        search = SmSVMClassifierCV([1e-2], cv="loo").fit(X, y)
    assert len(said) == 1
    assert search.scores_[0, 0, 0] == SmSVMClassifier(l2=1e-2).fit(X, y).leave_one_out(X, y).score < 1


def test_time_ends_it_and_a_checkpoint_keeps_what_was_scored(tmp_path):
    X, y = some_of(load_wine, 1)
    search = SmSVMClassifierCV(cv="loo", max_time=1e-6, checkpoint=tmp_path / "scores")
    with pytest.warns(ConvergenceWarning, match="6 of 6 fits"):
        search.fit(X, y)
    assert np.isnan(search.scores_).all() and search.score(X, y) > 0.9
    whole = SmSVMClassifierCV(cv="loo", checkpoint=tmp_path / "others").fit(X, y)
    again = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(again.scores_, whole.scores_)
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))
    only = SmSVMClassifierCV(cv="loo", refit=False).fit(X, y)
    np.testing.assert_array_equal(only.scores_, whole.scores_)
    assert not hasattr(only, "predict")
