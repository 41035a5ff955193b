"""`slnd_path` and `SLNDClassifier.path`: the multinomial optimum at many penalties."""

import pickle
import time
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from cmargin import BSNClassifier, SLNDClassifier, slnd_path

X, y = load_wine(return_X_y=True)
X, names = scale(X), np.array(["barbera", "barolo", "grignolino"])
y = names[y]
X2, y2 = load_breast_cancer(return_X_y=True)
X2 = scale(X2)


@pytest.mark.parametrize("rows, labels", [(X, y), (X2, y2)], ids=["three", "two"])
def test_weights_are_the_estimators_at_every_penalty(rows, labels):
    l2s = np.geomspace(1.0, 1e-3, 6)
    path = slnd_path(rows, labels, l2s=l2s, tol=1e-8)
    assert len(path) == 6 and path.fitted_.all() and path.n_fits == 6 and (path.gaps <= 1e-8).all()
    for l2, coef, intercept, value in zip(l2s, path.coefs, path.intercepts, path.objectives, strict=True):
        alone = SLNDClassifier(loss="multinomial", l2=l2, tol=1e-8).fit(rows, labels)
        np.testing.assert_allclose(coef, alone.coef_, atol=1e-3 * np.abs(alone.coef_).max())
        np.testing.assert_allclose(intercept, alone.intercept_, atol=1e-3 * np.abs(alone.intercept_).max())
        assert value == pytest.approx(alone.objective_, rel=2e-8)


def test_cs_are_those_of_logistic_regression():
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    path = slnd_path(X, y, Cs=[0.1, 10], tol=1e-9, sample_weight=weight, class_weight={"barolo": 3.0})
    for C, coef in zip([0.1, 10], path.coefs, strict=True):
        theirs = LogisticRegression(C=C, tol=1e-8, max_iter=2000, class_weight={"barolo": 3.0}).fit(X, y, weight)
        np.testing.assert_allclose(coef, theirs.coef_, atol=2e-3)


@pytest.mark.parametrize("layout", [np.asfortranarray, np.float32, sparse.csr_array], ids=["F", "float32", "csr"])
def test_rows_of_every_kind(layout):
    path, expected = slnd_path(layout(X), y, l2s=[1e-1, 1e-2]), slnd_path(X, y, l2s=[1e-1, 1e-2])
    np.testing.assert_allclose(path.objectives, expected.objectives, rtol=2e-4)
    assert (path.gaps <= 1e-4).all()


def test_a_chosen_path_is_proven_everywhere_and_at_makes_a_model():
    path = slnd_path(X, y, tol=1e-3, n_l2s=40)
    assert len(path) == 40 and path.n_fits < 60 and "40 penalties" in repr(path)
    rng = np.random.default_rng(1)
    for l2 in np.exp(rng.uniform(np.log(path.l2s[-1]), np.log(path.l2s[0]), 300)):
        model = path.at(l2)
        assert model.duality_gap_ <= 1e-3
    alone = SLNDClassifier(l2=model.l2, tol=1e-9).fit(X, y)
    assert alone.objective_ * (1 - 1e-9) <= model.objective_ <= alone.objective_ * (1 + 1e-3)
    assert model.predict_proba(X).shape == (len(y), 3) and model.score(X, y) == alone.score(X, y)
    assert set(clone(model).get_params()) == set(SLNDClassifier().get_params())
    assert slnd_path(X, y, tol=1e-3, l2_min=0.5).l2s[-1] == pytest.approx(0.5)


def test_a_path_keeps_no_rows():
    path = slnd_path(np.repeat(X, 50, axis=0), np.repeat(y, 50), l2s=[1.0, 0.1])
    again = pickle.loads(pickle.dumps(path))
    assert len(pickle.dumps(path)) < X.nbytes * 2
    np.testing.assert_array_equal(again.at(0.3).coef_, path.at(0.3).coef_)


def test_between_proves_what_lies_between_two_penalties():
    apart, between = (slnd_path(X2, y2, l2s=[1e-1, 1e-2], tol=1e-3, between=flag) for flag in (False, True))
    assert apart.n_fits == 2 and apart.at(3e-2).duality_gap_ > 1e-3
    assert between.n_fits > 2 and max(between.at(l2).duality_gap_ for l2 in np.geomspace(1e-2, 1e-1, 50)) <= 1e-3


def test_an_estimators_path_has_its_parameters_and_leaves_it_alone():
    model = BSNClassifier(fit_intercept=False, class_weight="balanced", tol=1e-6, n_jobs=1)
    path = model.path(X, y, l2s=[1e-2])
    assert not path.intercepts.any() and not hasattr(model, "coef_") and type(path.at(1e-2)) is BSNClassifier
    alone = clone(model).set_params(l2=1e-2).fit(X, y)
    np.testing.assert_allclose(path.coefs[0], alone.coef_, atol=1e-2)


def test_bits_do_not_depend_on_threads():
    one, two = (slnd_path(X2, y2, l2s=np.geomspace(1, 1e-4, 8), n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.coefs, two.coefs)
    np.testing.assert_array_equal(one.gaps, two.gaps)


@pytest.mark.parametrize("given, said", [
    ({"l2s": [0.0, 1.0]}, "finite and positive"), ({"l2s": [np.nan]}, "finite and positive"),
    ({"l2s": []}, "at least one"), ({"l2s": [[1.0]]}, "at least one"), ({"l2s": "abc"}, "sequence of numbers"),
    ({"l2s": [1.0], "Cs": [1.0]}, "not both"), ({"Cs": [np.inf]}, "finite and positive"),
    ({"n_l2s": 1}, "n_l2s must be"), ({"l2_min": 0}, "l2_min must be"), ({"tol": 0.0}, "'tol'"),
    ({"l2_min": "a"}, "l2_min must be"), ({"Cs": [1.0, 1e308]}, "so large or small"), ({"Cs": [5e-324]}, "so large or"),
])
def test_refuses_penalties_that_are_none(given, said):
    with pytest.raises(ValueError, match=said):
        slnd_path(X, y, **given)


def test_refuses_what_a_path_has_no_use_for():
    with pytest.raises(ValueError, match="exclude each other"):
        slnd_path(X, np.eye(3, dtype=int)[np.arange(len(y)) % 3])
    with pytest.raises(ValueError, match="needs loss='multinomial'"):
        SLNDClassifier(loss="logistic").path(X, y)
    with pytest.raises(ValueError, match="takes no callback"):
        SLNDClassifier(callback=print).path(X, y)
    with pytest.raises(ValueError, match="one class"):
        slnd_path(X, np.zeros(len(y)))


def test_says_what_it_does_with_the_grid():
    with pytest.warns(UserWarning, match="more than once"):
        path = slnd_path(X, y, l2s=[1.0, 1.0, 0.1])
    assert path.l2s.tolist() == [1.0, 0.1]
    with pytest.warns(UserWarning, match="not in the order"):
        slnd_path(X, y, l2s=[0.1, 1.0])


def test_time_ends_it_with_what_is_known():
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((20_000, 30)), rng.integers(0, 10, 20_000)
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="stopped at max_time") as said:
        path = slnd_path(rows, labels, l2s=np.geomspace(1, 1e-9, 2000), tol=1e-9, max_time=1.0)
    assert time.perf_counter() - begin < 5 and len(said) == 1
    assert 0 < path.n_fits < 2000 and np.isfinite(path.coefs).all() and path.gaps[0] <= 1e-9
    with pytest.raises(TimeoutError, match="nothing is known"), warnings.catch_warnings():
        slnd_path(rows, labels, l2s=[1e-9], tol=1e-12, max_time=1e-9)
