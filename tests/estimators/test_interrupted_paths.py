"""Ctrl-C in the middle of a path or of a search keeps what was fitted and scored."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import scale

from cmargin import SLNDClassifier, SLNDClassifierCV, SmSVMClassifier, SmSVMClassifierCV, slnd_path, smsvm_path
from cmargin._estimators.path import SmSVMPath
from cmargin.solvers.column_path import ColumnFits
from cmargin.solvers.multinomial.path import MultinomialPath
from cmargin.solvers.path import PathSolver

X, Y = load_breast_cancer(return_X_y=True)
X = scale(X)
L2S = np.geomspace(1e-1, 1e-5, 20)


def interrupted(monkeypatch, owner, name, after):
    """From the call number ``after`` on a method raises as Ctrl-C does."""
    method, calls = getattr(owner, name), []

    def stops(self, *given, **more):
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        return method(self, *given, **more)

    monkeypatch.setattr(owner, name, stops)


def wide():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, 200))
    return rows, (rows[:, :3].sum(1) > 0).astype(int)


@pytest.mark.parametrize("given", [{"l2s": L2S}, {"n_l2s": 7}])
def test_a_path_that_is_interrupted_is_with_the_exception(monkeypatch, given):
    interrupted(monkeypatch, PathSolver, "_way", 4)
    with pytest.raises(KeyboardInterrupt) as stop:
        smsvm_path(X, Y, **given, tol=1e-4)
    path = stop.value.path
    assert path.n_fits >= 1 and len(path) == len(given.get("l2s", range(7)))
    assert path.at(path.l2s[0]).duality_gap_[0] <= 1e-4 < path.gaps.max()


def test_one_that_is_interrupted_once_all_is_fitted_is_not_lost(monkeypatch):
    made, calls = SmSVMPath.__init__, []

    def stops(self, *given):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        made(self, *given)

    monkeypatch.setattr(SmSVMPath, "__init__", stops)
    with pytest.raises(KeyboardInterrupt) as stop:
        smsvm_path(X, Y, l2s=L2S, tol=1e-4)
    assert stop.value.path.gaps.max() <= 1e-4


def test_so_is_one_that_reads_columns(monkeypatch):
    rows, y = wide()
    interrupted(monkeypatch, ColumnFits, "fit", 3)
    with pytest.raises(KeyboardInterrupt) as stop:
        smsvm_path(rows, y, l1s=[0.3, 0.2, 0.1, 0.05, 0.01], loss="logistic", tol=1e-4)
    assert stop.value.path.n_fits == 3
    assert (stop.value.path.gaps[:, 0] <= 1e-4).tolist() == [True] * 3 + [False] * 2


def test_of_several_classes_each_has_a_fit_before_one_goes_on(monkeypatch):
    rows, _ = wide()
    interrupted(monkeypatch, ColumnFits, "fit", 5)
    with pytest.raises(KeyboardInterrupt) as stop:
        smsvm_path(rows, np.arange(40) % 3, l1s=[0.3, 0.2, 0.1, 0.05], loss="logistic", tol=1e-4)
    assert stop.value.path.gaps.shape == (4, 3)
    assert (stop.value.path.gaps[0] <= 1e-4).all()


def test_a_path_that_knows_nothing_is_none(monkeypatch):
    interrupted(monkeypatch, PathSolver, "fit_at", 0)
    with pytest.raises(KeyboardInterrupt) as stop:
        smsvm_path(X, Y, l2s=L2S)
    assert not hasattr(stop.value, "path")


def test_an_interrupted_multinomial_path(monkeypatch):
    rows, y = load_iris(return_X_y=True)
    interrupted(monkeypatch, MultinomialPath, "solve", 3)
    with pytest.raises(KeyboardInterrupt) as stop:
        slnd_path(rows, y, l2s=np.geomspace(1e-1, 1e-6, 12))
    assert np.isfinite(stop.value.path.gaps).any()


@pytest.mark.parametrize("again", [False, True])
def test_a_search_that_is_interrupted_has_what_was_scored(monkeypatch, again):
    search = SmSVMClassifierCV(l2s=L2S, cv=4, estimator=SmSVMClassifier(tol=1e-3))
    if again:
        search.fit(X, Y)
    interrupted(monkeypatch, PathSolver, "solve_all", 2)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    assert np.isfinite(search.scores_[:2]).all() and np.isnan(search.scores_[2:]).all()
    assert search.best_score_ == pytest.approx(search.scores_[:2, :, 0].mean(axis=0).max())
    assert search.best_params_["l2"] in L2S
    assert not hasattr(search, "predict")
    monkeypatch.undo()
    assert search.fit(X, Y).predict(X).shape == Y.shape


@pytest.mark.parametrize("made", [SmSVMClassifierCV, SLNDClassifierCV])
def test_so_has_one_that_is_interrupted_as_it_chooses(monkeypatch, made):
    search = made(l2s=[1e-1, 1e-3], cv=3)
    interrupted(monkeypatch, made, "_place", 0)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    assert np.isfinite(search.scores_).all() and search.n_features_in_ == X.shape[1]


def test_multinomial_searches_take_no_ranks():
    with pytest.raises(ValueError, match="takes no comm= yet"):
        SLNDClassifierCV().fit(X, Y, comm=object())


def test_one_that_has_scored_nothing_is_as_before(monkeypatch):
    search = SmSVMClassifierCV(l2s=L2S, cv=4)
    interrupted(monkeypatch, PathSolver, "solve_all", 0)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    assert not hasattr(search, "scores_")
    with pytest.raises(NotFittedError):
        search.predict(X)


def test_an_interrupted_multinomial_search(monkeypatch):
    rows, y = load_iris(return_X_y=True)
    search = SLNDClassifierCV(l2s=[1e-1, 1e-3], cv=3)
    interrupted(monkeypatch, SLNDClassifier, "fit", 0)
    with pytest.raises(KeyboardInterrupt):
        search.fit(rows, y)
    assert np.isfinite(search.scores_).all() and not hasattr(search, "coef_")
