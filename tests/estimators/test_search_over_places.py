"""Searches over ranks that are threads here, and of Dask arrays: the folds and the scores of one machine."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from ranks_in_threads import on_ranks
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer
from sklearn.model_selection import ShuffleSplit

from cmargin import SLNDClassifierCV, SmSVMClassifier, SmSVMClassifierCV
from cmargin.data.shards.folds import FoldOfShards

X, Y = blobs(500, 4, 3, 2)
WEIGHTS = np.random.default_rng(0).integers(0, 3, 500).astype(float)
PARTS = [slice(0, 200), slice(200, 200), slice(200, 500)]          # of which one has no rows
TIGHT = SmSVMClassifier(tol=1e-8)
SETTINGS = [
    {"l2s": np.geomspace(1e-4, 1, 6)}, {"Cs": [0.01, 1.0], "l1s": (0.0, 1e-3)},
    {"l2s": (1e-3, 1e-1), "estimator": SmSVMClassifier(tol=1e-8, class_weight="balanced", fit_intercept=False)},
    {"Cs": (0.1, 1.0), "estimator": SmSVMClassifier(tol=1e-10, loss="logistic", class_weight={1: 2.0}),
     "scoring": "neg_log_loss"},
    {"l2s": (1e-2,), "cv": ShuffleSplit(3, random_state=0, test_size=0.4)},
    {"l2s": (1e-2,), "cv": [(np.r_[0:300, 0:300, 5:9], np.arange(250, 500)), (np.flatnonzero(Y != 2), np.arange(9))]},
    {"l2s": (1e-3, 1e-1), "cv": [(np.arange(0, 400), np.r_[450, 3:9, 450, 2:7, 499])]}]    # rows held out twice


def over_ranks(y, weights=None, rows=X, **given):
    searches, _ = on_ranks(3, lambda comm: SmSVMClassifierCV(**given).fit(
        rows[PARTS[comm.rank]], y[PARTS[comm.rank]], None if weights is None else weights[PARTS[comm.rank]],
        comm=comm))
    for search in searches:
        assert not isinstance(search, BaseException), search
        assert np.array_equal(search.scores_, searches[0].scores_, equal_nan=True)
        assert np.array_equal(search.coef_, searches[0].coef_)
    return searches[1]


def assert_same(search, one):
    np.testing.assert_allclose(search.scores_, one.scores_, rtol=0, atol=1e-6)
    assert search.best_params_ == one.best_params_ and np.array_equal(search.classes_, one.classes_)
    assert search.l2_ == pytest.approx(one.l2_) and search.C_ == pytest.approx(one.C_)
    np.testing.assert_allclose(search.coef_, one.coef_, rtol=0, atol=1e-4)
    assert search.n_features_in_ == X.shape[1] and search.n_splits_ == one.n_splits_


@pytest.mark.parametrize("given", SETTINGS, ids=str)
@pytest.mark.parametrize("labels", [np.minimum(Y, 1), np.array(["a", "b", "c"])[Y]], ids=["two", "three"])
def test_ranks_have_one_machines_scores(given, labels):
    if labels.dtype.kind == "U" and given.get("estimator") is not None and given["estimator"].class_weight == {1: 2.0}:
        given = {**given, "estimator": SmSVMClassifier(tol=1e-10, loss="logistic", class_weight={"b": 2.0})}
    given = {"cv": 3, "estimator": TIGHT, **given}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)               # of a fold that lacks a class
        for weights in (None, WEIGHTS):
            one = SmSVMClassifierCV(**given).fit(X, labels, weights)
            assert_same(over_ranks(labels, weights, **given), one)


def test_sparse_rows_and_searches_without_a_refit():
    rows = sp.csr_matrix(np.where(np.abs(X) > 1, X, 0))
    given = {"l2s": (1e-3, 1e-1), "cv": 3, "estimator": TIGHT}
    assert_same(over_ranks(Y, rows=rows, **given), SmSVMClassifierCV(**given).fit(rows, Y))
    searches, _ = on_ranks(2, lambda comm: SmSVMClassifierCV(**given, refit=False).fit(X[comm.rank::2], Y[comm.rank::2],
                                                                                     comm=comm))
    for search in searches:
        assert search.scores_.shape == (3, 2, 1) and not hasattr(search, "coef_")


def test_equal_scores_are_equal_everywhere():
    # rows of zeros have the intercepts as their scores, which single precision makes equal; float64 chose other classes
    rng = np.random.default_rng(150)
    rows = np.where(rng.random((300, 2)) < 0.2, rng.normal(size=(300, 2)), 0).astype(np.float32)
    y = (rows @ rng.normal(size=(2, 3)) + rng.normal(size=(300, 3))).argmax(1)
    given = {"l2s": (1e-3, 1e-1), "cv": 3, "estimator": TIGHT}
    searches, _ = on_ranks(2, lambda comm: SmSVMClassifierCV(**given).fit(rows[comm.rank::2], y[comm.rank::2],
                                                                          comm=comm))
    order = np.r_[0:300:2, 1:300:2]
    one = SmSVMClassifierCV(**given).fit(rows[order], y[order])
    np.testing.assert_allclose(searches[0].scores_, one.scores_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("given, text", [
    ({"cv": "loo"}, "takes no cv='loo' yet"), ({"standardize": True}, "takes no standardize yet"),
    ({"l2s": 5}, "takes no number as l2s yet"), ({"checkpoint": "file"}, "takes no checkpoint yet"),
    ({"scoring": lambda model, X, y: 1.0}, "takes no scoring that asks for rows yet"),
    ({"estimator": SmSVMClassifier(lower=0.0)}, "does not go over several places yet"),
    ({"l2s": (0.0,)}, "does not go over several places yet"), ({"cv": 400}, "n_splits=400"),
    ({"estimator": SmSVMClassifier(linear_solver="dual")}, "needs all rows in one place"),
    ({"cv": [(np.zeros(300, int), np.arange(9))]}, "trains a fold on a row 300 times")])
def test_what_is_refused_is_said_everywhere(given, text):
    found, _ = on_ranks(2, lambda comm: SmSVMClassifierCV(**{"l2s": (1e-2,), **given}).fit(
        X[comm.rank::2], Y[comm.rank::2], comm=comm))
    for error in found:
        assert isinstance(error, ValueError), error
        with pytest.raises(ValueError, match=text):
            raise error


def test_indicators_groups_and_multinomial_searches_are_refused():
    for fit, text in ((lambda comm: SmSVMClassifierCV().fit(X, np.eye(3, dtype=int)[Y], comm=comm), "no label indic"),
                      (lambda comm: SmSVMClassifierCV().fit(X, Y, groups=Y, comm=comm), "takes no groups yet"),
                      (lambda comm: SLNDClassifierCV().fit(X, Y, comm=comm), "takes no comm= yet")):
        found, _ = on_ranks(2, fit)
        for error in found:
            with pytest.raises(ValueError, match=text):
                raise error


@pytest.mark.parametrize("of_rank", [
    lambda rank: {"l2s": (-1.0,) if rank else (1.0,)}, lambda rank: {"cv": 3 if rank else "loo"},
    lambda rank: {"max_time": 0.0 if rank else 1.0},
    lambda rank: {"estimator": SmSVMClassifier(checkpoint="file" if rank else None)}])
def test_what_is_wrong_on_one_rank_is_said_on_all(of_rank):
    # the others waited for ever
    found, _ = on_ranks(2, lambda comm: SmSVMClassifierCV(**of_rank(comm.rank)).fit(X, Y, comm=comm))
    assert isinstance(found[0], ValueError) and str(found[0]) == str(found[1])


def test_scorers_that_cannot_be_sent_and_ranks_of_another_refit():
    scoring = make_scorer(lambda y, predicted: np.mean(y == predicted))
    searches, _ = on_ranks(2, lambda comm: SmSVMClassifierCV(l2s=(1e-2,), cv=3, scoring=scoring, refit=comm.rank == 0)
                           .fit(X[comm.rank::2], Y[comm.rank::2], comm=comm))
    for search in searches:
        assert search.scorer_ is scoring and search.coef_.shape == (3, 4)


def test_time_is_over_at_once():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search = over_ranks(Y, l2s=(1e-2, 1e-1), cv=3, max_time=1e-9)
    assert np.isnan(search.scores_).all() and search.l2_ == 1e-1


def test_a_shards_part_of_a_fold():
    fold = FoldOfShards.of(np.array([0, 0, 3]), np.array([1, 3]), 5, np.ones(2), [1])
    assert fold.marks.tolist() == [2, 128, 0, 129, 0]
    assert fold.part(1, 3).marks.tolist() == [128, 0, 129]


def test_a_dask_array():
    da, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    with distributed.LocalCluster(1, processes=False, threads_per_worker=1, dashboard_address=None) as cluster, \
            distributed.Client(cluster):
        for weights in (None, WEIGHTS):
            for given in SETTINGS[:2]:
                given = {"cv": 3, "estimator": TIGHT, **given}
                search = SmSVMClassifierCV(**given).fit(
                    da.from_array(X, chunks=(200, 4)), da.from_array(Y, chunks=200),
                    None if weights is None else da.from_array(weights, chunks=200))
                assert_same(search, SmSVMClassifierCV(**given).fit(X, Y, weights))
