"""SLND over the two worker processes of a local cluster: as good as one machine, the same bits whoever does it."""

import os
import signal
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from sklearn.exceptions import ConvergenceWarning
from workers_in_place import InPlace, Losing, fitted_in_place

from cmargin import BSNClassifier, SLNDClassifier, baselines
from cmargin.solvers.cost import GROUPS_OF_PARTITIONS
from cmargin.solvers.sgd.run import ENOUGH

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
if not hasattr(signal, "SIGALRM"):
    pytest.skip("no time limits here", allow_module_level=True)

from test_dask import beside, client, name_of, rows_there, started, time_limit  # noqa: E402, F401

from cmargin.data.shards.workers.walkers import groups_of  # noqa: E402


def model(**parameters):
    return SLNDClassifier(**{"random_state": 3, "max_passes": 4, **parameters})


def parts_of(n, k):
    return tuple(len(part) for part in np.array_split(np.arange(n), k))


@pytest.mark.parametrize("settings, how", [
    ({"max_passes": 3}, "random"), ({"step_size": 1.0, "average": False}, "sparse"), ({"max_passes": 2}, "sorted"),
    ({"step_size": 1.0, "tail": "drop", "rank": 5, "max_passes": 3}, "sorted"),
    ({"step_size": 1.0, "hessian_refresh": 2}, "sparse")], ids=str)
def test_as_good_as_one_machine(client, digits, settings, how):                    # noqa: F811
    X, X_test, y, y_test = digits
    if how == "sorted":
        X, y = X[np.argsort(y, kind="stable")], np.sort(y)
    parts = parts_of(len(y), 4)
    there = rows_there(X, parts)
    if how == "sparse":
        X = sp.csr_matrix(X)
        there = there.map_blocks(sp.csr_matrix, dtype=float, meta=sp.csr_matrix((0, 0)))
    one = model(**settings).fit(X, y)
    found = model(**settings).fit(there, beside(y, parts))
    assert found.score(X_test, y_test) > one.score(X_test, y_test) - 0.025
    assert found.history_.keys() == one.history_.keys() and found.n_features_in_ == 64
    np.testing.assert_allclose(found.class_prior_, one.class_prior_)
    np.testing.assert_array_equal(found.classes_, one.classes_)


def test_weights_indicators_of_places_and_empty_partitions(client):                # noqa: F811
    X, y = blobs(n=3000, d=8, k=3)
    weight = np.random.default_rng(5).choice([0.0, 0.5, 3.0], len(y))
    parts = (1000, 0, 1300, 700)
    names = np.array(["ash", "birch", "elm"])[y]
    one = BSNClassifier(random_state=2, class_weight="balanced", max_passes=3).fit(X, names, weight)
    there = BSNClassifier(random_state=2, class_weight="balanced", max_passes=3).fit(
        rows_there(X, parts), beside(names, parts), beside(weight, parts))
    assert abs(there.score(X, names, weight) - one.score(X, names, weight)) < 0.02
    assert there.history_["visits"][0] <= 3000 and there.history_["objective"][-1] < 1.5
    two = SLNDClassifier(loss="multinomial", random_state=1, max_passes=2, warm_start=True)
    two.fit(rows_there(X, parts), beside((y > 0).astype(int), parts))
    before = two._passes_total
    two.fit(rows_there(X, parts), beside((y > 0).astype(int), parts))
    assert two.coef_.shape == (1, 8) and two._passes_total > before and two.score(X, (y > 0).astype(int)) > 0.8


def test_partitions_are_dealt_to_eight_groups():
    assert groups_of([5, 0, 7], GROUPS_OF_PARTITIONS, ENOUGH) == [[0], [2]]
    assert groups_of([5, 3, 7], GROUPS_OF_PARTITIONS, ENOUGH) == [[0], [1, 2]]
    assert len(groups_of([3000] * 20, GROUPS_OF_PARTITIONS, ENOUGH)) == 3
    groups = groups_of([10_000] * 20 + [30_000], GROUPS_OF_PARTITIONS, ENOUGH)
    assert len(groups) == 8 and sorted(place for group in groups for place in group) == list(range(21))
    assert all(group == sorted(group) for group in groups)


