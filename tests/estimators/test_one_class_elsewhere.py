"""SmSVMOneClass over files, devices and ranks: the minimum of rows in memory, certified."""

import numpy as np
import pytest
import scipy.sparse as sp
from ranks_in_threads import on_ranks
from rows_in_files import files_of
from sklearn.exceptions import ConvergenceWarning
from tensors import strict, strict_on

from cmargin import SmSVMOneClass
from cmargin.data import open_rows
from cmargin.solvers.one_class import row_sum

RNG = np.random.default_rng(4)
WEIGHTS = RNG.integers(0, 3, 900).astype(float)
PLACES = ["npy C", "npy F", "shards", "csr folder", "ranks"] + ["device"] * (strict is not None)


def rows(n_columns, n=900):
    return 2 + np.random.default_rng(n_columns).normal(size=(n, n_columns))


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr("cmargin.data.files.source.CHUNK", 9000)


def fitted(model, X, weights, place, folder):
    if place == "ranks":
        parts = np.split(np.arange(len(X)), [100, 100, 500])       # of which one has no rows
        found, _ = on_ranks(4, lambda comm: type(model)(**model.get_params()).fit(
            X[parts[comm.rank]], None, None if weights is None else weights[parts[comm.rank]], comm))
        for one in found:
            assert not isinstance(one, BaseException), one
            assert np.array_equal(one.coef_, found[0].coef_) and one.offset_ == found[0].offset_
        return found[-1]
    X = strict_on("device1")(X) if place == "device" else files_of(X, place, folder)
    return model.fit(X, sample_weight=weights)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("n_columns", [4, 60])
@pytest.mark.parametrize("nu", [0.1, 0.6, 1.0])
def test_the_minimum_is_that_of_rows_in_memory(place, n_columns, nu, tmp_path):
    X = rows(n_columns).astype(np.float32 if place == "npy F" else float)
    for weights in (None, WEIGHTS):
        one = SmSVMOneClass(nu=nu, tol=1e-7).fit(sp.csr_matrix(X) if "csr" in place else X, None, weights)
        folder = tmp_path / f"weights {weights is not None}"
        folder.mkdir()
        model = fitted(SmSVMOneClass(nu=nu, tol=1e-7), X, weights, place, folder)
        assert model.duality_gap_[0] <= 1e-7
        assert model.objective_[0] == pytest.approx(one.objective_[0], rel=3e-7)
        scores = X.astype(float) @ model.coef_[0]                 # the objective that is told is that of the weights
        weight = np.ones(len(X)) if weights is None else weights
        told = model.coef_[0] @ model.coef_[0] / 2 - model.offset_[0] \
            + weight @ np.maximum(model.offset_[0] - scores, 0) / (nu * weight.sum())
        assert told == pytest.approx(model.objective_[0], rel=1e-6)
        if nu < 1:
            assert np.mean(model.predict(X) != one.predict(X)) < 0.02


@pytest.mark.parametrize("place", PLACES[:4] + PLACES[5:])
def test_the_sum_of_the_rows_is_read_as_a_slope(place, tmp_path):
    X = rows(7) * 1e-9
    far = strict_on("device1")(X) if place == "device" else files_of(X, place, tmp_path)
    found = row_sum(open_rows(far).row_pass(WEIGHTS, intercept=True, n_threads=1))
    np.testing.assert_allclose(found, np.append(WEIGHTS @ X, WEIGHTS.sum()), rtol=1e-12)


def test_what_is_wrong_is_said(tmp_path):
    X = rows(3)
    for number, text in ((np.nan, "NaN"), (1e200, "overflow")):
        X[5, 1] = number
        (tmp_path / text).mkdir()
        with pytest.raises(ValueError, match=text):
            SmSVMOneClass().fit(files_of(X, "npy C", tmp_path / text))
        found, _ = on_ranks(2, lambda comm: SmSVMOneClass().fit(X[comm.rank::2], comm=comm))
        for error in found:
            with pytest.raises(ValueError, match=text):
                raise error
    X = rows(3)
    found, _ = on_ranks(2, lambda comm: SmSVMOneClass(nu=0.1 + comm.rank).fit(X, comm=comm))
    assert all(isinstance(error, ValueError) for error in found)
    found, _ = on_ranks(2, lambda comm: SmSVMOneClass().fit(X, None, -np.ones(900), comm=comm))
    assert all("Negative values" in str(error) for error in found)


def test_time_and_passes_that_are_over(tmp_path):
    X = rows(4)
    with pytest.warns(ConvergenceWarning, match="max_passes"):
        model = SmSVMOneClass(nu=0.2, max_passes=2.0, tol=1e-9).fit(files_of(X, "npy C", tmp_path))
    assert np.isfinite(model.coef_).all() and model.duality_gap_[0] > 1e-9
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = SmSVMOneClass(nu=0.2, max_time=1e-9).fit(files_of(X, "npy C", tmp_path))
    assert np.isfinite(model.coef_).all()
    again = SmSVMOneClass(nu=0.2, warm_start=True, tol=1e-6).fit(files_of(X, "npy C", tmp_path))
    again.fit(files_of(X, "npy C", tmp_path))
    assert again.duality_gap_[0] <= 1e-6
