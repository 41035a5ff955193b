"""SLND over partitions: as good as one machine however classes lie, the same bits whoever does it and what is lost."""

import gc
import os
import signal
import time
import warnings
import weakref
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from ranks_in_threads import OneProblem
from sklearn.exceptions import ConvergenceWarning
from workers_in_place import InPlace, Losing, fitted_in_place, source_of

from cmargin import BSNClassifier, SLNDClassifier, SmSVMClassifier, baselines
from cmargin._estimators.labels import Labels
from cmargin.data.memory.row_pass import MemoryRowPass
from cmargin.data.shards.dask import cluster
from cmargin.data.shards.workers import source as worker_source
from cmargin.data.shards.workers.tasks import Labelled, Partition, Round, next_state
from cmargin.solvers.cost import GROUPS_OF_PARTITIONS
from cmargin.solvers.sgd.run import ENOUGH

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
if not hasattr(signal, "SIGALRM"):
    pytest.skip("no time limits here", allow_module_level=True)

from test_dask import beside, client, name_of, rows_there, started, time_limit  # noqa: E402, F401

from cmargin.data.shards.workers.walkers import groups_of  # noqa: E402

ONE_VS_REST, MULTINOMIAL = {"loss": "logistic", "max_passes": 3}, {"max_passes": 4}


def model(**parameters):
    return SLNDClassifier(**{"random_state": 3, **parameters})


def parts_of(n, k):
    return tuple(len(part) for part in np.array_split(np.arange(n), k))


# ---------------------------------------------------------------- with workers

@pytest.mark.parametrize("settings, how", [
    (MULTINOMIAL | {"max_passes": 3}, "random"), (MULTINOMIAL | {"step_size": 1.0, "average": False}, "sparse"),
    (MULTINOMIAL | {"max_passes": 2}, "sorted"), (MULTINOMIAL | {"step_size": 1.0, "hessian_refresh": 2}, "sparse"),
    (MULTINOMIAL | {"step_size": 1.0, "tail": "drop", "rank": 5, "max_passes": 3}, "sorted"),
    (ONE_VS_REST | {"class_weight": "balanced"}, "random"), (ONE_VS_REST, "sorted"),
    (ONE_VS_REST | {"loss": "squared", "average": False, "step_size": 0.2}, "sparse"),
    (ONE_VS_REST | {"hessian_refresh": 1, "step_size": 0.2}, "random")], ids=str)
def test_as_good_as_one_machine(client, digits, settings, how):                    # noqa: F811
    X, X_test, y, y_test = digits
    if how == "sorted":
        X, y = X[np.argsort(y, kind="stable")], np.sort(y)
    parts = parts_of(len(y), 4)
    there = rows_there(X, parts)
    weight = np.random.default_rng(5).choice([0.0, 1.0, 1.0, 2.0], len(y)) if "loss" in settings else np.ones(len(y))
    if how == "sparse":
        X = sp.csr_matrix(X)
        there = there.map_blocks(sp.csr_matrix, dtype=float, meta=sp.csr_matrix((0, 0)))
    one = model(**settings).fit(X, y, weight)
    found = model(**settings).fit(there, beside(y, parts), beside(weight, parts))
    assert found.score(X_test, y_test) > one.score(X_test, y_test) - (0.03 if "loss" in settings else 0.025)
    assert found.history_.keys() == one.history_.keys() and found.loss_ == one.loss_ and found.n_features_in_ == 64
    np.testing.assert_allclose(found.class_prior_, one.class_prior_)
    np.testing.assert_array_equal(found.classes_, one.classes_)
    if "loss" in settings:
        np.testing.assert_allclose(found.sampled_prior_, one.sampled_prior_, rtol=0.15)   # rows of weight 0 stay


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


@pytest.mark.parametrize("how", ["random", "by class"])
def test_two_classes_and_an_indicator(client, how):                                # noqa: F811
    X, y = blobs(n=2400, d=8, k=3)
    if how == "by class":
        X, y = X[np.argsort(y)], np.sort(y)
    parts, names = (900, 0, 700, 800), np.array(["no", "yes"])[(y > 0).astype(int)]
    one = BSNClassifier(random_state=1, max_passes=2).fit(X, names)
    found = BSNClassifier(random_state=1, max_passes=2, warm_start=True).fit(rows_there(X, parts), beside(names, parts))
    assert found.loss_ == "logistic" and found.coef_.shape == (1, 8) and found.classes_.tolist() == ["no", "yes"]
    assert found.score(X, names) > one.score(X, names) - 0.005
    np.testing.assert_array_equal(found.history_["visits"], one.history_["visits"])
    found.fit(rows_there(X, parts), beside(names, parts))
    assert found._passes_total == 4 and found.score(X, names) > one.score(X, names) - 0.005
    Y = np.column_stack([y == 0, y > 0, X[:, 0] > 0]).astype(int)
    labels = da.from_array(Y, chunks=(parts[:1] + parts[1:], 3))
    wanted, there = (SLNDClassifier(random_state=2, max_passes=3).fit(*given)
                     for given in ((X, Y), (rows_there(X, parts), labels)))
    assert ((there.predict(X) == Y).mean(axis=0) > (wanted.predict(X) == Y).mean(axis=0) - 0.02).all()


