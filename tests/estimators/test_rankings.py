"""Precision and nDCG at k and their propensity-scored forms, against cases by hand, slow twins and scikit-learn."""

import naive_margins as naive
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import ndcg_score

from cmargin import margins as cm

LOG3 = np.log2(3.0)
# three rows of four labels: two of two right, none of one, one of one; a row without labels
Y = np.array([[1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]])
SCORES = np.array([[0.9, 0.8, 0.1, 0.0], [0.5, 0.4, 0.3, 0.2], [0.3, -0.9, 0.2, -0.1], [1.0, 0.0, 2.0, -1.0]])
RANKED = np.array([[0, 1, 2, 3], [0, 1, 2, 3], [0, 2, 3, 1], [2, 0, 1, 3]])
PROPENSITY = np.array([1.0, 0.5, 0.25, 0.2])


def draw(seed, n=40, n_labels=9):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, n_labels)), (rng.random((n, n_labels)) < 0.25).astype(int), \
        rng.uniform(0.05, 1, n_labels)


def test_cases_by_hand():
    assert cm.precision_at_k(SCORES, Y, 1) == pytest.approx(1 / 4)
    np.testing.assert_allclose(cm.precision_at_k(SCORES, Y, [1, 2, 3]), [1 / 4, (1 + 0 + 1 / 2) / 4, (2 + 0 + 1) / 12])
    # the third row has its label at place 2; the second at place 4
    np.testing.assert_allclose(cm.ndcg_at_k(SCORES, Y, (1, 2, 4)),
                               [1 / 4, (1 + 1 / LOG3) / 4, (1 + 1 / LOG3 + 1 / np.log2(5)) / 4])
    # gains 1, 2, 4, 5: at 1 row 0 finds 1, of 2 + 5 + 4; at 2 rows 0 and 2 find 1 + 2 and 4, of 3 + 5 + 4
    np.testing.assert_allclose(cm.ps_precision_at_k(SCORES, Y, PROPENSITY, (1, 2)), [1 / 11, 7 / 12])
    np.testing.assert_allclose(cm.ps_precision_at_k(SCORES, Y, PROPENSITY, (1, 2), normalized=False),
                               [1 / 4, 7 / 2 / 4])
    found, best = 1 + 2 / LOG3 + 4 / LOG3, 2 + 1 / LOG3 + 5 + 4
    np.testing.assert_allclose(cm.ps_ndcg_at_k(SCORES, Y, PROPENSITY, 2), found / best)
    np.testing.assert_allclose(cm.ps_ndcg_at_k(SCORES, Y, PROPENSITY, 2, normalized=False), found / (1 + 1 / LOG3) / 4)


def test_propensities_by_hand():
    # N = 100, N_l = 0, 1, 50: 1/p = 1 + (ln 100 - 1) (2.5 / (N_l + 1.5))^0.55
    y = np.zeros((100, 3))
    y[0, 1] = y[:50, 2] = 1
    c = np.log(100) - 1
    np.testing.assert_allclose(1 / cm.label_propensities(y), 1 + c * (2.5 / np.array([1.5, 2.5, 51.5])) ** 0.55)
    np.testing.assert_allclose(1 / cm.label_propensities(sp.lil_matrix(y), a=0.6, b=2.6),
                               1 + c * (3.6 / np.array([2.6, 3.6, 52.6])) ** 0.6)
    assert cm.label_propensities(y, b=0.0)[0] < 1e-100                       # a label that is never noted
    with pytest.raises(ValueError, match="at least 3 rows"):
        cm.label_propensities(y[:2])


