"""Logarithms of probabilities: finite and right however far out a row lies, from every estimator that has them."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from cmargin import BSNClassifier, SLNDClassifier, SmSVMClassifier, SmSVMClassifierCV

MODELS = {
    "SLND, one-vs-rest": lambda: SLNDClassifier(loss="logistic", random_state=0),
    "SLND, squared": lambda: SLNDClassifier(loss="squared", random_state=0),
    "SLND, multinomial": lambda: SLNDClassifier(loss="multinomial", random_state=0),
    "SLND, penalised": lambda: SLNDClassifier(l2=1e-4),
    "BSN": lambda: BSNClassifier(random_state=0),
    "SmSVM": lambda: SmSVMClassifier(loss="logistic", l2=1e-4),
    "SmSVM, search": lambda: SmSVMClassifierCV([1e-4], cv=2, estimator=SmSVMClassifier(loss="logistic")),
}


def rows(dtype=np.float64):
    rng = np.random.default_rng(61)
    X, y = rng.standard_normal((240, 6)), rng.integers(0, 4, 240)
    X[:, :4] += 1.5 * np.eye(4)[y]
    return X.astype(dtype), y


def exact(model, X):
    """ln p of the scores that a model gives, in extended precision."""
    odds = np.asarray(model.decision_function(X), np.longdouble)
    if odds.ndim == 1:
        odds = np.stack([-odds, odds], axis=1)
        return -np.logaddexp(0, -odds)
    if getattr(model, "loss_", None) == "multinomial":
        return odds - np.logaddexp.reduce(odds, axis=1, keepdims=True)
    share = -np.logaddexp(0, -odds)
    return share - np.logaddexp.reduce(share, axis=1, keepdims=True)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MODELS)
def test_rows_far_out(name, dtype, n_classes):
    # half of them were -inf, with warnings, forty standard deviations out, where the scores say -773 to -5840
    X, y = rows(dtype)
    model = MODELS[name]().fit(X, y % n_classes)
    for factor in (1, 40, 1e4):
        far = (factor * X).astype(dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = model.predict_log_proba(far)
        assert got.shape == (len(X), n_classes) and got.dtype == model.predict_proba(far).dtype
        assert np.isfinite(got).all()
        tolerance = 1e-5 if dtype == np.float32 else 1e-12
        np.testing.assert_allclose(got, exact(model, far).astype(float), rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(got, model.predict_log_proba(sp.csr_array(far)), rtol=tolerance,
                                   atol=tolerance * np.abs(got).max())       # of sums in another order
    if name != "SLND, squared":
        assert got.min() < -800
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("name", ["SLND, one-vs-rest", "SmSVM"])
def test_labels_of_an_indicator_have_one_each(name):
    X, y = rows()
    model = MODELS[name]().fit(X, np.eye(4, dtype=int)[y])
    odds = model.decision_function(100 * X)
    np.testing.assert_allclose(model.predict_log_proba(100 * X), -np.logaddexp(0, -odds), rtol=1e-12)


@pytest.mark.parametrize("name", ["SLND, one-vs-rest", "SLND, penalised", "SmSVM", "SmSVM, search"])
def test_blocks_of_rows_on_workers(name):
    dask = pytest.importorskip("dask")
    blocks = pytest.importorskip("dask.array")
    X, y = rows()
    model = MODELS[name]().fit(X, y)
    with dask.config.set(scheduler="synchronous"):
        got = model.predict_log_proba(blocks.from_array(100 * X, chunks=(70, 6))).compute()
    np.testing.assert_allclose(got, model.predict_log_proba(100 * X), rtol=1e-12)
    assert np.isfinite(got).all() and got.min() < -100


def test_scores_at_both_ends_of_the_range():
    X, y = rows()
    for name in ("SLND, penalised", "SmSVM"):
        model = MODELS[name]().fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = model.predict_log_proba(1e308 * np.sign(X[:5]))
        assert np.isfinite(got).all() and np.all(got.max(axis=1) <= 0)
