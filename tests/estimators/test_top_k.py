"""`predict_top_k` of every estimator: the ranking by the scores, in blocks of rows."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from estimators import quick_estimators, quietly

from cmargin import SmSVMClassifier, SmSVMClassifierCV
from cmargin.data.arrays import top_of

X, Y = blobs(n=200, d=9, k=4)
NAMES = np.array(["ash", "elm", "fir", "oak"])
INDICATOR = np.stack([Y == 0, Y > 0, Y == 3], axis=1).astype(int)
LABELS = {"four": NAMES[Y], "two": NAMES[(Y == 0).astype(int)], "indicator": INDICATOR, "one label": INDICATOR[:, :1]}


def ranked(scores, classes, indicator):
    """Classes by their scores, largest first, of equal ones the first: the slow twin."""
    if scores.ndim == 1:
        scores = scores[:, None] if indicator else np.stack([-scores, scores], axis=1)
    return classes[np.argsort(-scores, axis=1, kind="stable")]


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("model", quick_estimators(), ids=lambda model: repr(model)[:60])
def test_classes_are_ranked_by_their_scores(model, labels):
    # SmSVM, margin pursuit and the first-order baselines had no predict_top_k
    y = LABELS[labels]
    if labels == "one label":
        y = sp.csc_matrix(y)
    if hasattr(model, "cv") and labels == "one label":
        pytest.skip("scikit-learn's folds take no indicator of one label")
    if y.ndim == 2 and type(model).__name__ == "SLNDClassifierCV":
        pytest.skip("takes no indicator")
    quietly(model, X, y)
    for rows in (X, X.astype(np.float32), sp.csr_matrix(X)):
        expected = ranked(model.decision_function(rows), model.classes_, y.ndim == 2)
        for k in (1, len(model.classes_)):
            np.testing.assert_array_equal(model.predict_top_k(rows, k), expected[:, :k])
    with pytest.raises(ValueError, match=rf"'k' parameter .*\[1, n_classes={len(model.classes_)}\]. Got 5 instead"):
        model.predict_top_k(X, 5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", [np.asarray, sp.csr_matrix, np.asfortranarray], ids=["C", "CSR", "F"])
def test_from_a_matrix_of_weights_in_blocks_of_any_size(rows, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    W = rng.standard_normal((30, 9)) * (rng.random((30, 9)) < 0.3)
    W[[3, 7, 20]] = 0                                    # three labels of equal scores, everywhere
    model = SmSVMClassifier()
    model.coef_, model.intercept_, model.classes_ = W, np.repeat([0.0, 1.0], 15), np.arange(30) + 100
    given = rows(X.astype(dtype))
    expected = model.predict_top_k(given, 12)
    np.testing.assert_array_equal(expected, ranked(model.decision_function(given), model.classes_, True)[:, :12])
    model.sparsify()
    for entries in (1 << 22, 100):
        monkeypatch.setattr("cmargin._estimators.scores.SCORE_ENTRIES", entries)
        np.testing.assert_array_equal(model.predict_top_k(given, 12), expected)


def test_ties_take_the_first():
    rng = np.random.default_rng(0)
    for n_classes in (1, 2, 7, 40):
        scores = rng.integers(0, 4, (50, n_classes)).astype(float)
        for k in range(1, n_classes + 1):
            expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
            np.testing.assert_array_equal(top_of(scores, k), expected)


@pytest.mark.parametrize("sparse", [False, True])
def test_no_array_of_rows_and_labels_is_made(sparse):
    rng = np.random.default_rng(0)
    rows, k = rng.standard_normal((20_000, 10), np.float32), 1000
    model = SmSVMClassifier(n_jobs=1)
    model.coef_ = rng.standard_normal((k, 10), np.float32)
    model.intercept_, model.classes_ = np.zeros(k, np.float32), np.arange(k)
    if sparse:
        model.sparsify()
    tracemalloc.start()
    top = model.predict_top_k(rows, 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # rows x labels would be 80 MB in float32; a block is 2^22 scores, of which NumPy holds a few copies
    assert top.shape == (20_000, 5) and peak < (120e6 if sparse else 8e6)


def test_a_search_ranks_by_what_it_chose():
    search = SmSVMClassifierCV(l2s=(1e-2, 1e-3), cv=2).fit(X, NAMES[Y])
    np.testing.assert_array_equal(search.predict_top_k(X, 2), search.best_estimator_.predict_top_k(X, 2))
