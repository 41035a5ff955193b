"""`smsvm_path`: every penalty certified, by hand and by the rows; bad input; what a path can be asked."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from cmargin import SmSVMClassifier, smsvm_path
from cmargin.data import open_rows
from cmargin.data.files import open_files, sources
from cmargin.solvers.path import PathSolver

X, Y = load_breast_cancer(return_X_y=True)
X = scale(X)
L2S = np.geomspace(1, 1e-3, 12)


def gap_of(model, X, y, tol=1e-7, **more):
    """How far a model's objectives are from the minimum, as a fit to ``tol`` and the rows have it; one a problem."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = SmSVMClassifier(**{**model.get_params(), "tol": tol}).fit(X, y, **more)
    lowest = best.objective_ * (1 - best.duality_gap_)
    return (model.objective_ - lowest) / model.objective_


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("more", [{}, {"l1": 1e-3}, {"l1_ratio": 0.5}, {"penalize_intercept": True},
                                  {"fit_intercept": False}], ids=str)
def test_every_penalty_is_within_its_gap_of_the_minimum(loss, more):
    path = smsvm_path(X, Y, l2s=L2S, loss=loss, tol=1e-3, **more)
    assert path.gaps.max() <= 1e-3 and path.fitted_.any() and path.coefs.shape == (12, 1, 30)
    for l2 in (L2S[1], L2S[6], 2.2e-3):
        model = path.at(l2)
        assert model.l2 == l2 and gap_of(model, X, Y).max() <= model.duality_gap_.max() + 1e-6
        penalised = np.append(model.coef_[0], model.intercept_ if path.at(l2).penalize_intercept else 0.0)
        z = (2 * Y - 1) * model.decision_function(X)
        losses = {"hinge": np.maximum(0, 1 - z), "squared_hinge": np.maximum(0, 1 - z)**2,
                  "logistic": np.logaddexp(0, -z)}[loss]
        there = losses.mean() + l2 / 2 * penalised @ penalised + model.l1 * np.abs(penalised).sum()
        assert there <= model.objective_[0] * (1 + 1e-10)


def test_the_grid_that_certificates_choose_is_proven_everywhere():
    path = smsvm_path(X, Y, tol=1e-2)
    l2s = np.exp(np.random.default_rng(0).uniform(*np.log(path.l2s[[-1, 0]]), 300))
    assert len(path) == 100 and path.gaps.max() <= 1e-2
    assert max(path.at(l2).duality_gap_.max() for l2 in l2s) <= 1e-2
    first, last = path.at(path.l2s[0]).coef_[0], path.at(path.l2s[-1])
    means = X[Y == 1].mean(axis=0) - X[Y == 0].mean(axis=0)
    assert first @ means > 0.95 * np.linalg.norm(first) * np.linalg.norm(means)
    assert last.score(X, Y) > 0.99
    assert smsvm_path(X, Y, tol=1e-2, l2_min=1e-3).l2s[-1] == 1e-3


def test_a_large_column_of_no_use_does_not_end_the_grid_before_it_has_begun():
    # l2 is measured by the rows' lengths, here those of a year; a tenth of the first one lowered the loss by nothing
    years = np.column_stack([X, 1e5 + np.random.default_rng(0).standard_normal(len(Y))])
    path = smsvm_path(years, Y, tol=1e-2, loss="logistic")
    assert path.at(path.l2s[-1]).score(years, Y) > 0.97 and path.gaps.max() <= 1e-2


def test_between_the_given_penalties_too():
    path = smsvm_path(X, Y, l2s=[1, 1e-1, 1e-2], tol=1e-2, loss="logistic")
    more = smsvm_path(X, Y, l2s=[1, 1e-1, 1e-2], tol=1e-2, loss="logistic", between=True)
    l2s = np.geomspace(1, 1e-2, 50)
    assert path.n_fits == 3 < more.n_fits
    assert max(path.at(l2).duality_gap_[0] for l2 in l2s) > 1e-2 >= max(more.at(l2).duality_gap_[0] for l2 in l2s)


