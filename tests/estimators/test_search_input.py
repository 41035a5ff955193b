"""Both searches for penalties: folds and weights as users have them, and what an interrupt leaves."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from cmargin import Checkpoint, SLNDClassifierCV, SmSVMClassifier, SmSVMClassifierCV
from cmargin._estimators.search import path_fold

X, y = load_iris(return_X_y=True)
n = len(y)
EVEN, ODD = np.arange(0, n, 2), np.arange(1, n, 2)
L2S = [1e-1, 1e-3]
searches = pytest.mark.parametrize("search", [SmSVMClassifierCV(L2S, cv=3), SLNDClassifierCV(L2S, cv=3),
                                              SLNDClassifierCV(L2S, cv=3, scoring="neg_log_loss")],
                                   ids=["smsvm", "slnd", "slnd, log loss"])


@searches
@pytest.mark.parametrize("copies", [False, True], ids=["in place", "copied"])
def test_rows_may_be_counted_from_the_end(search, copies, monkeypatch):
    # only where rows were copied
    monkeypatch.setattr(path_fold, "is_small", lambda source: copies)
    plain = search.set_params(cv=[(EVEN, ODD)]).fit(X, y).scores_
    for cv in ([(EVEN - n, ODD - n)], [(EVEN.tolist(), ODD.astype(np.uint16))], [(EVEN - n, ODD)]):
        np.testing.assert_array_equal(search.set_params(cv=cv).fit(X, y).scores_, plain)


@searches
@pytest.mark.parametrize("cv, match", [
    ([(EVEN + n, ODD)], "whole numbers below the 150 rows"), ([(EVEN, ODD - 2 * n)], "whole numbers"),
    ([(EVEN.astype(float), ODD)], "whole numbers"), ([(EVEN[:, None], ODD)], "whole numbers"), ([], "makes no folds"),
    ([(EVEN, ODD), (EVEN[:0], ODD)], "fold 2 without training rows"),
], ids=["beyond", "before", "floats", "two dimensions", "none", "empty"])
def test_folds_of_no_such_rows_are_refused(search, cv, match):
    # in whatever words NumPy had, an empty fold as one with too large values in X
    search = clone(search).set_params(cv=cv)
    with pytest.raises(ValueError, match=match):
        search.fit(X, y)
    assert not hasattr(search, "scores_")


@searches
def test_a_fold_that_holds_out_nothing_has_no_score(search):
    with pytest.warns(UserWarning) as said:
        search.set_params(cv=[(EVEN, ODD[:0]), (EVEN, ODD)]).fit(X, y)
    assert len(said) == 1 and "Scores are NaN in folds 1 of 2" in str(said[0].message)
    assert np.isnan(search.scores_[0]).all() and np.isfinite(search.scores_[1]).all()


@searches
def test_weights_of_any_size_score_alike(search):
    # sums of large ones were infinite, scores NaN; C was a division by 0 beside small ones
    weights = np.random.default_rng(0).integers(1, 3, n).astype(float)
    plain = search.set_params(cv=3).fit(X, y, weights).scores_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (2.0**1022, 2.0**-1074):
            np.testing.assert_allclose(search.fit(X, y, weights * size).scores_, plain, rtol=1e-12)
    assert search.C_ > 1e300


@pytest.mark.parametrize("estimator", [SmSVMClassifier(), SmSVMClassifier(max_time=1000)], ids=["paths", "one by one"])
@pytest.mark.parametrize("kind", [SmSVMClassifierCV, SLNDClassifierCV])
def test_an_interrupt_leaves_the_scores_so_far_in_the_checkpoint(kind, estimator, tmp_path):
    # what was scored since the last time that one was due, thirty seconds ago or at the beginning, was lost
    calls = []

    def scoring(model, rows, labels):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return model.score(rows, labels)

    named = {"estimator": estimator} if kind is SmSVMClassifierCV else {}
    search = kind(L2S, cv=4, scoring=scoring, checkpoint=Checkpoint(tmp_path / "search", seconds=1000.0), **named)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert (tmp_path / "search").exists() and np.isfinite(search.scores_).sum() == 5 and not hasattr(search, "coef_")
    search.fit(X, y)
    assert len(calls) == 6 + 3 and not (tmp_path / "search").exists()
    np.testing.assert_array_equal(search.scores_, kind(L2S, cv=4, **named).fit(X, y).scores_)


@pytest.mark.parametrize("kind", [SmSVMClassifierCV, SLNDClassifierCV])
def test_an_interrupt_of_the_last_fit_leaves_all_scores_in_the_checkpoint(kind, tmp_path, monkeypatch):
    calls = []

    def scoring(model, rows, labels):
        calls.append(1)
        return model.score(rows, labels)

    def interrupted(*_):
        raise KeyboardInterrupt

    search = kind(L2S, cv=3, scoring=scoring, checkpoint=Checkpoint(tmp_path / "search", seconds=1000.0))
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(kind, "_refitted", interrupted)
        search.fit(X, y)
    assert search.fit(X, y).coef_.shape == (3, 4) and len(calls) == 6


@pytest.mark.parametrize("search", [SmSVMClassifierCV(L2S, cv=3, estimator=SmSVMClassifier(loss="logistic")),
                                    SLNDClassifierCV(L2S, cv=3)], ids=["smsvm", "slnd"])
def test_weights_set_by_hand_are_those_of_logarithms_too(search):
    # these were of the weights that were found
    search = clone(search).fit(X, y)
    search.coef_ = search.coef_[::-1].copy()
    np.testing.assert_allclose(search.predict_log_proba(X), np.log(search.predict_proba(X)))
