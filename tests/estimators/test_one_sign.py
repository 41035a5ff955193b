"""Labels of an indicator without a positive, or without a negative: predicted alike in every row, one warning."""

import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import quick_estimators
from ranks_in_threads import on_ranks
from rows_in_files import files_of
from sklearn.exceptions import ConvergenceWarning
from tensors import LIBRARIES

from cmargin import (
    BSNClassifier,
    MarginPursuitClassifier,
    SLNDClassifier,
    SmSVMClassifier,
    SmSVMClassifierCV,
    nested_cross_validation,
)

RNG = np.random.default_rng(3)
X = RNG.standard_normal((200, 5))
# a fold of rows once refused the whole indicator for one rare label: "Label column 2 has no positive sample"
Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0.5, np.zeros(200), np.ones(200)]).astype(int)
MESSAGE = "^Label 2 is absent from all training examples and Label 3 is present in all training examples: "
ALL = [one for one in quick_estimators() if not hasattr(one, "cv")]
OVER_PLACES = [SLNDClassifier(random_state=0, max_passes=3), BSNClassifier(random_state=0, loss="squared"),
               MarginPursuitClassifier(), SmSVMClassifier()]


def fitted(model, X, Y, *weight, **more):
    """The model, and what it warned of besides passes that were too few."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, Y, *weight, **more)
    return model, [one for one in said if not issubclass(one.category, ConvergenceWarning)]


def is_right(model, X=X, Y=Y):
    found = model.predict(X)
    return bool((found[:, 2:] == Y[:, 2:]).all() and (found == Y).mean() > 0.8)


@pytest.mark.parametrize("model", ALL, ids=str)
def test_the_prediction_is_constant_and_one_warning_says_so(model):
    model, said = fitted(model, X, Y)
    assert len(said) == 1 and said[0].category is UserWarning and said[0].filename == __file__
    with pytest.warns(UserWarning, match=MESSAGE):
        warnings.warn(said[0].message, stacklevel=1)
    assert (model.predict(X)[:, 2:] == [0, 1]).all() and (model.predict(100 * X)[:, 2:] == [0, 1]).all()
    assert np.isfinite(model.intercept_).all() and np.abs(model.coef_[2:]).max() < 1e-12
    assert (model.to_sklearn().predict(X) == model.predict(X)).all()


@pytest.mark.parametrize("model", [one for one in ALL if not isinstance(one, SmSVMClassifier)], ids=str)
def test_other_labels_are_trained_as_without_it(model):
    others = fitted(model, X, Y[:, :2])[0].coef_
    np.testing.assert_allclose(fitted(model, X, Y)[0].coef_[:2], others, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "squared", "calibrated_hinge"])
@pytest.mark.parametrize("settings", [{}, {"hessian_refresh": 1}, {"fit_intercept": False},
                                      {"negatives_per_positive": None}], ids=str)
def test_probabilities(loss, settings):
    model, _ = fitted(SLNDClassifier(loss=loss, random_state=0, max_passes=3, **settings), X, Y)
    for shares in (model.predict_proba(X), model.posterior(X)):
        np.testing.assert_allclose(shares[:, 2:], np.tile([0.0, 1.0], (200, 1)), atol=1e-8)
    assert np.isfinite(model.predict_log_proba(X)).all()
    if loss == "logistic":
        np.testing.assert_allclose(model.to_sklearn().predict_proba(X), model.predict_proba(X), atol=1e-12)
    assert (np.sort(model.predict_top_k(X, 4), axis=1) == np.arange(4)).all()


@pytest.mark.parametrize("model", ALL, ids=str)
def test_weights_that_leave_one_sign(model):
    # where some labels are constant among the rows that count, the others are still learned
    weight, few = Y[:, 0].astype(float), [0, 3]
    model, said = fitted(model, X, Y, weight)
    assert "Labels 0, 3 are present in all" in str(said[0].message) and len(said) == 1
    assert (model.predict(X)[:, few] == 1).all() and (model.predict(X)[:, 2] == 0).all()


@pytest.mark.parametrize("model", ALL, ids=str)
def test_all_labels_are_constant(model):
    model, said = fitted(model, X, Y[:, 2:])
    assert len(said) == 1 and (model.predict(X) == [0, 1]).all()


def test_searches_without_a_fit_of_all_rows_say_it_too():
    # nested cross-validation and refit=False said nothing of a label that no row has
    for search in (lambda: nested_cross_validation(X, Y, l2s=[1e-2], outer=2, inner=2),
                   lambda: SmSVMClassifierCV(l2s=[1e-2], cv=2, refit=False).fit(X, Y),
                   lambda: SmSVMClassifierCV(l2s=[1e-2], cv=2).fit(X, Y)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            search()
        assert len(said) == 1 and "there is nothing to learn" in str(said[0].message)


def test_theory_steps_and_a_stop_before_the_first_pass():
    for settings in ({"step_size": "theory"}, {"max_time": 1e-9}):
        model, _ = fitted(SLNDClassifier(random_state=0, **settings), X, Y)
        assert (model.predict(X)[:, 2:] == [0, 1]).all()


@pytest.mark.parametrize("start", ["fit", "partial_fit"])
def test_a_label_that_is_met_later_is_learned(start):
    # From an intercept of log-odds -21 steps would not come back for many calls.
    model, later = SLNDClassifier(random_state=0), np.column_stack([Y[:, :2], X[:, 2:4] > 0]).astype(int)
    if start == "fit":
        fitted(model, X, Y)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")                     # a batch may lack a label
            model.partial_fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    assert is_right(model) and model.predict_proba(X)[:, 2].max() < 1e-8
    for _ in range(10):
        model.partial_fit(X, later)
    assert (model.predict(X) == later).mean(axis=0).min() > 0.9
    again, _ = fitted(SLNDClassifier(random_state=0, warm_start=True), X, Y)
    assert (again.fit(X, later).predict(X) == later).mean(axis=0).min() > 0.9


@pytest.mark.parametrize("model", OVER_PLACES, ids=str)
@pytest.mark.parametrize("kind", ["npy C", "csr npz"])
def test_rows_in_files(model, kind, tmp_path):
    files, weight = files_of(X, kind, tmp_path), np.where(np.arange(200) % 5, 1.0, 0.0)
    model, said = fitted(model, files, Y, weight)
    assert len(said) == 1 and is_right(model)


@pytest.mark.parametrize("model", OVER_PLACES, ids=str)
@pytest.mark.parametrize("weight", [None, (X[:, 0] > -1).astype(float)], ids=["no weights", "weights"])
def test_over_ranks(model, weight):
    def work(comm):
        mine = slice(comm.rank, None, 2)                       # neither rank lacks the labels that both have
        model_here = type(model)(**model.get_params())
        return model_here.fit(X[mine], Y[mine], None if weight is None else weight[mine], comm=comm)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        models = on_ranks(2, work)[0]
    assert sum(one.category is UserWarning for one in said) == 1             # of rank 0
    assert all(is_right(one) for one in models)


def test_a_label_of_one_sign_on_every_rank_but_not_on_all():
    rows = [np.flatnonzero(Y[:, 0] == sign) for sign in (0, 1)]
    models = on_ranks(2, lambda comm: SLNDClassifier(random_state=0).fit(
        X[rows[comm.rank]], Y[rows[comm.rank]][:, :2], comm=comm))[0]
    assert (models[0].predict(X) == Y[:, :2]).mean(axis=0).min() > 0.9


@pytest.mark.parametrize("library", LIBRARIES)
def test_on_a_device(library):
    tensor = LIBRARIES[library]
    model, said = fitted(SmSVMClassifier(), tensor(X), tensor(Y))
    assert len(said) == 1 and is_right(model)


def test_sparse_rows_and_indicators():
    for rows, labels in ((sp.csr_array(X), Y), (X, sp.csr_array(Y)), (sp.csr_array(X), sp.csr_matrix(Y))):
        model, said = fitted(SLNDClassifier(random_state=0), rows, labels)
        assert len(said) == 1 and is_right(model)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no time limits here")
def test_over_workers():
    distributed, da = pytest.importorskip("distributed"), pytest.importorskip("dask.array")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False,
                                  dashboard_address="127.0.0.1:0") as cluster, distributed.Client(cluster):
        there = [da.from_array(one, chunks=(60, one.shape[1])) for one in (X, Y)]
        for model in OVER_PLACES:
            model, said = fitted(model, *there)
            assert sum("nothing to learn" in str(one.message) for one in said) == 1 and is_right(model)