def test_many_partitions_make_few_groups(client, digits):                          # noqa: F811
    X, X_test, y, y_test = digits
    parts = parts_of(len(y), 19)
    one = model(step_size=1.0, max_passes=2).fit(X, y)
    found = model(step_size=1.0, max_passes=2).fit(rows_there(X, parts), beside(y, parts))
    assert found.score(X_test, y_test) > one.score(X_test, y_test) - 0.025
    np.testing.assert_array_equal(found.history_["visits"], len(y))               # every row once a pass


def test_what_is_lost_is_made_again_to_the_bit():
    X, y = blobs(n=2000, d=7, k=3)
    found, clusters = [], []
    for kind in (InPlace, Losing):
        clusters.append(kind())
        one = fitted_in_place(model(), X, y, [500, 1200], clusters[-1])
        found.append((one.coef_.tobytes(), one.intercept_.tobytes(), one.history_["objective"].tobytes()))
    assert clusters[1].lost > 5 and found[0] == found[1]


def test_a_worker_killed_in_mid_fit_changes_no_bit():
    X, y = blobs(n=6000, d=12, k=4)
    parts = (2000, 1500, 2500)
    settings = {"step_size": 1.0, "max_passes": 4}
    with started() as cluster, distributed.Client(cluster) as there:
        rows, labels = rows_there(X, parts), beside(y, parts)
        calm = model(**settings, callback=lambda one: False).fit(rows, labels)
        passes = []

        def kill(one):
            passes.append(one.n_passes_)
            if len(passes) == 2:
                holding = there.who_has()
                whitened = {worker for key, workers in holding.items() if name_of(key) == "cmargin-whiten"
                            for worker in workers}
                assert whitened
                os.kill(there.run(os.getpid, workers=[min(whitened)])[min(whitened)], signal.SIGKILL)

        found = model(**settings, callback=kill).fit(rows, labels)
        assert found.coef_.tobytes() == calm.coef_.tobytes() and found.intercept_.tobytes() == calm.intercept_.tobytes()
        np.testing.assert_array_equal(found.history_["objective"], calm.history_["objective"])
        assert len(passes) == 4


def test_nothing_stays_with_the_workers(client):                                   # noqa: F811
    X, y = blobs(n=900, d=6, k=3)
    model(max_passes=1).fit(rows_there(X, (400, 500)), beside(y, (400, 500)))
    for _ in range(100):                                                           # the scheduler is told in a while
        left = [key for key in client.who_has() if name_of(key).startswith("cmargin")]
        if not left:
            break
        time.sleep(0.05)
    assert not left


def test_a_time_limit_and_an_interrupt(client):                                    # noqa: F811
    X, y = blobs(n=6000, d=12, k=4)
    rows, labels, said = rows_there(X, (2000, 4000)), beside(y, (2000, 4000)), []
    for seconds in (3.0, 9.0, 27.0):                  # a busy machine needs a while for its first pass
        with pytest.warns(ConvergenceWarning, match="max_time"):
            found = model(max_passes=10_000, step_size=1.0, max_time=seconds).fit(rows, labels)
        assert np.isfinite(found.coef_).all() and found.n_iter_ < 10_000
        if found.n_iter_ > 0:
            break
    assert found.n_iter_ > 0

    def interrupt(one):
        said.append(1)
        if len(said) == 2:
            raise KeyboardInterrupt

    found = model(max_passes=10_000, step_size=1.0, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        found.fit(rows, labels)
    assert found.score(X, y) > 0.7


def test_an_error_is_a_sentence(client):                                           # noqa: F811
    X, y = blobs(n=900, d=6, k=3)
    X[:, 2] *= 1e200
    with pytest.raises(ValueError, match="holds NaN or infinity"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model().fit(rows_there(X, (400, 500)), beside(y, (400, 500)))


@pytest.mark.parametrize("estimator, labels, text", [
    (SLNDClassifier(loss="logistic", step_size="theory"), 3, "step_size='theory' does not go with Dask"),
    (SLNDClassifier(l2=1.0), 3, "l2 > 0 does not go with Dask collections yet"),
    (baselines.BalancedSGDClassifier(), 3, "does not take Dask collections yet"),
    (SLNDClassifier(checkpoint="here"), 3, "checkpoint= does not go with Dask collections yet")],
    ids=["theory", "l2", "baseline", "checkpoint"])
def test_what_is_refused(client, estimator, labels, text):                         # noqa: F811
    X, y = blobs(n=300, d=5, k=labels)
    with pytest.raises(ValueError, match=text):
        estimator.fit(rows_there(X, (100, 200)), beside(y, (100, 200)))
