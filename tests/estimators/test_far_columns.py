"""Columns of very different units, raw as tables have them: seconds since 1970, amounts, calendar years."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from ranks_in_threads import on_ranks
from rows_in_files import files_of
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from tensors import LIBRARIES

from cmargin import MarginPursuitClassifier, PegasosClassifier, SLNDClassifier
from cmargin.data.columns import columns_of, moments, without_digits
from cmargin.solvers import cost

FAR = {"seconds": lambda z: 1.7e9 + 1e7 * z, "amounts": lambda z: 5e4 + 2e4 * z, "years": lambda z: 2000 + 15 * z}
Z = np.random.default_rng(21).standard_normal((1500, 3))
TWO, THREE = (Z[:, 0] > 0).astype(int), np.digitize(Z[:, 0], [-0.5, 0.5])


def table(name, dtype=np.float64):
    return np.column_stack([Z[:, :2], FAR[name](Z[:, 2])]).astype(dtype)


def quietly(model, *data):
    """The fit, in which nothing is warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(*data)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_matrix])
@pytest.mark.parametrize("name", FAR)
def test_margin_pursuit_sees_the_other_columns(name, container, dtype):
    # The gradient norm by which Newton's steps stop was that of the large column, and the factor of the curvature
    # called the others flat: 0.53 of the rows right, and not a word
    X = container(table(name, dtype))
    for l2 in ("auto", 0.0, 1e-3):
        assert quietly(MarginPursuitClassifier(l2=l2, n_jobs=1), X, TWO).score(X, TWO) > 0.98
    alone = MarginPursuitClassifier(n_jobs=1).fit(Z, THREE).score(Z, THREE)
    assert quietly(MarginPursuitClassifier(n_jobs=1), X, THREE).score(X, THREE) > alone - 0.05


@pytest.mark.parametrize("l2", [1e-2, 1e-6])
def test_the_minimum_is_that_of_the_rows_as_they_are(l2):
    """Of the objective that is written down, whatever is done to the columns inside; without an intercept too."""
    for intercept in (True, False):
        X = table("amounts") - np.array([0, 0, 0 if intercept else 5e4])
        both = [MarginPursuitClassifier(l2=l2, fit_intercept=intercept, n_jobs=1) for _ in range(2)]
        model, scaled = both[0].fit(X, TWO), both[1].fit(X * np.array([1, 1, 1e-4]), TWO)
        # the column's own weight is under next to no penalty in either
        tolerance = 1e-2 if l2 > 1e-3 else 1e-4
        np.testing.assert_allclose(model.coef_ * np.array([1, 1, 1e4]), scaled.coef_, rtol=tolerance, atol=1e-4)
        z = np.where(TWO, 1, -1) * model.decision_function(X)
        u = 1 - z
        slope = np.where(np.abs(u) <= 2**0.5, u - u**3 / 6, np.sign(u) * 8**0.5 / 3) * np.where(TWO, 1, -1)
        gradient = -X.T @ slope / len(X) + l2 * model.coef_[0]
        assert (np.abs(gradient) <= 2e-6 * np.array([1, 1, 2e4])).all()


def test_elsewhere_and_by_products_they_are_seen_too(tmp_path, monkeypatch):
    X = table("seconds")
    here = MarginPursuitClassifier(n_jobs=1).fit(X, TWO)
    files = MarginPursuitClassifier(n_jobs=1).fit(files_of(X, "npy C", tmp_path), TWO)
    np.testing.assert_allclose(files.coef_, here.coef_, rtol=1e-6)
    parts = (slice(0, 400), slice(400, 1500))
    for model in on_ranks(2, lambda comm: MarginPursuitClassifier(n_jobs=1).fit(
            X[parts[comm.rank]], TWO[parts[comm.rank]], comm=comm))[0]:
        np.testing.assert_allclose(model.coef_, here.coef_, rtol=1e-6)
    for make in LIBRARIES.values():
        model = MarginPursuitClassifier(n_jobs=1).fit(make(X), make(TWO))
        np.testing.assert_allclose(model.coef_, here.coef_, rtol=1e-6)
    monkeypatch.setattr(cost, "PURSUIT_FACTOR_UP_TO_COLUMNS", 2)
    products = MarginPursuitClassifier(n_jobs=1, l2=here.l2_).fit(X, TWO)
    np.testing.assert_allclose(products.coef_, here.coef_, rtol=1e-4)


def test_more_columns_than_rows():
    r = np.random.default_rng(5)
    X = np.column_stack([r.standard_normal((60, 90)), 1.7e9 + 1e7 * r.standard_normal(60)])
    y = X[:, 0] + X[:, 1] > 0
    centred = X - X.mean(axis=0)
    other = MarginPursuitClassifier(l2=1e-2, n_jobs=1).fit(centred * np.append(np.ones(90), 1e-7), y)
    model = quietly(MarginPursuitClassifier(l2=1e-2, n_jobs=1), X, y)
    assert accuracy_score(model.predict(X), other.predict(centred * np.append(np.ones(90), 1e-7))) > 0.95


