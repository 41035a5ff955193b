"""CSR rows of many columns, some common and most rare: columns that no row has, and when the dual is given up."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from cmargin import SmSVMClassifier
from cmargin._estimators import smsvm_fit


def word_counts(n, m, seed=0, words=30, flipped=0.1):
    """Counts of Zipf columns, labels of a plane of which some are wrong."""
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix((np.ones(n * words), (rng.zipf(1.3, n * words) % m), np.arange(n + 1) * words), shape=(n, m))
    X.sum_duplicates()
    score = X @ rng.standard_normal(m)
    return X, (score > np.median(score)) != (rng.random(n) < flipped)


def reads(X, y, solver, **parameters):
    model = SmSVMClassifier(loss="squared_hinge", penalize_intercept=True, tol=1e-3, linear_solver=solver,
                            n_jobs=1, **parameters).fit(X, y)
    assert model.duality_gap_[0] <= 1e-3
    return model.n_passes_


@pytest.mark.parametrize("seed", [2, 7])
def test_common_columns_are_held_near_a_centre(seed):
    # products took 92 to 97 reads at C = 1, and sweeps without a centre 560 on 300,000 x 2^20 such rows
    X, y = word_counts(20_000, 20_000, seed)
    assert reads(X, y, "auto", C=1.0) <= reads(X, y, "dual", C=1.0) + 1 < reads(X, y, "cg", C=1.0)


@pytest.mark.parametrize("penalize_intercept", [True, False])
def test_the_hinge_ends_where_common_columns_had_it_sweep_without_end(penalize_intercept):
    # 1,000 reads and a gap of 1e-2 before
    X, y = word_counts(20_000, 700_000, 11)
    model = SmSVMClassifier(C=10.0, tol=1e-3, penalize_intercept=penalize_intercept, n_jobs=1).fit(X, y)
    assert model.duality_gap_[0] <= 1e-3 and model.n_passes_ < 300


@pytest.mark.parametrize("C", [100.0, 316.0])
def test_squared_hinge_stays_with_a_dual_whose_gap_falls_late(shared_data, C):
    # taken for rows that share their columns, with a gap of 0.1 after nine reads they were left to products, of which
    # they took 193 and 785 reads; 18 end it
    X, y, _, _ = shared_data("sector")
    model = SmSVMClassifier(C=C, loss="squared_hinge", n_jobs=1).fit(X, y == 50)
    assert model.duality_gap_[0] <= 1e-4 and model.n_passes_ < 40


def test_squared_hinge_stays_with_the_dual_where_rows_have_columns_of_their_own():
    rng = np.random.default_rng(3)
    n, m = 10_000, 40_000
    X = sp.csr_matrix((np.ones(20 * n), (m * rng.random(20 * n) ** 2).astype(int), np.arange(n + 1) * 20), shape=(n, m))
    X.sum_duplicates()
    score = X @ rng.standard_normal(m)
    y = score + 0.5 * score.std() * rng.standard_normal(n) > 0
    assert reads(X, y, "auto", C=10.0) <= 1.3 * reads(X, y, "dual", C=10.0) < reads(X, y, "cg", C=10.0) / 3


def fitted_and_peak(X, y, **parameters):
    tracemalloc.start()
    model = SmSVMClassifier(**parameters).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return model, peak


@pytest.mark.parametrize("parameters", [
    {"loss": "squared_hinge", "C": 1.0}, {"loss": "logistic", "C": 0.1, "penalize_intercept": True},
    {"loss": "hinge", "l2": 1e-3}, {"loss": "logistic", "l1": 1e-3, "l2": 0.0},
    {"loss": "hinge", "l2": 1e-2, "fit_intercept": False},
], ids=str)
def test_columns_without_entries_have_no_part_in_a_fit(parameters, monkeypatch):
    # every vector of a driver was as long as X is wide: nearly all of memory and, between reads, of one thread's time
    X, y = word_counts(2500, 100_000, seed=4)
    if parameters["loss"] != "hinge":
        y = np.where(np.arange(2500) % 3 == 0, 2, y)     # three classes
    given = {"tol": 1e-4, "n_jobs": 1, **parameters}
    SmSVMClassifier(**given).fit(X, y)           # what is imported by a first fit is no part of its peak
    few, peak = fitted_and_peak(X, y, **given)
    monkeypatch.setattr(smsvm_fit, "COLUMN_VECTORS", 0)
    every, peak_of_all = fitted_and_peak(X, y, **given)
    assert peak < 0.7 * peak_of_all
    assert few.coef_.shape == every.coef_.shape and few.coef_.flags.c_contiguous
    empty = np.setdiff1d(np.arange(X.shape[1]), X.indices)
    assert len(empty) > 80_000 and not few.coef_[:, empty].any()
    np.testing.assert_allclose(few.objective_, every.objective_, rtol=1e-4)
    assert (few.duality_gap_ <= 1e-4).all()


def test_a_warm_start_forgets_weights_of_columns_without_entries():
    X, y = word_counts(400, 50_000, seed=5)
    model = SmSVMClassifier(C=1.0, loss="logistic", warm_start=True, n_jobs=1).fit(X, y)
    before = model.coef_.copy()
    model.coef_ = before + (np.bincount(X.indices, minlength=50_000) == 0)
    model.fit(X, y)
    np.testing.assert_allclose(model.coef_, before, atol=0.02)
