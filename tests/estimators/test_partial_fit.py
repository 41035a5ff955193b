"""Batches that come one after the other: those that weigh nothing, and classes that join."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from estimators import quick_estimators
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from tensors import LIBRARIES

from cmargin import SLNDClassifier

BY_PARTS = [one for one in quick_estimators() if hasattr(one, "partial_fit")]
LOSSES = [{}, {"loss": "logistic"}, {"loss": "squared"}, {"loss": "calibrated_hinge"}]
X, Y = blobs(n=600, d=6, k=4, seed=2)


def state(model):
    return {name: np.asarray(value).tobytes() for name, value in vars(model).items() if name != "history_"}


def batches(n=6):
    return np.array_split(np.arange(len(X)), n)


def same(a, b):
    return np.array_equal(a.coef_, b.coef_) and np.array_equal(a.intercept_, b.intercept_) and \
        np.array_equal(a.class_prior_, b.class_prior_)


# ---------------------------------------------------------------- batches without weight

@pytest.mark.parametrize("model", BY_PARTS, ids=str)
def test_a_batch_of_weight_zero_changes_nothing(model):
    # A stream whose weights are a filter has such batches: "Sample weights must contain at least one non-zero number"
    model = clone(model).partial_fit(X[:200], Y[:200], classes=range(4))
    before = state(model)
    assert model.partial_fit(X[200:300], Y[200:300], sample_weight=np.zeros(100)) is model
    assert state(model) == before


@pytest.mark.parametrize("model", BY_PARTS, ids=str)
@pytest.mark.parametrize("first", ["classes", "indicator"])
def test_so_does_one_that_comes_first(model, first):
    labels = Y if first == "classes" else (Y[:, None] == np.arange(4)).astype(int)
    there, late = clone(model), clone(model)
    more = {"classes": range(4)} if first == "classes" else {}
    late.partial_fit(X[:50], labels[:50], sample_weight=np.zeros(50), **more)
    assert not late.coef_.any() and late.coef_.shape == (4, 6) and np.isfinite(late.decision_function(X)).all()
    assert late.predict(X).shape == labels.shape and np.isfinite(late.predict_proba(X)).all()
    late.partial_fit(X[:50], labels[:50], sample_weight=np.zeros(50))
    there.partial_fit(X[50:200], labels[50:200], **more)
    late.partial_fit(X[50:200], labels[50:200])
    assert same(there, late) and there.n_iter_ == late.n_iter_


def test_class_weights_of_zero_leave_no_weight_either():
    model = SLNDClassifier(random_state=0, class_weight={0: 0.0}).partial_fit(X, Y, classes=range(4))
    before = state(model)
    model.partial_fit(X[Y == 0], Y[Y == 0])
    assert state(model) == before


def test_weights_that_are_none_are_still_refused():
    model = SLNDClassifier(random_state=0).partial_fit(X, Y, classes=range(4))
    for weight, text in ((np.full(600, -1.0), "Negative values"), (np.full(600, np.nan), "NaN"),
                         (np.zeros(3), "sample_weight.shape")):
        with pytest.raises(ValueError, match=text):
            model.partial_fit(X, Y, sample_weight=weight)
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.fit(X, Y, np.zeros(600))
    with pytest.raises(NotFittedError):
        SLNDClassifier().predict(X)


@pytest.mark.parametrize("library", LIBRARIES)
def test_on_a_device(library):
    tensor = LIBRARIES[library]
    model = SLNDClassifier(random_state=0).partial_fit(tensor(X), tensor(Y), classes=range(4))
    before = state(model)
    assert state(model.partial_fit(tensor(X), tensor(Y), sample_weight=tensor(np.zeros(600)))) == before


# ---------------------------------------------------------------- classes that join

@pytest.mark.parametrize("settings", LOSSES, ids=str)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_before", [2, 3])
def test_classes_join_where_they_are_given_along_with_the_others(settings, sparse, n_before):
    # A store gets a new category, and one had to train anew with all rows ever seen.
    rows = sp.csr_array(X) if sparse else X
    known = np.flatnonzero(n_before > Y)
    model = SLNDClassifier(random_state=0, **settings)
    for part in np.array_split(known, 4):
        model.partial_fit(rows[part], Y[part], classes=range(n_before))
    before = model.predict(rows)
    model.partial_fit(rows[known], Y[known], classes=range(4))
    assert model.coef_.shape == (4, 6) and model.classes_.tolist() == [0, 1, 2, 3]
    assert (model.predict(rows) < n_before).all()                    # none of them is predicted before it was met
    assert (model.predict(rows) == before).mean() > 0.9              # and what was learned is still known
    for part in batches() * 5:
        model.partial_fit(rows[part], Y[part])
    whole = SLNDClassifier(random_state=0, **settings).fit(rows, Y).score(rows, Y)
    assert model.score(rows, Y) > whole - 0.05
    assert (np.bincount(model.predict(rows), minlength=4) > 0).all()
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1)
    if not settings:
        assert model.loss_ == "multinomial"


@pytest.mark.parametrize("model", BY_PARTS, ids=str)
def test_every_estimator_takes_them(model):
    model = clone(model).partial_fit(X[Y < 3], Y[Y < 3], classes=range(3))
    for part in batches() * 3:
        model.partial_fit(X[part], Y[part], classes=range(4))
    assert model.score(X, Y) > 0.6 and model.coef_.shape == (4, 6)


def test_shares_of_the_classes_are_those_of_all_batches():
    for settings in LOSSES[:2]:
        model = SLNDClassifier(random_state=0, **settings).partial_fit(X[Y < 2], Y[Y < 2], classes=[0, 1])
        model.partial_fit(X[Y >= 2], Y[Y >= 2], classes=range(4))
        np.testing.assert_allclose(model.class_prior_, np.bincount(Y) / len(Y))


def test_names_that_come_between_those_there_are():
    names = np.array(["elm", "ash", "oak", "beech"])[Y]
    model = SLNDClassifier(random_state=0, loss="logistic")
    model.partial_fit(X[Y < 2], names[Y < 2], classes=["ash", "elm"])
    before, places = model.decision_function(X), [0, 2]
    model.partial_fit(X[:1], names[:1], classes=["ash", "beech", "elm", "oak"], sample_weight=[0.0])
    assert model.classes_.tolist() == ["ash", "beech", "elm", "oak"]
    np.testing.assert_allclose(model.decision_function(X)[:, places], np.column_stack([-before, before]), atol=1e-9)
    assert np.isin(model.predict(X), ["ash", "elm"]).all()
    for part in batches() * 3:
        model.partial_fit(X[part], names[part])
    assert model.score(X, names) > 0.6


def test_labels_of_an_indicator_join():
    labels = np.column_stack([X[:, 0] > 0, X[:, 1] > 0, X[:, 2] > 0]).astype(int)
    model = SLNDClassifier(random_state=0).partial_fit(X, labels[:, :2])
    with pytest.raises(ValueError, match=r"y has 3 label columns where 2 are known; .*classes=np.arange\(n_labels\)"):
        model.partial_fit(X, labels)
    for part in batches():
        model.partial_fit(X[part], labels[part], classes=np.arange(3))
    assert (model.predict(X) == labels).mean(axis=0).min() > 0.9


def test_after_a_fit_with_inverses_of_every_class_and_after_weights_by_hand():
    few = Y < 3
    model = SLNDClassifier(loss="logistic", hessian_refresh=1, max_passes=3, random_state=0).fit(X[few], Y[few])
    by_hand = SLNDClassifier(random_state=0)
    by_hand.classes_, by_hand.coef_, by_hand.intercept_ = model.classes_, model.coef_, model.intercept_
    for one in (model, by_hand):
        for part in batches() * 3:
            one.partial_fit(X[part], Y[part], classes=range(4))
        assert one.score(X, Y) > 0.6


def test_what_is_refused_says_what_to_do_and_changes_nothing():
    model = SLNDClassifier(random_state=0).partial_fit(X[Y < 2], Y[Y < 2], classes=[0, 1])
    before = state(model)
    for more, text in ((({}), "previously unseen labels.*; new classes join where partial_fit is given classes="),
                       ({"classes": [1, 2, 3]}, "is not the same as on last call.*; new classes join where"),
                       ({"classes": range(4), "sample_weight": -np.ones(600)}, "Negative values")):
        with pytest.raises(ValueError, match=text):
            model.partial_fit(X, Y, **more)
        assert state(model) == before


def test_nothing_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SLNDClassifier(random_state=0).partial_fit(X[Y < 2], Y[Y < 2], classes=[0, 1])
        model.partial_fit(X, Y, classes=range(4)).partial_fit(X, Y, sample_weight=np.zeros(600))


@pytest.mark.parametrize("labels", [Y, np.column_stack([Y > 0, Y > 1]).astype(int)], ids=["classes", "labels"])
def test_a_warning_is_at_the_line_that_called(labels):
    weight = None if labels.ndim == 1 else np.ones(labels.shape)
    given = {"classes": range(4)} if labels.ndim == 1 else {}
    with pytest.warns(ConvergenceWarning) as said:
        SLNDClassifier(max_time=1e-9, random_state=0).partial_fit(X, labels, sample_weight=weight, **given)
    assert {one.filename for one in said} == {__file__}
