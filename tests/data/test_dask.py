"""Fits of Dask collections over the two worker processes of a local cluster."""

import logging
import os
import signal
import sys
import threading
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from plans import drivers_of
from sklearn.exceptions import ConvergenceWarning
from started import BENCHES, ROOT, python, rows_of
from workers_in_place import InPlace, Losing, source_of

from cmargin import MarginPursuitClassifier, SLNDClassifier, SLNDClassifierCV, SmSVMClassifier, SmSVMClassifierCV
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.data.shards.workers import source as worker_source
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.problem import Problem, Settings

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
if not hasattr(signal, "SIGALRM"):
    pytest.skip("no time limits here", allow_module_level=True)

from distributed.utils import get_mp_context  # noqa: E402

from cmargin.data.shards.dask import cluster as dask_cluster  # noqa: E402
from cmargin.data.shards.workers import tasks  # noqa: E402

LIMIT = 90                     # seconds of a test; a guard against hanging, not a figure
N, D, PARTS = 3000, 8, (1000, 0, 1300, 700)
X, Y = blobs(n=N, d=D, k=3)


@pytest.fixture(autouse=True)
def time_limit():
    def late(number, frame):
        raise TimeoutError("the test hangs")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)


def started():
    """A cluster of two processes, on Linux forked off one that has made all imports."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if sys.platform.startswith("linux"):
        dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})       # of restarted workers too
        get_mp_context().set_forkserver_preload(["dask.dataframe", "distributed", "cmargin.smsvm", "cmargin.slnd",
                                                 "cmargin.data.shards.workers.tasks"])
    return distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0",
                                    host="127.0.0.1")


def in_this_process(n_workers, threads=1):
    return distributed.LocalCluster(n_workers=n_workers, threads_per_worker=threads, processes=False,
                                    dashboard_address="127.0.0.1:0")


@pytest.fixture(scope="module")
def client():
    with started() as cluster, distributed.Client(cluster) as client:
        yield client


class Broken:
    """Blocks as they are, but for one that is something else."""

    def __init__(self, place=None, becomes=None):
        self.place, self.becomes = place, becomes

    def __call__(self, block, block_info=None):
        wrong = block_info and self.place is not None and block_info[0]["chunk-location"][0] == self.place
        return self.becomes(block) if wrong else block


def rows_there(X=X, parts=PARTS, broken=None):
    """A dask array; its blocks are made on the workers."""
    there = da.from_array(X, chunks=(parts, X.shape[1:]) if X.ndim > 1 else (parts,))
    return there.map_blocks(broken or Broken(), dtype=X.dtype, meta=np.empty((0,) * X.ndim, X.dtype))


def beside(y, parts=PARTS):
    return da.from_array(y, chunks=(parts, *((size,) for size in y.shape[1:])))


def test_no_cluster():                                                             # before there is one
    with pytest.raises(ValueError, match=r"make a distributed\.Client first"):
        SmSVMClassifier().fit(rows_there(), beside(Y))
    with pytest.raises(ValueError, match=r"make a distributed\.Client first"):
        open_rows(rows_there())


# ---------------------------------------------------------------- one machine's weights

@pytest.mark.parametrize("settings, dtype", [
    ({}, np.float64), ({"loss": "logistic", "l1": 1e-3}, np.float32), ({"loss": "squared_hinge", "C": 1.0}, np.float64),
    ({"linear_solver": "cg", "fit_intercept": False, "tol": 1e-2}, np.float64),
    ({"line_search": "quadratic", "l2": 1e-2, "tol": 1e-2}, np.float64)], ids=str)
def test_the_weights_are_one_machines(client, settings, dtype):
    y = np.where(Y == 0, "ash", "elm") if dtype == np.float64 else Y
    one = SmSVMClassifier(**settings).fit(X.astype(dtype), y)
    there = SmSVMClassifier(**settings).fit(rows_there(X.astype(dtype)), beside(y))
    tolerance = 1e-2 if settings.get("linear_solver") == "cg" else 1e-5 if dtype == np.float32 else 1e-7
    np.testing.assert_allclose(there.coef_, one.coef_, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(there.objective_, one.objective_, rtol=2 * one.tol)
    np.testing.assert_array_equal(there.classes_, one.classes_)
    assert (there.duality_gap_ <= there.tol).all() and there.n_features_in_ == D


@pytest.mark.parametrize("solver", ["newton", "gd"])
def test_margin_pursuit_is_one_machines(client, solver):
    settings = {"solver": solver, "l2": "auto" if solver == "newton" else 1e-2, "max_passes": 12, "scale": "one-shot"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one = MarginPursuitClassifier(**settings).fit(X, Y)
        there = MarginPursuitClassifier(**settings).fit(rows_there(), beside(Y))
    assert there.l2_ == pytest.approx(one.l2_, rel=1e-9)
    np.testing.assert_allclose(there.coef_, one.coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(there.scale_, one.scale_)
    assert one.history_.keys() == there.history_.keys() and one.n_iter_ == there.n_iter_
    np.testing.assert_allclose(there.history_["margin_q25"], one.history_["margin_q25"])


def test_weights_indicators_and_sparse_blocks(client):
    weight = np.random.default_rng(5).choice([0.0, 0.5, 3.0], N)
    sparse_X = np.where(np.abs(X) > 0.4, X, 0)
    there = rows_there(sparse_X).map_blocks(sp.csr_matrix, dtype=float, meta=sp.csr_matrix((0, 0)))
    y = np.stack([Y == 0, Y > 0], axis=1).astype(int)
    for labels, settings in ((y, {}), (Y, {"class_weight": "balanced"})):
        one = SmSVMClassifier(**settings).fit(sp.csr_matrix(sparse_X), labels, weight)
        model = SmSVMClassifier(**settings).fit(there, beside(labels), beside(weight))
        np.testing.assert_allclose(model.coef_, one.coef_, rtol=1e-6, atol=1e-6)
        found = model.predict(there)
        np.testing.assert_array_equal(found.compute(), one.predict(sparse_X))
    again = SmSVMClassifier(class_weight="balanced").fit(there, Y, weight)           # y and weights that are here
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_many_rows_begin_on_a_subset_here_or_there(client, monkeypatch):
    rng = np.random.default_rng(1)
    many, parts = rng.standard_normal((24_000, 5)), (9000, 15_000)
    y = (many @ [1, 2, -1, 0, 1] + rng.standard_normal(24_000) > 0).astype(int)
    one = SmSVMClassifier(random_state=3).fit(many, y)
    for brought in (1 << 27, 0):
        monkeypatch.setattr(worker_source, "BROUGHT", brought)
        there = SmSVMClassifier(random_state=3).fit(rows_there(many, parts), beside(y, parts))
        np.testing.assert_allclose(there.coef_, one.coef_, rtol=1e-9)
        assert there.n_passes_ == pytest.approx(one.n_passes_) and one.n_passes_ % 1         # there was a subset


def test_int_columns_and_columns_in_chunks(client):
    whole = np.rint(3 * X).astype(np.int32)
    there = da.from_array(whole, chunks=(PARTS, 3))
    one, model = SmSVMClassifier().fit(whole, Y), SmSVMClassifier().fit(there, beside(Y))
    np.testing.assert_allclose(model.coef_, one.coef_, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(model.predict(there).compute(), one.predict(whole))


def test_a_dataframe(client):
    dd = pytest.importorskip("dask.dataframe")
    import pandas

    frame = pandas.DataFrame(X, columns=[f"x{j}" for j in range(D)]).assign(y=Y)
    there = dd.from_pandas(frame, npartitions=3)
    one = SmSVMClassifier().fit(frame.drop(columns="y"), frame["y"])
    model = SmSVMClassifier().fit(there.drop(columns="y"), there["y"])
    np.testing.assert_allclose(model.coef_, one.coef_, rtol=1e-7, atol=1e-7)
    assert list(model.feature_names_in_) == list(one.feature_names_in_)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*feature names")
        found = model.predict(there.drop(columns="y"))
    np.testing.assert_array_equal(found.compute(), one.predict(frame.drop(columns="y")))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(there.drop(columns="y").rename(columns={"x1": "y1"}))


def test_a_callback_is_not_sent_along():
    cloudpickle, lock = pytest.importorskip("cloudpickle"), threading.Lock()
    estimator = SmSVMClassifier(callback=lambda model: lock.locked())
    search = SmSVMClassifierCV([1e-3], cv=2, estimator=estimator).fit(X, Y)
    for model in (search, search.best_estimator_):
        cloudpickle.loads(cloudpickle.dumps(model.predict(rows_there())))
    assert search.best_estimator_.callback is not None


@pytest.mark.parametrize("classes", [2, 3])
def test_predictions_are_lazy(classes):
    y = np.array(["ash", "birch", "elm"])[np.minimum(Y, classes - 1)]
    for model in (SmSVMClassifier().fit(X, y), SLNDClassifier(random_state=0, max_passes=2).fit(X, y),
                  SmSVMClassifierCV([1e-3], cv=2).fit(X, y)):
        names = ["predict", "decision_function", *(["predict_proba"] if isinstance(model, SLNDClassifier) else [])]
        if isinstance(model, SLNDClassifier):
            found = model.predict_top_k(rows_there(), k=2)
            np.testing.assert_array_equal(found.compute(scheduler="synchronous"), model.predict_top_k(X, 2))
        for name in names:
            received, found = getattr(model, name)(X), getattr(model, name)(rows_there())
            assert isinstance(found, da.Array) and found.dtype == received.dtype and found.shape == received.shape
            assert found.chunks[0] == PARTS and isinstance(found._meta, np.ndarray)
            np.testing.assert_allclose(found.compute(scheduler="synchronous"),
                                       received) if received.dtype.kind == "f" else \
                np.testing.assert_array_equal(found.compute(scheduler="synchronous"), received)


# ---------------------------------------------------------------- workers that die, users who are impatient

def logistic_rows(n=24_000, parts=(8000, 8000, 8000)):
    rng = np.random.default_rng(4)
    many = rng.standard_normal((n, 6)) * [5, 4, 3, 2, 1, 1]
    return rows_there(many, parts), beside((many.sum(axis=1) + 3 * rng.standard_normal(n) > 0).astype(int), parts)


class Counter(distributed.SchedulerPlugin):
    """How often tasks of a name were done."""

    def __init__(self):
        self.done = {}

    def transition(self, key, start, finish, *others, **more):
        if start == "processing" and finish == "memory":
            self.done[name_of(key)] = self.done.get(name_of(key), 0) + 1


def name_of(key):
    return key[0].rsplit("-", 1)[0] if isinstance(key, tuple) else str(key)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_what_is_lost_is_made_again_to_the_bit(loss):
    rng = np.random.default_rng(3)
    many = rng.standard_normal((24_000, 5)).astype("f")
    many[:, 4] = np.where(rng.random(len(many)) < 0.01, 10.0, 0.0)             # a few long rows
    signed_weight, found = np.where(many @ [1, -1, 0.5, 0, 0.2] + rng.standard_normal(len(many)) > 0, 1.0, -1.0), []
    for cluster in (InPlace(), Losing()):
        source = source_of(many, signed_weight, [5000, 17_000], cluster)
        rows = source.row_pass(0, intercept=True, n_threads=1)
        problem = Problem(ElasticNet(1e-4), 5, Loss(loss))
        *_, last = (driver.finish() for driver in drivers_of(source, rows, problem, Settings(), 3))
        found.append((last.w.tobytes(), last.objective, last.dual, last.passes))
    assert cluster.lost > 5
    assert found[0] == found[1]


class Elsewhere(InPlace):
    """Workers that hold other partitions."""

    def __init__(self, *groups):
        super().__init__()
        self.given = list(groups)

    def groups(self, futures):
        return self.given


def test_where_partitions_are_changes_no_bit():
    """A task goes through the partitions of one worker's thread, and sums are folded in their own order."""
    rng = np.random.default_rng(8)
    X, found = rng.standard_normal((6000, 5)), []
    signed_weight = np.where(X @ [1, -1, 0.5, 0, 0.2] + rng.standard_normal(6000) > 0, 1.0, -1.0)
    for cluster in (Elsewhere([0], [1], [2], [3]), Elsewhere([2, 0], [3, 1]), Elsewhere([3, 2, 1, 0])):
        source = source_of(X, signed_weight, [500, 2500, 5500], cluster)
        rows = source.row_pass(0, intercept=True, n_threads=1)
        *_, last = (driver.finish() for driver in drivers_of(source, rows, Problem(ElasticNet(1e-4), 5), Settings(), 3))
        found.append((last.w.tobytes(), last.objective, last.dual, last.passes))
    assert found[0] == found[1] == found[2]