@pytest.mark.parametrize("solver", ["gd", "sgd", "pegasos"])
def test_published_steps_are_not_silent(solver):
    # gradient descent took a gradient whose large column had converged for the end; steps of single rows said nothing
    model = PegasosClassifier(random_state=0, max_passes=3) if solver == "pegasos" else \
        MarginPursuitClassifier(solver=solver, random_state=0, max_passes=3)
    said = "scale the features" if solver == "gd" else "column 2 is so large beside others.*StandardScaler"
    with pytest.warns(ConvergenceWarning, match=said):
        model.fit(table("seconds"), TWO)


def test_digits_that_are_lost_are_told_of_with_the_name_of_the_column():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.column_stack([Z[:, :2], 1.7e9 + 100 * Z[:, 2]]), columns=["a", "b", "when"])
    with pytest.warns(ConvergenceWarning, match=r"column 2 \('when'\).*float32.*StandardScaler") as received:
        MarginPursuitClassifier(n_jobs=1).fit(X.astype(np.float32), TWO)
    assert len(received) == 1
    quietly(MarginPursuitClassifier(n_jobs=1), X, TWO)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_moments_and_what_they_say(container):
    rare, constant = np.where(Z[:, 0] > 1, 3.0, 0.0), np.full(1500, 7.0)
    X = np.column_stack([Z, table("seconds")[:, 2], rare, np.zeros(1500), constant])
    count, mean, spread = moments(container(X))
    for j, column in enumerate(X.T):
        there = column[column != 0]
        assert count[j] == len(there)
        assert mean[j] == pytest.approx(there.mean() if len(there) else 0)
        assert spread[j] == pytest.approx(there.std() if len(there) else 0, abs=1e-7 * abs(mean[j]))
    columns = columns_of(container(X), True, np.float64)
    assert columns.largest == 3 and (columns.unit > 0).all()
    np.testing.assert_array_equal(columns.centre != 0, [False, False, False, True, False, False, True])
    assert not columns_of(container(X), False, np.float64).centre.any()
    near = container(X[:, [0, 1, 2, 4, 5, 6]])
    assert columns_of(near, True, np.float64) is None and columns_of(near * 1e5, False, np.float64) is None
    assert columns_of(near * 1e5, True, np.float64).largest == 5         # beside the column of ones
    assert without_digits(container(X), np.float64).size == 0
    assert without_digits(container(X.astype(np.float32)), np.float32).size == 0
    for huge in (1e290, 1e-300):
        assert np.isfinite(moments(container(X * huge))).all()


def test_rows_in_units_are_what_they_are_said_to_be():
    X = table("seconds")
    X[:3, 2] = 0                                                 # entries that CSR rows do not have
    X[:, 1] *= Z[:, 0] > 0
    for dtype in (np.float64, np.float32):
        columns = columns_of(X, True, dtype)
        expected = (X - columns.centre) / columns.unit
        for rows in (X, np.asfortranarray(X), sp.csr_matrix(X)):
            found = columns.over(rows.astype(dtype))
            assert found.dtype == dtype
            found = found.toarray() if sp.issparse(found) else found
            np.testing.assert_allclose(found, expected, atol=1e-4 if dtype == np.float32 else 1e-9)
    W, bias = Z[:4], np.arange(4.0)
    inner = columns.inner(W, bias)
    np.testing.assert_allclose(expected @ inner[0].T + inner[1], X @ W.T + bias, rtol=1e-5, atol=1e-5)
    for back, given in zip(columns.outer(*inner), (W, bias), strict=True):
        np.testing.assert_allclose(back, given, rtol=1e-6, atol=1e-6)


def test_rare_words_stay_small():
    """Columns that are smaller than a typical small one are no reason to scale a text, and are not made large."""
    X = np.abs(Z @ np.random.default_rng(2).standard_normal((3, 40)))
    X[:, :2] *= 1e-6
    assert columns_of(X, True, np.float32, typical=True) is None and columns_of(X, True, np.float32) is not None
    X[:, 39] *= 1e4
    unit = columns_of(X, True, np.float32, typical=True).unit
    assert unit[0] == unit[1] == unit.min() > 0.1 and unit[39] > 1e3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_small", [1, 3])
@pytest.mark.parametrize("model", [MarginPursuitClassifier(), MarginPursuitClassifier(l2=0),
                                   SLNDClassifier(random_state=0)], ids=str)
def test_columns_near_the_smallest_numbers_leave_weights_that_are_numbers(model, n_small, container):
    # weights times the inverse of such a unit, which is infinite, were NaN; the choice of l2 raised LinAlgError, and
    # SLND said that the largest entry was infinite
    X = Z.copy()
    X[:, -n_small:] *= 1e-310
    X = container(X)
    found = model.fit(X, TWO)
    assert np.isfinite(found.coef_).all() and np.isfinite(found.intercept_).all()
    assert np.isfinite(found.decision_function(X)).all()
    if n_small == 1 and model.l2 == "auto":          # without a penalty weights leave the range, which is told
        assert found.score(X, TWO) > 0.98