@pytest.mark.parametrize("seed", range(5))
def test_against_slow_twins_in_every_container(seed):
    scores, y, propensity = draw(seed)
    scores[3], scores[4, 2:6] = 0.0, 1.0                 # ties
    y[7] = 0
    ranked = [naive.ranking(row) for row in scores]
    several = scores, scores.astype(np.float32), np.asfortranarray(scores), np.array(ranked), \
        np.array(ranked)[:, :5].astype(np.int32), iter(np.split(scores, [11, 11, 30])), iter(np.split(scores, [25]))
    if seed % 2 == 0:
        several = tuple(one for one in several if not hasattr(one, "dtype") or one.dtype != np.float32)
    for kind, given in enumerate(several):
        truth = [y, sp.csr_matrix(y), sp.csc_array(y), sp.coo_matrix(y), sp.lil_array(y), 2 * y - 1, y > 0][kind % 7]
        given = list(given) if hasattr(given, "__next__") else given
        stream = (lambda given=given: iter(given)) if isinstance(given, list) else (lambda given=given: given)
        for k in (1, 3, 5):
            assert cm.precision_at_k(stream(), truth, k) == pytest.approx(naive.precision_at_k(ranked, y, k), rel=1e-12)
            assert cm.ndcg_at_k(stream(), truth, k) == pytest.approx(naive.ndcg_at_k(ranked, y, k), rel=1e-12)
            for normalized in (True, False):
                for discounted, function in ((False, cm.ps_precision_at_k), (True, cm.ps_ndcg_at_k)):
                    expected = naive.propensity_scored(ranked, y, propensity, k, discounted, normalized)
                    found = function(stream(), truth, propensity, k, normalized=normalized)
                    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_sparse_scores_rank_what_is_stored(seed):
    scores, y, propensity = draw(seed)
    kept = np.random.default_rng(seed).random(scores.shape) < 0.4
    kept[2] = False                                      # a row of which nothing is predicted
    rows, columns = np.nonzero(kept)
    stored = sp.coo_matrix((scores[rows, columns], (rows, columns)), shape=scores.shape)
    ranked = [naive.ranking({c: scores[i, c] for c in np.flatnonzero(kept[i])}) for i in range(len(scores))]
    padded = np.array([(labels + 9 * [-1])[:9] for labels in ranked])
    for k in (1, 4, 9):
        for given in (stored, stored.tocsc(), padded):
            assert cm.precision_at_k(given, y, k) == pytest.approx(naive.precision_at_k(ranked, y, k), rel=1e-12)
            assert cm.ndcg_at_k(given, y, k) == pytest.approx(naive.ndcg_at_k(ranked, y, k), rel=1e-12)
            assert cm.ps_ndcg_at_k(given, y, propensity, k) == pytest.approx(
                naive.propensity_scored(ranked, y, propensity, k, True, True), rel=1e-12)


def test_ndcg_is_that_of_scikit_learn():
    for seed in range(10):
        scores, y, _ = draw(seed)
        y[5] = 0
        for k in (1, 3, 9):
            assert cm.ndcg_at_k(scores, y, k) == pytest.approx(ndcg_score(y, scores, k=k), rel=1e-12)


def test_a_perfect_ranking_is_1_and_propensities_of_1_change_nothing():
    scores, y, propensity = draw(3)
    for function in (cm.ps_precision_at_k, cm.ps_ndcg_at_k):
        np.testing.assert_allclose(function(y / propensity, y, propensity), 1)
        raw = function(scores, y, np.ones(9), (1, 3), normalized=False)
        expected = cm.precision_at_k(scores, y, (1, 3))
        np.testing.assert_allclose(raw[0], expected[0])
    np.testing.assert_allclose(cm.ps_precision_at_k(scores, y, np.ones(9), (1, 3), normalized=False), expected)


@pytest.mark.parametrize("change, message", [
    (dict(k=5), r"k must be whole numbers from 1 to 4, the number of labels, got 5"),
    (dict(k=0), "from 1 to 4"), (dict(k=(1, 2.0)), "from 1 to 4"), (dict(k=[]), "from 1 to 4"),
    (dict(k=True), "from 1 to 4"),
    (dict(scores=SCORES[:3]), "scores has 3 rows but y has 4"),
    (dict(scores=SCORES[:, :3]), r"scores must have 4 columns, one for each label, got shape \(4, 3\)"),
    (dict(scores=RANKED[:, :2]), "labels ranked already, 2 a row, where k is 3"),
    (dict(scores=RANKED + 1), "between 0 and 3, or be -1 for none, found 1 to 4"),
    (dict(scores=np.where(RANKED == 3, 2, RANKED)), "name a label twice, first in row 2"),
    (dict(scores=SCORES * np.nan), "scores contains NaN"), (dict(scores=sp.csr_matrix(SCORES * np.nan)), "NaN"),
    (dict(scores=SCORES[0]), "2 dimensions"), (dict(y=Y[0]), "indicator of shape"), (dict(y=2 * Y), "0 and 1"),
    (dict(y=Y + 0.5), "0 and 1"), (dict(y=[[0, 1], [2]]), "MultiLabelBinarizer")])
def test_what_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        cm.precision_at_k(**{"scores": SCORES, "y": Y, "k": 3, **change})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("change, message", [
    (dict(propensity=PROPENSITY[:3]), r"propensity must have shape \(4,\)"),
    (dict(propensity=0 * PROPENSITY), "propensity must be positive"),
    (dict(propensity=np.full(4, 3e-308)), "overflow"), (dict(y=0 * Y), "no row of y has a label")])
def test_what_propensities_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        cm.ps_ndcg_at_k(**{"scores": SCORES, "y": Y, "propensity": PROPENSITY, "k": 3, **change})