@pytest.mark.parametrize("kind", [np.float32, sp.csr_matrix, np.asfortranarray])
def test_rows_of_other_kinds(kind):
    there = smsvm_path(X, Y, l2s=L2S, tol=1e-3).objectives
    assert np.allclose(smsvm_path(kind(X), Y, l2s=L2S, tol=1e-3).objectives, there, rtol=2e-3)


def test_several_classes_and_labels_and_weights():
    flowers, y = load_iris(return_X_y=True)
    flowers, weights = scale(flowers), np.arange(150) % 3.0
    path = smsvm_path(flowers, y, l2s=L2S, loss="logistic", tol=1e-3, sample_weight=weights)
    assert path.coefs.shape == (12, 3, 4) and path.gaps.max() <= 1e-3
    assert gap_of(path.at(L2S[6]), flowers, y, sample_weight=weights).max() <= 1e-3
    labels = np.column_stack([y == 0, y > 0])
    path = smsvm_path(flowers, labels, l2s=L2S, loss="logistic", tol=1e-3)
    assert path.at(L2S[3]).predict(flowers).shape == labels.shape and path.n_nonzero.shape == (12, 2)


def test_bits_do_not_depend_on_threads():
    D, y = load_digits(return_X_y=True)
    one, two = (smsvm_path(D / 16, y, l2s=np.geomspace(1, 1e-2, 5), tol=1e-2, n_jobs=n) for n in (1, 3))
    assert one.coefs.tobytes() == two.coefs.tobytes() and one.gaps.tobytes() == two.gaps.tobytes()


def test_rows_in_files(tmp_path):
    np.save(tmp_path / "X.npy", X)
    path = smsvm_path(open_files(tmp_path / "X.npy"), Y, l2s=L2S[:4], tol=1e-3)
    assert path.gaps.max() <= 1e-3
    assert np.allclose(path.objectives, smsvm_path(X, Y, l2s=L2S[:4], tol=1e-3).objectives, rtol=2e-3)


@pytest.mark.parametrize("given", [{"l2s": L2S[:4]}, {"l2s": L2S[:3], "l1": 1e-3}, {"l1s": [0.1, 0.01]}])
def test_rows_that_stay_in_several_files(tmp_path, monkeypatch, given):
    monkeypatch.setattr(sources, "FITS", 0.0)
    np.save(tmp_path / "1.npy", X[:100])
    np.save(tmp_path / "2.npy", X[100:])
    parts = open_files([tmp_path / "1.npy", tmp_path / "2.npy"])
    assert not open_rows(parts, Y).in_memory
    path = smsvm_path(parts, Y, loss="logistic", tol=1e-4, **given)
    here = smsvm_path(X, Y, loss="logistic", tol=1e-4, **given)
    assert path.gaps.max() <= 1e-4
    assert path.objectives == pytest.approx(here.objectives, rel=2e-4)


def test_the_estimators_own_path():
    model = SmSVMClassifier(loss="squared_hinge", l1=1e-3, tol=1e-3)
    path = model.path(X, Y, Cs=[0.01, 0.1, 1])
    assert np.allclose(path.l2s, [1 / (C * len(Y)) for C in (0.01, 0.1, 1)]) and (path.l1s == 1e-3).all()
    assert not hasattr(model, "coef_") and "SmSVMPath(3 penalties" in repr(path)
    with pytest.warns(UserWarning, match="falling"):
        smsvm_path(X, Y, Cs=[0.1, 1, 0.01], tol=1e-2)


def test_supports_and_columns():
    path = smsvm_path(X, Y, l2s=[1e-1, 1e-3], l1=1e-2, tol=1e-4)
    within = [(np.where(Y, 1, -1) * path.at(l2).decision_function(X) < 1).sum() for l2 in path.l2s]
    assert path.n_supports(X, Y).ravel().tolist() == within
    assert (path.n_nonzero.ravel() == [(w != 0).sum() for w in path.coefs[:, 0]]).all() and path.n_nonzero.max() < 30