def test_a_task_goes_through_what_a_thread_of_a_worker_holds():
    holders = [("a",), ("b",), ("a", "b"), (), ("a",), ("b", "a"), ("gone",), ("a",)]
    futures = [SimpleNamespace(key=("x", place)) for place in range(len(holders))]
    client = SimpleNamespace(who_has=lambda of: dict(zip([one.key for one in of], holders, strict=True)),
                             nthreads=lambda: {"b": 1, "a": 2, "c": 8})
    assert dask_cluster.Cluster(client).groups(futures) == [[3], [6], [0, 2], [4, 7], [1, 5]]
    source = source_of(np.zeros((5, 1)), np.ones(5), [1, 2, 3, 4], Elsewhere([3, 0], [4, 1, 2]))
    source.form_groups()
    assert source.in_groups("pqrst") == [[["s", "p"], ["t", "q", "r"]]]
    assert source.by_place(source.in_groups("pqrst")[0]) == list("pqrst")


@pytest.mark.parametrize("read", [True, False])
def test_a_task_of_a_round_is_for_a_group(client, read):
    """Also where the partitions are not read before the fit begins, and so are nowhere."""
    def slowly(block):
        time.sleep(0.1)
        return block

    counter = Counter()
    client.cluster.scheduler.add_plugin(counter, name="counter")
    parts = (500,) * 8
    many, y = rows_there(np.random.default_rng(2).standard_normal((4000, 3)), parts), beside(np.arange(4000) % 2, parts)
    if read:
        many, y = client.persist(many), client.persist(y)
        distributed.wait([many, y])
    else:
        many = many.map_blocks(slowly, dtype=float)
    model = SmSVMClassifier(max_passes=30).fit(many, y)
    client.cluster.scheduler.remove_plugin("counter")
    evaluations = len(model.history_["passes"])
    assert counter.done["cmargin-evaluate"] <= 2 * (evaluations + 2) \
        and (counter.done["cmargin-check"] <= 2 or not read)


