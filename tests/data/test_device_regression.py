"""Regression of rows on a device: the steps and certificates of rows in memory; offsets that are refused."""

import numpy as np
import pytest
from conftest import blobs
from tensors import LIBRARIES, SINGLE, in_memory, strict

from cmargin import SmSVMRegressor
from cmargin.data import open_rows
from cmargin.data.device import rows
from cmargin.data.loss import HINGE

if strict is None:
    pytest.skip("array-api-strict is not installed", allow_module_level=True)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """So that a few hundred rows are several blocks."""
    for limit in ("CPU_NUMBERS", "BLOCK_NUMBERS"):
        monkeypatch.setattr(rows, limit, 1)


@pytest.mark.parametrize("settings", [
    {}, {"epsilon": 1.0}, {"epsilon": 0.0, "l1": 1e-2}, {"loss": "quantile", "quantile": [0.1, 0.8]}, {"loss": "huber"},
    {"loss": "squared_epsilon_insensitive", "epsilon": 0.5}, {"loss": "quantile", "linear_solver": "cg"},
    {"lower": 0.0, "fit_intercept": False}, {"groups": [0, 0, 1, 1, 2, 2], "l1": 0.1, "penalize_intercept": True},
], ids=str)
@pytest.mark.parametrize("place", LIBRARIES.values(), ids=LIBRARIES)
def test_regression_takes_the_steps_of_rows_in_memory(place, settings):
    X, _ = blobs(n=700, d=6, k=3)
    weight = np.random.default_rng(2).choice([0.0, 0.5, 2.0], len(X))
    t = 3 * X[:, 0] + np.random.default_rng(3).standard_t(3, len(X)) + 40
    for targets in (t, np.column_stack([t, -t]))[:1 if "quantile" in settings else 2]:
        model = SmSVMRegressor(**{"l2": 1e-3, **settings})
        wanted, gap = model.fit(X, targets, weight).objective_.copy(), model.duality_gap_.copy()
        n_evaluations = model.n_iter_
        found = model.fit(place(X), targets, weight)
        np.testing.assert_allclose(found.objective_, wanted, rtol=1e-7)
        np.testing.assert_allclose(found.duality_gap_, gap, rtol=1e-3, atol=1e-9)
        assert found.n_iter_ == n_evaluations and found.duality_gap_.max() <= model.tol
        np.testing.assert_allclose(in_memory(found.predict(place(X))), found.predict(X), rtol=1e-9)


@pytest.mark.parametrize("place", [SINGLE, *LIBRARIES.values()])
def test_a_regression_is_certified_in_double_precision(place):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((3000, 8)).astype(np.float32)
    t = X.astype(float) @ rng.standard_normal(8) + rng.standard_t(3, 3000)
    best = SmSVMRegressor(l2=1e-3, tol=1e-8).fit(X, t)
    found = SmSVMRegressor(l2=1e-3, tol=1e-4).fit(place(X), t)
    loss = np.mean(np.maximum(np.abs(t - X.astype(float) @ found.coef_ - found.intercept_) - 0.1, 0))
    assert found.objective_[0] == pytest.approx(1e-3 / 2 * (found.coef_ ** 2).sum() + loss, rel=1e-12)
    assert (found.objective_[0] - best.objective_[0]) / found.objective_[0] <= found.duality_gap_[0] + 1e-7
    assert found.duality_gap_[0] <= 1e-4


def test_a_hinge_with_offsets_is_refused_there():
    X, y = blobs(n=700, d=6, k=3)
    source = open_rows(LIBRARIES["strict"](X))
    rows_there = source.row_pass(np.where(y > 0, 1.0, -1.0), intercept=True, n_threads=1, offset=np.full(len(y), 0.5))
    with pytest.raises(ValueError, match="A hinge whose rows have offsets needs the rows in memory"):
        rows_there.set_loss(HINGE)
