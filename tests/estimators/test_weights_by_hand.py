"""Weights set by hand, averaged by a federation or read from a file: predictions, and fits that go on from them."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from estimators import quick_estimators
from ranks_in_threads import on_ranks
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import softmax
from tensors import LIBRARIES

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier, SmSVMClassifierCV
from cmargin.export import save_liblinear

ALL = [one for one in quick_estimators() if not hasattr(one, "cv")]
X, Y = blobs(n=300, d=6, k=3)
NAMES = np.array(["ash", "elm", "oak"])


def by_hand(model, n_classes):
    """A ``model`` with the three attributes alone, of a logistic regression; that, and labels."""
    model, y = clone(model), NAMES[np.minimum(Y, n_classes - 1)]
    other = LogisticRegression().fit(X, y)
    model.classes_, model.coef_, model.intercept_ = other.classes_, other.coef_, other.intercept_
    return model, other, y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", ALL, ids=str)
def test_predictions_need_three_attributes(model, n_classes, tmp_path):
    # every estimator raised AttributeError for n_features_in_, then for _multilabel, loss_ and the priors
    model, other, y = by_hand(model, n_classes)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    np.testing.assert_array_equal(model.predict(sp.csr_array(X)), other.predict(X))
    odds = other.decision_function(X)
    assert model.score(X, y) == other.score(X, y)
    np.testing.assert_array_equal(model.to_sklearn().predict(X), other.predict(X))
    save_liblinear(other_labels(model, n_classes), tmp_path / "model")
    model.classes_ = other.classes_
    if getattr(model, "loss_", getattr(model, "loss", "logistic")) in ("auto", "logistic", "multinomial"):
        np.testing.assert_allclose(model.decision_function(X), odds)
    np.testing.assert_array_equal(model.predict_top_k(X, 2)[:, 0], other.predict(X))
    if hasattr(model, "posterior"):
        assert np.isfinite(model.posterior(X)).all() and np.isfinite(model.scores(X)).all()
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    with pytest.raises(ValueError, match=r"X has 4 features, but .* is expecting 6 features as input"):
        model.predict(X[:, :4])
    assert model.sparsify().predict(X).tolist() == other.predict(X).tolist()


def other_labels(model, n_classes):
    model.classes_ = np.arange(n_classes)
    return model


def test_a_search_predicts_by_them_too():
    for loss in ("hinge", "logistic"):
        search, other, y = by_hand(SmSVMClassifierCV(estimator=SmSVMClassifier(loss=loss), l2s=(1e-2,), cv=2), 2)
        fitted = clone(search).fit(X, y)
        fitted.coef_, fitted.intercept_ = other.coef_, other.intercept_
        for one in (search, fitted):
            np.testing.assert_array_equal(one.predict(X), other.predict(X))
            np.testing.assert_allclose(one.decision_function(X), other.decision_function(X))
            np.testing.assert_array_equal(one.to_sklearn().predict(X), other.predict(X))
            assert one.score(X, y) == other.score(X, y)
        if loss == "logistic":
            np.testing.assert_allclose(search.predict_proba(X), other.predict_proba(X))


def test_probabilities_are_those_of_the_loss():
    model, other, _ = by_hand(SLNDClassifier(), 3)
    np.testing.assert_allclose(model.predict_proba(X), softmax(other.decision_function(X)))
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X))
    np.testing.assert_allclose(by_hand(SLNDClassifier(), 2)[0].predict_proba(X), by_hand(SLNDClassifier(), 2)[1]
                               .predict_proba(X))
    np.testing.assert_allclose(by_hand(SmSVMClassifier(loss="logistic"), 2)[0].predict_proba(X),
                               by_hand(SmSVMClassifier(), 2)[1].predict_proba(X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("order", ["C", "F", "integers", "read-only", "single"])
@pytest.mark.parametrize("model", ALL, ids=str)
def test_a_warm_start_goes_on_from_them(model, order, n_classes):
    model, other, y = by_hand(clone(model).set_params(warm_start=True), n_classes)
    changed = {"C": np.ascontiguousarray, "F": np.asfortranarray, "integers": lambda w: np.rint(w).astype(int),
               "read-only": np.copy, "single": np.float32}[order]
    model.coef_, model.intercept_ = changed(model.coef_), changed(model.intercept_)
    if order == "read-only":
        model.coef_.flags.writeable = model.intercept_.flags.writeable = False
    before = model.coef_.copy()
    model.fit(X, y)
    assert model.score(X, y) > other.score(X, y) - 0.1 and model.n_features_in_ == 6
    assert model.coef_.dtype == np.float64
    np.testing.assert_array_equal(before, changed(other.coef_))


def test_a_warm_start_at_the_optimum_is_there_at_once():
    cold = SmSVMClassifier(loss="logistic", l2=1e-2).fit(X, Y)
    model = SmSVMClassifier(loss="logistic", l2=1e-2, warm_start=True)
    model.classes_, model.coef_, model.intercept_ = cold.classes_, cold.coef_, cold.intercept_
    assert model.fit(X, Y).n_iter_ < cold.n_iter_ and (model.duality_gap_ <= model.tol).all()


@pytest.mark.parametrize("model", [one for one in ALL if hasattr(one, "partial_fit")], ids=str)
def test_partial_fit_goes_on_from_them(model):
    model, other, y = by_hand(model, 3)
    for rows in np.array_split(np.arange(300), 3):
        model.partial_fit(X[rows], y[rows])
    assert model.score(X, y) > other.score(X, y) - 0.1 and np.isfinite(model.predict_proba(X)).all()


def test_weights_that_do_not_fit_are_refused_in_words():
    model, _, y = by_hand(SmSVMClassifier(warm_start=True), 3)
    model.coef_ = model.coef_[:2]
    with pytest.raises(ValueError, match=r"needs coef_ and intercept_ of 3 row\(s\) for 3 classes; got"):
        model.fit(X, y)


@pytest.mark.parametrize("model", ALL, ids=str)
def test_a_warm_start_takes_lists_and_names_what_is_not_set(model):
    # AttributeErrors, of numpy's names or ours
    model, _, y = by_hand(clone(model).set_params(warm_start=True), 3)
    listed = clone(model)
    listed.coef_, listed.intercept_ = model.coef_.tolist(), model.intercept_.tolist()
    listed.classes_ = list(model.classes_)
    np.testing.assert_array_equal(listed.fit(X, y).coef_, clone_with_weights(model).fit(X, y).coef_)
    for name in ("intercept_", "classes_"):
        short = clone_with_weights(model)
        delattr(short, name)
        with pytest.raises(ValueError, match=f"goes on from coef_, intercept_, classes_.*; {name} is not set"):
            short.fit(X, y)
    model.coef_ = model.coef_[0]
    with pytest.raises(ValueError, match=r"needs coef_ of 2 dimensions; got shape \(6,\)"):
        model.fit(X, y)


def clone_with_weights(model):
    other = clone(model)
    other.coef_, other.intercept_, other.classes_ = model.coef_, model.intercept_, model.classes_
    return other


def test_means_of_models_of_several_clients():
    # each round the server sets the mean of what the clients have come to
    clients = [SLNDClassifier(random_state=k, max_passes=3) for k in range(3)]
    server = SLNDClassifier()
    for _ in range(3):
        for k, client in enumerate(clients):
            client.partial_fit(X[k::3], Y[k::3], classes=[0, 1, 2])
        server.classes_ = clients[0].classes_
        server.coef_, server.intercept_ = (np.mean([getattr(one, name) for one in clients], axis=0)
                                           for name in ("coef_", "intercept_"))
        for client in clients:
            client.coef_, client.intercept_ = server.coef_, server.intercept_
    assert server.score(X, Y) > LogisticRegression().fit(X, Y).score(X, Y) - 0.05


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_on_a_device(library):
    for model in (SLNDClassifier(), SmSVMClassifier(), MarginPursuitClassifier()):
        model, other, _ = by_hand(model, 3)
        model.coef_ = np.asfortranarray(model.coef_)
        np.testing.assert_array_equal(model.predict(LIBRARIES[library](X)), other.predict(X))


def test_over_ranks():
    def work(comm):
        model, other, y = by_hand(SLNDClassifier(warm_start=True, random_state=0, max_passes=2), 3)
        return model.fit(X[comm.rank::2], y[comm.rank::2], comm=comm).score(X, y) - other.score(X, y)

    assert min(on_ranks(2, work)[0]) > -0.05


@pytest.mark.parametrize("loss", ["multinomial", "logistic"])
def test_predictions_hold_a_block_and_what_they_return(loss):
    # scores of all rows and classes were made, as doubles, and copied by softmax: five times what was returned
    rng = np.random.default_rng(0)
    X, k = rng.standard_normal((20_000, 10), np.float32), 300
    model = SLNDClassifier(loss=loss, n_jobs=2)
    model.coef_, model.intercept_ = rng.standard_normal((k, 10), np.float32), np.zeros(k, np.float32)
    model.classes_, model.loss_ = np.arange(k), loss
    scores = 4 * len(X) * k
    for method, returned in ((model.predict, 8 * len(X)), (lambda X: model.predict_top_k(X, 5), 2 * 8 * 5 * len(X)),
                             (model.decision_function, scores), (model.predict_proba, scores)):
        if method == model.predict_proba and loss == "logistic":
            continue                                                       # joined from batches
        tracemalloc.start()
        result = method(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < returned + 5e6, (method, peak, returned)
        assert result.dtype == (np.float32 if returned == scores else np.int64)