def test_a_worker_killed_in_mid_fit_changes_no_bit(monkeypatch):
    monkeypatch.setattr(worker_source, "BROUGHT", 0)                               # the subset stays there too
    with started() as cluster, distributed.Client(cluster) as client:
        many, y = logistic_rows()
        counter, evaluations = Counter(), []
        cluster.scheduler.add_plugin(counter)
        calm = SmSVMClassifier(tol=1e-6, random_state=1, callback=lambda model: False).fit(many, y)
        calm_done, counter.done = counter.done["cmargin-evaluate"], {}

        def kill(model):
            evaluations.append(model.n_passes_)
            if len(evaluations) == calm_evaluations - 2:
                holding = client.who_has()
                holders = {worker for key, workers in holding.items() if name_of(key) == "cmargin-evaluate"
                           for worker in workers}
                os.kill(client.run(os.getpid, workers=[min(holders)])[min(holders)], signal.SIGKILL)

        calm_evaluations = len(calm.history_["passes"])
        model = SmSVMClassifier(tol=1e-6, random_state=1, callback=kill).fit(many, y)
        assert model.coef_.tobytes() == calm.coef_.tobytes() and model.intercept_ == calm.intercept_
        assert model.objective_ == calm.objective_ and model.n_passes_ == calm.n_passes_
        killed_done = counter.done["cmargin-evaluate"]
        assert calm_done < killed_done <= 2 * calm_done                        # those lost, once more


