"""Label indicators as they come: of any format, without an array of rows x labels, their wrong values refused."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from estimators import quietly

from cmargin import BSNClassifier, MarginPursuitClassifier, PegasosClassifier, SLNDClassifier, SmSVMClassifier
from cmargin._estimators.labels import Labels
from cmargin.data.containers import positives_of

X, Y = blobs(n=120, d=5, k=4)
INDICATOR = np.stack([Y == 0, Y > 0, Y == 3, Y % 2 == 0], axis=1).astype(int)
QUICK = [SmSVMClassifier(), SLNDClassifier(random_state=0, max_passes=2), BSNClassifier(random_state=0, max_passes=2),
         MarginPursuitClassifier(max_passes=3), PegasosClassifier(max_passes=2, random_state=0)]
FORMATS = [getattr(sp, f"{name}_{kind}") for name in ("csr", "csc", "coo", "lil", "dok", "bsr")
           for kind in ("matrix", "array")]
of_quick = pytest.mark.parametrize("model", QUICK, ids=lambda model: type(model).__name__)


@of_quick
def test_sparse_indicators_of_any_format_train_as_dense_ones(model):
    expected = quietly(model, X, INDICATOR).coef_.copy()
    for form in FORMATS:
        np.testing.assert_array_equal(quietly(model, X, form(INDICATOR)).coef_, expected)
        assert model.score(X, form(INDICATOR)) == model.score(X, INDICATOR)


@pytest.mark.parametrize("model", QUICK[:3], ids=lambda model: type(model).__name__)
def test_no_array_of_rows_and_labels_is_made_in_training(model):
    # SmSVM made one of doubles: 490 MB for 15,500 rows of 3,956 labels of which a row has five
    n, n_labels = 1000, 1500
    rng = np.random.default_rng(0)
    rows, labels = np.repeat(np.arange(n), 5), rng.integers(0, n_labels, 5 * n)
    y = sp.csr_matrix((np.ones(5 * n), (rows, labels)), shape=(n, n_labels)) > 0
    if isinstance(model, SmSVMClassifier):
        model.set_params(max_passes=3, tol=0.5)
    features = rng.standard_normal((n, 4))
    quietly(model.set_params(n_jobs=1), features, y[:, :5])              # what is loaded once
    tracemalloc.start()
    quietly(model, features, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.7 * 8 * n * n_labels


def test_one_label_at_a_time_is_an_array():
    indicator = 2.0 * INDICATOR.T - 1.0
    labels = Labels(np.arange(4), None, positives_of(sp.csr_array(INDICATOR)))
    some = np.array([7, 3, 90])
    for c in range(4):
        np.testing.assert_array_equal(labels[c], indicator[c])
        np.testing.assert_array_equal(labels.take(some)[c], indicator[c, some])
        np.testing.assert_array_equal(labels.signed_weight(c, np.full(120, 2.0)), 2 * indicator[c])
        np.testing.assert_array_equal(Labels.joined([labels.take(slice(0, 50)), labels.take(slice(50, 120))])[c],
                                      indicator[c])
    np.testing.assert_array_equal(labels.sample(some), indicator[:, some])
    np.testing.assert_array_equal(labels.columns().toarray(), INDICATOR)


def test_entries_that_are_stored_twice_or_as_zeros():
    twice = sp.csr_matrix((np.ones(3), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    with pytest.raises(ValueError, match="must hold 0 and 1"):
        positives_of(twice)
    assert not twice.has_canonical_format                # the user's matrix stays as it is
    stored = sp.csr_matrix((np.array([1.0, 0.0, -1.0]), np.array([0, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    found = positives_of(stored)
    assert found.nnz == 1 and found.toarray().tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize("y, words", [
    ([[1, 2], [3]] * 60, "legacy multi-label data representation.*MultiLabelBinarizer"),
    ([{"ash"}, {"elm", "oak"}] * 60, "legacy multi-label data representation.*MultiLabelBinarizer"),
    ([(0,), ()] * 60, "legacy multi-label data representation.*MultiLabelBinarizer"),
    ([[1, 2], [3, 0]] * 60, "Unknown label type: a label indicator must hold 0 and 1.*got [23];.*MultiLabelBinarizer"),
    ([["ash", "elm"], ["oak", "elm"]] * 60, "Unknown label type: .*got ash;.*MultiLabelBinarizer"),
    (2 * INDICATOR, "Unknown label type: a label indicator must hold 0 and 1, or -1 and 1, got 2"),
    (sp.lil_matrix(2 * INDICATOR), "Unknown label type: a label indicator must hold 0 and 1, or -1 and 1, got 2"),
    (0.5 * INDICATOR, "Unknown label type: continuous-multioutput"),
    (np.where(INDICATOR, np.nan, 0), "NaN")])
@of_quick
def test_what_is_no_indicator_is_refused_in_words(model, y, words):
    # lists of labels were refused without a word on what makes an indicator of them
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)


@of_quick
def test_rows_without_labels_are_rows_of_negatives(model):
    y = INDICATOR.copy()
    y[:30] = 0
    assert quietly(model, X, y).coef_.shape == (4, 5)
    model.predict_top_k(X, 4)
    with pytest.raises(ValueError, match=r"\[1, n_classes=4\]"):
        model.predict_top_k(X, 5)
