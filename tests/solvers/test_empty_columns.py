"""Hashed texts: CSR rows of many columns, most of which no row has an entry in (`InUnits.without_empty_columns`)."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from cmargin import BSNClassifier, Checkpoint, SLNDClassifier
from cmargin._estimators.in_units import InUnits


def hashed(n=700, n_features=1 << 15, n_classes=5, n_words=2500, seed=11):
    """(X, y): twenty words a row, of ``n_words`` that were hashed, some of them a class's own."""
    rng = np.random.default_rng(seed)
    y, place = rng.integers(0, n_classes, n), rng.permutation(n_features)[:n_words]
    word = (rng.pareto(1.0, (n, 20)) * 20).astype(int) + 37 * y[:, None] * (rng.random((n, 20)) < 0.3)
    column = place[np.minimum(word, n_words - 1)]
    X = sp.csr_matrix((rng.random(column.size) + 0.5, column.ravel(), np.arange(0, column.size + 1, 20)),
                      shape=(n, n_features))
    X.sum_duplicates()
    return X, y


def with_all_columns(monkeypatch):
    monkeypatch.setattr(InUnits, "without_empty_columns", lambda self, *_: self)


def same(a, b):
    for name in ("coef_", "intercept_", "eigenvalues_", "step_size_", "rank_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for name in ("objective", "error"):
        np.testing.assert_array_equal(a.history_[name], b.history_[name])


@pytest.mark.parametrize("parameters", [
    {}, {"loss": "calibrated_hinge"}, {"tail": "drop"}, {"rank": 7, "average": False}, {"fit_intercept": False},
    {"hessian_refresh": 2, "max_passes": 5, "rank": 3}, {"step_size": "theory", "max_passes": 3},
    {"step_size": 1e200, "loss": "calibrated_hinge"},
], ids=str)
@pytest.mark.parametrize("n_features", [1 << 15, 30011])
def test_the_bits_are_those_of_all_columns(parameters, n_features, monkeypatch):
    # every array that a class has, and every eigenvector, was as long as X is wide, whatever columns occurred
    X, y = hashed(n_features=n_features)
    models = [SLNDClassifier(**{"loss": "logistic", "random_state": 3, "n_jobs": 1, **parameters}) for _ in range(2)]
    few = models[0].fit(X, y)
    with_all_columns(monkeypatch)
    every = models[1].fit(X, y)
    same(few, every)
    here, there = few.preconditioner_, every.preconditioner_
    assert len(here.columns) == here.eigenvectors.shape[1] < n_features / 8 and there.columns is None
    np.testing.assert_array_equal(here.of_all(n_features).eigenvectors, there.eigenvectors)
    np.testing.assert_array_equal(here.apply(X[:9]), there.apply(X[:9]))


@pytest.mark.parametrize("parameters", [
    {}, {"loss": "multinomial", "tail": "drop"}, {"loss": "multinomial", "hessian_refresh": 2, "step_size": 1.0},
    {"fit_intercept": False},
], ids=str)
def test_the_softmax_is_that_of_all_columns_but_for_rounding(parameters, monkeypatch):
    X, y = hashed()
    models = [SLNDClassifier(random_state=3, n_jobs=1, warm_start=True, **parameters) for _ in range(2)]
    few = models[0].fit(X, y)
    assert few.preconditioner_.columns is not None and few.loss_ == "multinomial"
    start = few.coef_
    few = pickle.loads(pickle.dumps(few)).fit(X, y)
    with_all_columns(monkeypatch)
    np.testing.assert_allclose(start, models[1].fit(X, y).coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(few.coef_, models[1].fit(X, y).coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_single_precision(loss, monkeypatch):
    X, y = hashed(n_classes=8)
    models = [SLNDClassifier(loss=loss, random_state=3, n_jobs=1) for _ in range(2)]
    few = models[0].fit(X.astype(np.float32), y)
    assert few.preconditioner_.columns is not None
    with_all_columns(monkeypatch)
    every = models[1].fit(X.astype(np.float32), y)
    np.testing.assert_allclose(few.coef_, every.coef_, rtol=1e-3, atol=1e-4 * np.abs(every.coef_).max())


@pytest.mark.parametrize("kind", ["two classes", "indicator", "units", "centre", "entries in parts", "64 bits"])
@pytest.mark.filterwarnings("ignore:Labels 5, 6")
def test_rows_of_every_kind(kind, monkeypatch):
    X, y = hashed(n_classes=2 if kind == "two classes" else 5)
    if kind == "indicator":
        y = np.eye(7, dtype=int)[y]
        y[::3, 2] = 1                                        # and nothing in the last two
    if kind == "units":
        X.data[::7] *= 1e6
    if kind == "centre":
        X = sp.hstack([X, 1e9 + np.random.default_rng(5).random((X.shape[0], 1))]).tocsr()
    if kind == "entries in parts":
        X = sp.csr_matrix((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    if kind == "64 bits":
        X = sp.csr_array(X)
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    models = [BSNClassifier(loss="logistic", random_state=3, n_jobs=1) for _ in range(2)]
    few = models[0].fit(X, y)
    assert few.preconditioner_.columns is not None
    with_all_columns(monkeypatch)
    same(few, models[1].fit(X, y))


def test_going_on_from_few_columns(monkeypatch):
    # rows that come later may have entries in other columns
    (X, y), (later, y_later) = hashed(), hashed(seed=12)
    models = [SLNDClassifier(loss="logistic", random_state=3, n_jobs=1, warm_start=True) for _ in range(2)]
    few = pickle.loads(pickle.dumps(models[0].fit(X, y)))
    few.fit(later, y_later).partial_fit(X, y)
    with_all_columns(monkeypatch)
    every = models[1].fit(X, y).fit(later, y_later).partial_fit(X, y)
    same(few, every)


def test_a_fit_that_has_no_time():
    X, y = hashed()
    with pytest.warns(ConvergenceWarning, match="ridge regression"):
        model = SLNDClassifier(loss="logistic", random_state=3, n_jobs=1, max_time=1e-9).fit(X, y)
    assert model.coef_.shape == (5, X.shape[1]) and model.score(X, y) > 0.5


def test_a_checkpoint_of_few_columns(tmp_path):
    X, y = hashed()
    whole = SLNDClassifier(loss="logistic", random_state=3, n_jobs=1).fit(X, y)

    def stop(model):
        if model.n_iter_ == 4:
            raise KeyboardInterrupt

    model = SLNDClassifier(loss="logistic", random_state=3, n_jobs=1, callback=stop,
                           checkpoint=Checkpoint(tmp_path / "fit", seconds=None, passes=0.1))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    same(model.set_params(callback=None).fit(X, y), whole)


@pytest.mark.parametrize("loss", ["auto", "logistic", "calibrated_hinge"])
def test_memory_is_little_more_than_the_weights(loss):
    # 2^20 hashed columns and 8 classes, whose weights are 64 MiB, took 470 MiB beside the rows
    X, y = hashed(n=2000, n_features=1 << 18, n_classes=8)
    tracemalloc.start()
    try:
        model = SLNDClassifier(loss=loss, random_state=3, n_jobs=1).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.score(X, y) > 0.85 and peak < 3 * model.coef_.nbytes, peak / model.coef_.nbytes