def test_an_interrupt_leaves_the_best_weights(client):
    many, y = logistic_rows()
    said = []

    def interrupt(model):
        said.append(model.coef_.copy())
        if len(said) == 3:
            said.append(time.perf_counter())
            threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT)).start()

    model = SmSVMClassifier(tol=1e-9, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(many, y)
    assert np.isfinite(model.coef_).all() and time.perf_counter() - said[3] < 5
    again = SmSVMClassifier().fit(many, y)                                     # the cluster is as good as before
    assert again.score(many.compute(), y.compute()) > 0.8


def test_a_time_limit(client):
    many, y = logistic_rows()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = SmSVMClassifier(tol=1e-9, max_time=0.05).fit(many, y)
    assert np.isfinite(model.coef_).all()


def test_the_cluster_keeps_what_is_the_users(client):
    many, y = client.persist([rows_there(), beside(Y)])
    distributed.wait([many, y])
    theirs, before = {future.key for future in distributed.futures_of([many, y])}, set(client.who_has())
    model = SmSVMClassifier().fit(many, y)
    again = SmSVMClassifier().fit(many, y)
    assert model.coef_.tobytes() == again.coef_.tobytes()
    for _ in range(100):                        # the scheduler is told in a while, of what tests before left too
        if set(client.who_has()) <= before:
            break
        time.sleep(0.05)
    assert len(theirs) == 8 and theirs <= set(client.who_has()) <= before
    np.testing.assert_array_equal(many.compute(), X)


def test_threads_of_a_worker_and_names_of_tasks(monkeypatch):
    one = SmSVMClassifier(n_jobs=1).fit(X, Y)
    counter, real = Counter(), tasks.Partition.answers

    def answers(self, calls):
        received = real(self, [*calls, ("threads", ())])
        assert received.pop() == 1                                             # of BLAS, while it answers
        return received

    def threads(self):
        from cmargin._runtime.blas_threads import blas_threads, single_threaded_blas

        with single_threaded_blas():
            return max(blas_threads().values())

    monkeypatch.setattr(tasks.Partition, "answers", answers)
    monkeypatch.setattr(tasks.Partition, "threads", threads, raising=False)
    with in_this_process(1, 3) as there:
        with distributed.Client(there):
            there.scheduler.add_plugin(counter)
            for n_jobs in (None, 2):
                model = SmSVMClassifier(n_jobs=n_jobs).fit(rows_there(), beside(Y))
                np.testing.assert_allclose(model.coef_, one.coef_, rtol=1e-7, atol=1e-7)
    assert {"cmargin-check", "cmargin-weigh", "cmargin-open-pass", "cmargin-evaluate"} <= set(counter.done)


# ---------------------------------------------------------------- bad input: a sentence

def test_storage_that_answers_with_a_time_out_of_its_own(client):
    def no_answer(block):
        if len(block) == 700:
            raise TimeoutError("the storage gave no answer")
        return block

    with pytest.raises(TimeoutError, match="the storage gave no answer"):
        SmSVMClassifier(max_passes=5).fit(rows_there().map_blocks(no_answer, dtype=float), beside(Y))


def as_it_is(block):
    return block


@pytest.mark.parametrize("broken, error, text", [
    (lambda X: X[:, :-1], ValueError, r"disagree on the number of columns of X: 8 in partition 0, 7 in partition 2"),
    (lambda X: X.astype(np.float32), ValueError, "disagree on the dtype of X: 'float64' in partition 0, 'float32'"),
    (lambda X: X.astype(int), TypeError, r"got int64.*\(in partition 2\)"),
    (lambda X: np.where(X > 1, np.nan, X), ValueError, r"(?s)contains NaN.*\(in partition 2\)"),
    (lambda X: [X], Exception, r"partition 2|list"),
], ids=["columns", "dtype", "ints", "NaN", "list"])
def test_partitions_that_do_not_fit_together(client, broken, error, text):
    with pytest.raises(error, match=text):
        SmSVMClassifier().fit(rows_there(broken=Broken(2, broken)), beside(Y))


@pytest.mark.parametrize("given, error, text", [
    (lambda: (SmSVMClassifier(), rows_there()[rows_there()[:, 0] > 0], beside(Y)), ValueError,
     r"unknown length; call X.compute_chunk_sizes\(\) first"),
    (lambda: (SmSVMClassifier(), rows_there(), beside(Y)[beside(Y) > 0]), ValueError, r"y.compute_chunk_sizes\(\)"),
    (lambda: (SmSVMClassifier(), rows_there(), Y[:-1]), ValueError, r"inconsistent numbers of samples: \[3000, 2999\]"),
    (lambda: (SmSVMClassifier(), rows_there(), beside(0 * Y)), ValueError, "only one class"),
    (lambda: (SmSVMClassifier(), beside(Y), beside(Y)), ValueError, "Expected 2D array, got 1D"),
    (lambda: (SmSVMClassifier(linear_solver="dual"), rows_there(), beside(Y)), ValueError, "with Dask collections use"),
    (lambda: (MarginPursuitClassifier(solver="sgd"), rows_there(), beside(Y)), ValueError, "with Dask collections use"),
    (lambda: (SLNDClassifierCV(), rows_there(), beside(Y)), TypeError, "does not take Dask collections"),
    (lambda: (SmSVMClassifier(tol=-1), rows_there(), beside(Y)), ValueError, "'tol' parameter"),
], ids=["X of unknown length", "y of unknown length", "length", "one class", "1D", "dual", "sgd", "CV", "tol"])
def test_what_is_refused(client, given, error, text):
    model, X, y = given()
    with pytest.raises(error, match=text):
        model.fit(X, y)
    assert not hasattr(model, "coef_") and not hasattr(model, "n_features_in_")


def test_a_cluster_without_workers(monkeypatch):
    monkeypatch.setattr(dask_cluster, "PATIENCE", 0.3)
    monkeypatch.setattr(dask_cluster, "WORKER_CHECK", 0.1)
    with in_this_process(0) as cluster, distributed.Client(cluster):
        with pytest.raises(RuntimeError, match=r"has had no worker for 0\.3 seconds"):
            SmSVMClassifier().fit(rows_there(), beside(Y))


def forget_cmargin(dask_worker):
    names = [name for name in sys.modules if name.partition(".")[0] == "cmargin"]
    dask_worker.forgotten = {name: sys.modules.pop(name) for name in names}
    sys.modules["cmargin"] = None                                              # as where it is not installed


def remember_cmargin(dask_worker):
    del sys.modules["cmargin"]
    sys.modules.update(dask_worker.forgotten)


def test_a_worker_that_cannot_import_cmargin(client):
    client.run(forget_cmargin)
    try:
        with pytest.raises(ImportError, match=r"must have cmargin installed: .*cmargin"):
            SmSVMClassifier().fit(rows_there(), beside(Y))
    finally:
        client.run(remember_cmargin)


def test_an_asynchronous_client_is_refused():
    with pytest.raises(ValueError, match="asynchronous=False"):
        dask_cluster.client_of(type("Client", (), {"asynchronous": True})())


def test_the_comparison_prints_its_table():
    script = BENCHES / "compare_dask.py"
    if not script.exists():
        pytest.skip("the benchmarks are not beside the tests")
    found = {row[0]: row for row in rows_of(python(script, "--quick", "--partitions", 2, limit=LIMIT, folders=[ROOT]))}
    for name in ("SmSVM, logistic", "margin pursuit"):          # the hinge's dual is tried in memory, and nowhere else
        assert found[name][5] == found[name][6] and float(found[name][9]) < 1e-9