def test_a_path_goes_through_pickle_and_gives_up_no_proof():
    path = smsvm_path(X, Y, l2s=[1, 1e-2], tol=1e-2)
    again = pickle.loads(pickle.dumps(path))
    assert again.at(0.1).duality_gap_ == path.at(0.1).duality_gap_ and (again.coefs == path.coefs).all()


@pytest.mark.parametrize("given, text", [
    ({"l2s": [1, 0]}, "no certificate without l1"), ({"l2s": [1, -1]}, "at least 0"), ({"l2s": [np.nan]}, "at least 0"),
    ({"l2s": []}, "at least one"), ({"l2s": [[1]]}, "sequence"), ({"l2s": "many"}, "sequence"),
    ({"l2s": [1], "Cs": [1]}, "not both"), ({"Cs": [0]}, "positive"), ({"Cs": [np.inf]}, "no certificate"),
    ({"l1_ratio": 1.0}, "l1_ratio"), ({"l1_ratio": 0.5, "l1": 1.0}, "not both"), ({"n_l2s": 1}, "n_l2s"),
    ({"l2_min": 0}, "l2_min"), ({"l2_min": "least"}, "l2_min"), ({"l2s": [np.inf]}, "finite"),
], ids=str)
def test_penalties_that_are_none(given, text):
    with pytest.raises(ValueError, match=text):
        smsvm_path(X, Y, **given)


@pytest.mark.parametrize("l2, l1", [(0, None), (-1.0, None), ("a", None), ([1.0], None), (np.nan, None), (0.1, -1.0),
                                    (0.1, np.nan), (0.1, np.inf), (0.1, "a")])
def test_weights_at_penalties_that_are_none(l2, l1):
    # an l1 of -1 was answered by weights with a gap of 0
    path = smsvm_path(X, Y, l2s=[1, 1e-2], tol=1e-2)
    with pytest.raises(ValueError, match="must be a"):
        path.at(l2, l1)


def test_penalties_in_any_order_and_twice():
    with pytest.warns(UserWarning) as said:
        path = smsvm_path(X, Y, l2s=[1e-2, 1, 1e-2], tol=1e-2)
    assert path.l2s.tolist() == [1, 1e-2] and len(said) == 2
    assert smsvm_path(X, Y, l2s=[1e-2, 0], l1=1e-2, tol=1e-3).gaps.max() <= 1e-3       # 0 beside l1


def test_what_a_path_does_not_take():
    for more in ({"callback": print}, {"checkpoint": "somewhere"}, {"line_search": "quadratic"}):
        with pytest.raises(ValueError, match="path"):
            SmSVMClassifier(**more).path(X, Y)
    flowers, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="one weight a row"):
        SmSVMClassifier(class_weight={0: 2.0, 1: 1.0, 2: 1.0}, class_weight_on="positives").path(flowers, y)


def test_time_that_is_over_keeps_what_is_done(monkeypatch):
    keep = PathSolver._keep

    def keep_and_be_late(self, fit):
        keep(self, fit)
        if self.n_solved == 3:
            self.settings.clock.deadline = 0.0

    with monkeypatch.context() as patch, pytest.warns(ConvergenceWarning, match="max_time") as said:
        patch.setattr(PathSolver, "_keep", keep_and_be_late)
        path = smsvm_path(X, Y, tol=1e-9, l2s=np.geomspace(1, 1e-7, 40), max_time=1e6)
    assert len(said) == 1 and len(path) == 40 and np.isfinite(path.coefs).all()
    assert path.n_fits == 3 and path.fitted_.sum() == 3 and path.gaps.max() > 1e-9
    for l2s in (None, [1, 0.1]):
        with pytest.raises(TimeoutError, match="before the first fit"):
            smsvm_path(X, Y, l2s=l2s, max_time=1e-9)
