"""`smsvm_path` over ranks that are threads here, and of a Dask array: the fits of one machine, one path everywhere."""

import pickle

import numpy as np
import pytest
from conftest import blobs
from ranks_in_threads import on_ranks

from cmargin import SmSVMClassifier, smsvm_path
from cmargin.data.shards.workers.source import WorkerSource

X, Y = blobs(600, 5, 3, 1)
SETTINGS = [{"l2s": np.geomspace(1, 1e-4, 9)}, {"l2s": np.geomspace(1, 1e-4, 9), "loss": "logistic"},
            {"Cs": [1e-3, 1e-1], "class_weight": "balanced"}, {"l2s": [1e-1, 1e-2], "l1_ratio": 0.3}, {"tol": 1e-2},
            {"l1s": [1e-1, 1e-2], "loss": "squared_hinge"}]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_ranks_have_one_machines_path(settings, classes):
    settings = {"tol": 1e-6, **settings}
    y, weights = np.minimum(Y, classes - 1), np.random.default_rng(0).uniform(0.5, 1, len(Y))
    one = smsvm_path(X, y, sample_weight=weights, **settings)
    parts = [slice(0, 250), slice(250, 250), slice(250, 600)]      # of which one has no rows
    paths, _ = on_ranks(3, lambda comm: smsvm_path(X[parts[comm.rank]], y[parts[comm.rank]], comm=comm,
                                                   sample_weight=weights[parts[comm.rank]], **settings))
    for path in paths:
        assert not isinstance(path, BaseException), path
        assert np.array_equal(path.coefs, paths[0].coefs) and path.gaps.max() <= settings["tol"]
    np.testing.assert_allclose(path.l2s, one.l2s, rtol=1e-9)
    np.testing.assert_allclose(path.objectives, one.objectives, rtol=1e-9)
    assert path.at(one.l2s[0], one.l1s[0]).predict(X).shape == y.shape
    pickle.dumps(path)


def test_an_estimators_path_and_what_is_wrong_with_one_is_said_everywhere():
    paths, _ = on_ranks(2, lambda comm: SmSVMClassifier().path(X[comm.rank::2], Y[comm.rank::2], l2s=[0.1], comm=comm))
    assert paths[1].coefs.shape == (1, 3, 5)
    for settings, text in (({"line_search": "quadratic"}, "line_search='exact'"), ({"linear_solver": "dual"}, "comm=")):
        found, _ = on_ranks(2, lambda comm, settings=settings: SmSVMClassifier(**settings).path(
            X[comm.rank::2], Y[comm.rank::2], l2s=[0.1], comm=comm))
        for error in found:
            with pytest.raises(ValueError, match=text):
                raise error


def test_a_penalty_that_is_wrong_on_one_rank_is_said_on_all():
    found, _ = on_ranks(2, lambda comm: smsvm_path(X, Y, l2s=[-1.0 if comm.rank else 1.0], comm=comm))
    assert isinstance(found[0], ValueError) and str(found[0]) == str(found[1])


def test_fits_of_a_dask_array_share_rounds(monkeypatch):
    da, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    rounds, send = [], WorkerSource.send
    monkeypatch.setattr(WorkerSource, "send", lambda self: (rounds.append(1), send(self)))
    grid = np.geomspace(1, 1e-5, 30)
    with distributed.LocalCluster(1, processes=False, threads_per_worker=1, dashboard_address=None) as cluster, \
            distributed.Client(cluster):
        path = smsvm_path(da.from_array(X, chunks=(200, 5)), da.from_array(Y, chunks=200), l2s=grid, loss="logistic",
                          tol=1e-5)
    assert path.gaps.max() <= 1e-5 and len(rounds) < 0.7 * path.n_passes
    np.testing.assert_allclose(path.objectives, smsvm_path(X, Y, l2s=grid, loss="logistic", tol=1e-5).objectives,
                               rtol=1e-5)
