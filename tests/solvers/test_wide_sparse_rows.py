"""CSR rows of many columns, some common and most rare: columns that no row has."""

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


@pytest.mark.parametrize("parameters", [
    {"loss": "squared_hinge", "C": 1.0}, {"loss": "logistic", "C": 0.1, "penalize_intercept": True},
    {"loss": "hinge", "l2": 1e-3}, {"loss": "logistic", "l1": 1e-3, "l2": 0.0},
    {"loss": "hinge", "fit_intercept": False},
], ids=str)
def test_columns_without_entries_have_no_part_in_a_fit(parameters, monkeypatch):
    # every vector of a driver was as long as X is wide: nearly all of memory and, between reads, of one thread's time
    X, y = word_counts(600, 50_000, seed=4)
    y = y + 0 * (np.arange(600) % 3 == 0) if parameters["loss"] == "hinge" else (y + (np.arange(600) % 3 == 0))
    given = {"tol": 1e-4, "n_jobs": 1, **parameters}
    few = SmSVMClassifier(**given).fit(X, y)
    tracemalloc.start()
    few.set_params(warm_start=True).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 8 * X.shape[1] * len(few.coef_) + 3_000_000
    monkeypatch.setattr(smsvm_fit, "COLUMN_VECTORS", 0)
    every = SmSVMClassifier(**given).fit(X, y)
    assert few.coef_.shape == every.coef_.shape and few.coef_.flags.c_contiguous
    empty = np.setdiff1d(np.arange(X.shape[1]), X.indices)
    assert len(empty) > 40_000 and not few.coef_[:, empty].any()
    np.testing.assert_allclose(few.objective_, every.objective_, rtol=1e-4)
    assert (few.duality_gap_ <= 1e-4).all()


def test_a_warm_start_forgets_weights_of_columns_without_entries():
    X, y = word_counts(400, 50_000, seed=5)
    model = SmSVMClassifier(C=1.0, loss="logistic", warm_start=True, n_jobs=1).fit(X, y)
    before = model.coef_.copy()
    model.coef_ = before + (np.bincount(X.indices, minlength=50_000) == 0)
    model.fit(X, y)
    np.testing.assert_allclose(model.coef_, before, atol=0.02)