@pytest.mark.parametrize("k, settings", [(2, {"loss": "logistic"}), (4, {"step_size": 1.0})], ids=str)
def test_a_time_limit_and_an_interrupt(client, k, settings):                       # noqa: F811
    X, y = blobs(n=6000, d=12, k=k)
    rows, labels, said = rows_there(X, (2000, 4000)), beside(y, (2000, 4000)), []
    for seconds in (3.0, 9.0, 27.0):                  # a busy machine needs a while for its first pass
        with pytest.warns(ConvergenceWarning, match="max_time"):
            found = model(max_passes=10_000, **settings, max_time=seconds).fit(rows, labels)
        assert np.isfinite(found.coef_).all() and found.n_iter_ < 10_000
        if found.n_iter_ > 0:
            break
    assert found.n_iter_ > 0

    def interrupt(one):
        said.append(1)
        if len(said) == 2:
            raise KeyboardInterrupt

    found = model(max_passes=10_000, **settings, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        found.fit(rows, labels)
    assert found.score(X, y) > 0.7


def test_many_partitions_make_few_groups(client, digits):                          # noqa: F811
    X, X_test, y, y_test = digits
    parts = parts_of(len(y), 19)
    one = model(step_size=1.0, max_passes=2).fit(X, y)
    found = model(step_size=1.0, max_passes=2).fit(rows_there(X, parts), beside(y, parts))
    assert found.score(X_test, y_test) > one.score(X_test, y_test) - 0.025
    np.testing.assert_array_equal(found.history_["visits"], len(y))               # every row once a pass


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


def test_nothing_of_a_fit_is_left_to_the_collector(client, monkeypatch):           # noqa: F811
    # distributed keeps an error that it raises to a caller in a cycle with the caller's frames, and a wait for workers
    # ended with one ten times a second: the fit stayed with it
    monkeypatch.setattr(cluster, "POLL", 1e-4)                                     # seconds, shorter than any task
    X, y = blobs(n=300, d=5, k=3)
    gc.disable()
    try:
        rows = da.from_array(X, chunks=(100, 5))
        gone = weakref.ref(rows)
        SmSVMClassifier().fit(rows, da.from_array(y, chunks=100))
        del rows
        assert gone() is None
    finally:
        gc.enable()


def test_an_error_is_a_sentence(client):                                           # noqa: F811
    X, y = blobs(n=900, d=6, k=3)
    X[:, 2] *= 1e200
    with pytest.raises(ValueError, match="holds NaN or infinity"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model().fit(rows_there(X, (400, 500)), beside(y, (400, 500)))


@pytest.mark.parametrize("estimator, labels, text", [
    (SLNDClassifier(loss="logistic", step_size="theory"), 3, "step_size='theory' does not go with Dask"),
    (SLNDClassifier(l1=1.0), 3, "l1 > 0 does not go with Dask collections yet"),
    (baselines.BalancedSGDClassifier(), 3, "does not take Dask collections yet"),
    (SLNDClassifier(checkpoint="here"), 3, "checkpoint= does not go with Dask collections yet")],
    ids=["theory", "l2", "baseline", "checkpoint"])
def test_what_is_refused(client, estimator, labels, text):                         # noqa: F811
    X, y = blobs(n=300, d=5, k=labels)
    with pytest.raises(ValueError, match=text):
        estimator.fit(rows_there(X, (100, 200)), beside(y, (100, 200)))


# ---------------------------------------------------------------- tasks done in place

def test_partitions_are_dealt_to_eight_groups():
    assert groups_of([5, 0, 7], GROUPS_OF_PARTITIONS, ENOUGH) == [[0], [2]]
    assert groups_of([5, 3, 7], GROUPS_OF_PARTITIONS, ENOUGH) == [[0], [1, 2]]
    assert len(groups_of([3000] * 20, GROUPS_OF_PARTITIONS, ENOUGH)) == 3
    groups = groups_of([10_000] * 20 + [30_000], GROUPS_OF_PARTITIONS, ENOUGH)
    assert len(groups) == 8 and sorted(place for group in groups for place in group) == list(range(21))
    assert all(group == sorted(group) for group in groups)


@pytest.mark.parametrize("by_class", [False, True], ids=["random", "by class"])
@pytest.mark.parametrize("settings", [ONE_VS_REST, MULTINOMIAL, ONE_VS_REST | {"hessian_refresh": 1, "step_size": 0.3}],
                         ids=str)
def test_what_is_lost_is_made_again_to_the_bit(settings, by_class):
    X, y = blobs(n=1500, d=7, k=3)
    if by_class:
        X, y = X[np.argsort(y)], np.sort(y)
    found, clusters = [], []
    for kind in (InPlace, Losing):
        clusters.append(kind())
        one = fitted_in_place(model(**settings), X, y, [500, 1100], clusters[-1])
        found.append((one.coef_.tobytes(), one.intercept_.tobytes(), one.history_["objective"].tobytes()))
    assert clusters[1].lost > 5 and found[0] == found[1]
    assert ("mix" in clusters[0].names) == by_class


def test_a_pass_has_as_many_rounds_however_classes_lie():
    X, y = blobs(n=1200, d=5, k=3)
    rounds = []
    for order in (np.arange(1200), np.argsort(y)):
        for loss in ("logistic", "multinomial"):
            cluster = InPlace()
            fitted_in_place(model(loss=loss, max_passes=2, step_size=0.5), X[order], y[order], [300, 700], cluster)
            rounds.append(cluster.names.count("steps"))
    assert rounds == [40] * 4                    # two groups of partitions, ten means a pass, two passes


def test_walks_through_a_group_and_weighs_groups_by_their_visits(digits):
    X, X_test, y, y_test = digits
    y = (y < 3).astype(int)
    one = SLNDClassifier(random_state=3, max_passes=2).fit(X, y)
    found = fitted_in_place(SLNDClassifier(random_state=3, max_passes=2), X, y, [50, *range(100, 1300, 100)], InPlace())
    found.n_features_in_ = 64
    assert found.score(X_test, y_test < 3) > one.score(X_test, y_test < 3) - 0.02


@pytest.mark.parametrize("pieces", [64, 3])
def test_mixed_partitions_have_every_row_once_and_classes_in_their_share(pieces, monkeypatch):
    monkeypatch.setattr(worker_source, "PIECES", pieces)
    n, cuts = 4000, [700, 700, 1500, 2000, 2600, 3300]
    X, y = np.arange(2.0 * n).reshape(n, 2), np.repeat(np.arange(4), n // 4)
    weight = np.linspace(0, 1, n)
    cluster = InPlace()
    source = source_of(X, y, cuts, cluster)
    ends = [0, *cuts, n]
    source.labelled = cluster.everywhere("label", Labelled, *zip(*(
        (Labels(np.arange(4), y[lo:hi]), weight[lo:hi], lo, p) for p, (lo, hi) in
        enumerate(pairwise(ends))), strict=True))
    source.redistribute(seed=3)
    rows, labelled = (cluster.results(futures) for futures in (source.X, source.labelled))
    assert [len(part) for part in rows] == source.sizes and sum(source.sizes) == n
    assert [one.first for one in labelled] == np.cumsum([0, *source.sizes])[:-1].tolist()
    places = np.concatenate(rows)[:, 0].astype(int) // 2
    np.testing.assert_array_equal(np.sort(places), np.arange(n))
    np.testing.assert_array_equal(np.concatenate([one.labels.label for one in labelled]), y[places])
    np.testing.assert_array_equal(np.concatenate([one.weights for one in labelled]), weight[places])
    if pieces == 64:
        for one in labelled:
            assert np.abs(np.bincount(one.labels.label, minlength=4) / len(one.weights) - 0.25).max() < 0.03


def test_what_a_task_made_is_gone_with_it():
    # passes were made by a function that held the partition, which held the passes: memory until the collector came
    X, y = blobs(n=200, d=5, k=2)
    labelled = Labelled(OneProblem(np.where(y == y[0], 1.0, -1.0)), np.ones(len(y)), 0, 0)
    a_round = Round([("open_pass", (1, 0, True))], set(), 1)
    gc.disable()
    try:
        partition = Partition(X, labelled, next_state(X, labelled, None, a_round), a_round)
        assert isinstance(partition.passes[1], MemoryRowPass)
        gone = weakref.ref(partition)
        del partition
        assert gone() is None
    finally:
        gc.enable()
