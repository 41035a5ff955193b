"""Data sources of rows: places, formats, dtypes and weights; nobody else asks what X is, or for more than is
declared.
"""

import inspect
import re
import shutil
import tempfile
import warnings
import weakref
from pathlib import Path

import naive_smsvm as naive
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs, named
from correlated_columns import correlated_columns
from elsewhere import Elsewhere
from estimators import quick_estimators
from ranks_in_threads import pass_over_ranks
from rare_columns import rows_with_rare_columns
from rows_in_files import files_of
from sklearn.exceptions import ConvergenceWarning
from tensors import strict, strict_on
from workers_in_place import pass_over_partitions

import cmargin
from cmargin import SLNDClassifier, SmSVMClassifier, baselines
from cmargin._estimators import validation
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data import open_rows
from cmargin.data import source as base
from cmargin.data.device.row_pass import DeviceRowPass
from cmargin.data.device.score_blocks import DeviceScoreBlocks
from cmargin.data.device.source import DeviceSource
from cmargin.data.device.stochastic_rows import DeviceStochasticRows
from cmargin.data.files.row_pass import FileRowPass
from cmargin.data.files.softmax_rows import FileSoftmaxPass
from cmargin.data.files.source import FileSource
from cmargin.data.files.stochastic_rows import FileStochasticRows
from cmargin.data.files.walkers import FileWalkers
from cmargin.data.loss import Loss
from cmargin.data.memory import dual_rows, row_pass, score_blocks, softmax_rows, stochastic_rows
from cmargin.data.memory import source as memory
from cmargin.data.open_here import source_of
from cmargin.data.shards.mpi import RankPass, RankSource
from cmargin.data.shards.softmax_rows import ShardedSoftmaxPass
from cmargin.data.shards.walkers import RankWalkers
from cmargin.data.shards.workers import source as worker_source
from cmargin.data.shards.workers.source import WorkerPass
from cmargin.data.shards.workers.walkers import WorkerWalkers
from cmargin.data.source import TANGENTS
from cmargin.data.stats import DataStats
from cmargin.solvers.newton import working_set
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.problem import Problem, Settings


def in_files(X, signed_weight):
    """Rows read from a file in a few chunks."""
    folder = tempfile.mkdtemp()
    kind = "csr folder" if sp.issparse(X) else "npy F" if X.flags.f_contiguous else "npy C"
    rows = FileSource(files_of(naive.dense(X), kind, Path(folder)), chunk=2500)
    assert len(rows.chunks) > 2
    weakref.finalize(rows, shutil.rmtree, folder)           # a TemporaryDirectory warns, in another test's midst
    return rows.row_pass(signed_weight, intercept=True, n_threads=2)


PLACES = {
    "open_rows": lambda X, signed_weight: open_rows(X).row_pass(signed_weight, intercept=True, n_threads=2),
    "parts": lambda X, signed_weight: Elsewhere.of(X, signed_weight, [31, 170], True),
    # of which one has no rows
    "ranks": lambda X, signed_weight: pass_over_ranks(X, signed_weight, [31, 31, 170], True),
    "partitions": lambda X, signed_weight: pass_over_partitions(X, signed_weight, [31, 31, 170], True),
    "files": in_files,
}
if strict is not None:
    PLACES["device"] = lambda X, signed_weight: open_rows(strict_on("device1")(naive.dense(X))).row_pass(
        signed_weight, intercept=True, n_threads=1)
SOURCE = Path(cmargin.__file__).parent
ASKS = re.compile(r"issparse\(|isspmatrix|isinstance\((X|rows|self\.X)\b|hasattr\(\w*X\b|type\(\w*X\)|\bhome\.X\b")
MAY_ASK = ("data/", "_core/rows/", "_estimators/validation.py", "_estimators/labels.py")


def problem(dtype, weighted):
    X, y = blobs(n=300, d=7, k=2)
    X = np.where(np.abs(X) > 0.3, X, 0.0).astype(dtype)
    weight = np.random.default_rng(2).choice([0.0, 0.5, 2.0], len(y)) if weighted else np.ones(len(y))
    return X, np.where(y == 1, 1.0, -1.0) * weight


@pytest.fixture(params=PLACES)
def place(request):
    return PLACES[request.param]


# ---------------------------------------------------------------- one list of data sources

@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
def test_sums_of_every_source(place, any_format, dtype, weighted):
    X, signed_weight = problem(dtype, weighted)
    source, w = place(any_format(X), signed_weight), np.linspace(-0.4, 0.5, 8)
    tolerance = 1e-4 if dtype == np.float32 else 1e-9
    A = np.hstack([X.astype(float), np.ones((len(X), 1))])
    s, y = np.abs(signed_weight), np.where(signed_weight < 0, -1.0, 1.0)
    assert (source.n_rows, source.n_features, source.n_columns) == (300, 7, 8)
    assert source.total_weight == pytest.approx(s.sum())
    u = 1 - y * (A @ w)
    loss, squares = source.objective(w, True)
    assert loss == pytest.approx(s @ np.maximum(u, 0), rel=tolerance)
    np.testing.assert_allclose(squares, s @ A**2, rtol=tolerance)
    source.set_loss(Loss("squared_hinge"))
    source.start()
    source.set_active(None)
    asked = {"step": 1.0, "line_width": 1.0, "width": 1.0, "curvature_floor": 0.0}
    source.evaluate(direction=0 * w, **asked)    # of a smooth loss the line begins where the first evaluation was
    sums, gradient, hessian = source.evaluate(direction=w, **asked)
    inside = s * (u > 0)
    assert sums[0] == pytest.approx(inside @ u**2, rel=tolerance)
    np.testing.assert_allclose(gradient[0], A.T @ (2 * inside * u * y), rtol=tolerance, atol=tolerance * 100)
    block = np.triu((A * (2 * inside)[:, None]).T @ A)
    np.testing.assert_allclose(np.triu(hessian), block, rtol=tolerance, atol=tolerance * 100)
    product, share = source.hessp(w, 1.0)
    np.testing.assert_allclose(product, A.T @ (2 * inside * (A @ w)), rtol=tolerance, atol=tolerance * 100)
    assert 0 < share <= 1
    value, slope, curvature = source.line(0.5, 1.0)
    half = 1 - 0.5 * y * (A @ w)
    assert value == pytest.approx(s @ np.maximum(half, 0) ** 2, rel=tolerance)
    assert slope == pytest.approx(-(s * y * (A @ w)) @ (2 * np.maximum(half, 0)), rel=10 * tolerance)
    assert curvature > 0


def test_rows_below_the_floor_in_every_source(place, any_format):
    X, signed_weight = problem(float, True)
    source, w, A = place(any_format(X), signed_weight), np.linspace(-0.4, 0.5, 8), naive.with_ones(X, True)
    source.start(primal=True)
    source.set_active(None)
    sums, _, hessian = source.evaluate(direction=w, step=1.0, line_width=0.3, width=0.3, curvature_floor=0.4)
    h = naive.smoothed(1 - np.where(signed_weight < 0, -1.0, 1.0) * (A @ w), 0.3)[2]
    np.testing.assert_allclose(np.triu(hessian), np.triu(naive.curvature_above(A, np.abs(signed_weight), h, 0.4)),
                               atol=1e-9)
    assert 0 < sums[6] == ((h > 0.4) & (signed_weight != 0)).sum() < len(X)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
def test_the_driver_ends_at_the_optimum_in_every_source(place, any_format, dtype, weighted, loss):
    X, signed_weight = problem(dtype, weighted)
    with single_threaded_blas():
        asked = Problem(ElasticNet(1e-2), 7, Loss(loss))
        found = ContinuationNewton(place(any_format(X), signed_weight), asked, Settings(tol=1e-5)).run()
        received = ContinuationNewton(PLACES["open_rows"](X.astype(float), signed_weight), asked,
                                      Settings(tol=1e-7)).run()
    assert found.status == "converged"
    assert found.objective == pytest.approx(received.objective, rel=1e-4 if dtype == np.float32 else 2e-5)


def test_a_width_that_goes_up_in_every_source(place):
    X, signed_weight = correlated_columns(300, 1)
    received = []
    with single_threaded_blas():
        for rows in (PLACES["open_rows"](X, signed_weight), place(X, signed_weight)):
            received.append(ContinuationNewton(rows, Problem(ElasticNet(0.0, 1 / 3000), 48),
                                               Settings(tol=1e-3, max_passes=60)).run())
    here, there = received
    widths = np.array(here.history)[:, 8]
    assert (widths[1:] >= 2 * widths[:-1]).any() and here.status == "converged"       # rows looked at anew, in mid-fit
    assert there.passes == here.passes and there.n_iter == here.n_iter
    assert there.objective == pytest.approx(here.objective, rel=1e-7) and there.gap == pytest.approx(here.gap, rel=1e-3)


class AfterASubset:
    """Curvatures of the columns are known, so the mean of the rows' measures is asked for."""

    def hand_over(self):
        return {"column_scale": np.ones(19)}


def stepped(rows, monkeypatch):
    """A fit whose steps are those of rows near the hinge: its result, and what they offered."""
    asked, offer = [], ContinuationNewton.offer
    newton = ContinuationNewton(rows, Problem(ElasticNet(1e-4), 18), Settings(tol=1e-5), before=AfterASubset(),
                                w=np.append(np.zeros(18), 0.3))
    newton.let_use_working_set([0.1, 0.15], True)
    newton.begin()
    with monkeypatch.context() as patched, single_threaded_blas():
        patched.setattr(ContinuationNewton, "offer", lambda *given: asked.append(given[1:]) or offer(*given))
        patched.setattr(working_set, "SHARE", 0.25)
        patched.setattr(working_set, "MOST", 0.6)
        result = newton.finish()
    return result, np.array([(bound or 0, total or 0, reads) for bound, total, _, reads in asked])


def same_steps(place, form, monkeypatch):
    X, y = rows_with_rare_columns(3000, 3)
    X[::500] *= 30
    here, found = stepped(PLACES["open_rows"](X, y), monkeypatch)
    there, found_there = stepped(place(form(X), y), monkeypatch)
    assert len(found) > 1 and here.dual >= found[-1, 0] * (1 - 1e-9) and here.status == "converged"
    assert found[0, 0] == 0 or found[1, 0] == 0                         # far rows bent too: no bound
    np.testing.assert_allclose(found_there[:, :2], found[:, :2], rtol=1e-5)
    assert there.n_iter == here.n_iter
    assert there.gap == pytest.approx(here.gap, rel=1e-3) and there.objective == pytest.approx(here.objective)
    return here, there, len(found)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_steps_of_the_working_set_in_every_source(place, form, monkeypatch):
    if place is PLACES["parts"]:
        pytest.skip("keeps no state of the rows")
    here, there, choices = same_steps(place, form, monkeypatch)
    reads = choices if place is PLACES["files"] else 0                   # a read of the files for every choice
    assert there.passes == pytest.approx(here.passes + reads)


def test_steps_of_a_working_set_that_stays_with_workers(monkeypatch):
    monkeypatch.setattr(worker_source, "BROUGHT", 0)
    here, there, _ = same_steps(PLACES["partitions"], np.asarray, monkeypatch)
    assert there.passes == pytest.approx(here.passes)


def test_sums_of_lines_over_the_working_set(place, any_format, dtype):
    X, signed_weight = problem(dtype, True)
    received = []
    for rows in (PLACES["open_rows"](X, signed_weight), place(any_format(X), signed_weight)):
        rows.set_loss(Loss("hinge"))
        rows.foresee_working_set()
        rows.measure_rows(np.ones(8))
        sums, gradient, block = rows.evaluate(direction=np.linspace(-1, 1, 8), step=1.0, line_width=1e-4, width=1e-4,
                                              curvature_floor=0.0, with_hessian=TANGENTS)
        assert block is None
        asked = rows.gather_working_set(0.2, 0.5, True, 1e-4, (0.3, 0.5, 7))
        while asked.answer is None:
            rows.work(np.inf)
        part, *own, distance, _ = asked.answer
        received.append([*part.sides(), part.share, distance, *own, np.array(sums)[:6], np.array(gradient)])
    for here, there in zip(*received, strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-4 * np.max(np.abs(here)))


def test_every_source_says_what_it_is(tmp_path):
    X, signed_weight = problem(np.float64, False)
    sources = {"memory": open_rows(X), "files": FileSource(files_of(X, "npy C", tmp_path)),
               "ranks": pass_over_ranks(X, signed_weight, [31, 170], True).source,
               "workers": pass_over_partitions(X, signed_weight, [31, 170], True).source}
    if strict is not None:
        sources["device"] = open_rows(strict_on("device1")(X))
    for place, source in sources.items():
        shared, contiguous = place in ("files", "workers"), place not in ("files", "device")
        assert source.describe() == DataStats(300, 7, 2100, 8, False, place, shared, contiguous)
    stats = open_rows(sp.csr_matrix(X.astype("f"))).describe()
    assert stats.sparse and stats.itemsize == 4 and stats.entries == np.count_nonzero(X) and stats.contiguous_rows
    assert not open_rows(np.asfortranarray(X)).describe().contiguous_rows


def test_views_of_a_source(any_format, dtype):
    X, signed_weight = problem(dtype, True)
    source, tolerance = open_rows(any_format(X), signed_weight), 1e-5 if dtype == np.float32 else 1e-12
    assert (source.n_rows, source.n_features, source.dtype) == (300, 7, dtype) and source.y is signed_weight
    assert source.entries == (np.count_nonzero(X) if source.sparse else X.size)
    assert source.largest() == np.abs(X).max()
    picked = np.array([7, 2, 250])
    for rows in (picked, slice(40, 44)):
        taken = source.take(rows, np.float64)
        assert taken.dtype == np.float64 and sp.issparse(taken) == source.sparse
        np.testing.assert_array_equal(naive.dense(taken), X[rows])
    kept = source.keep(picked)
    np.testing.assert_array_equal(naive.dense(kept.take(slice(None), dtype)), X[picked])
    np.testing.assert_array_equal(kept.y, signed_weight[picked])
    scale = np.arange(1.0, 8)
    np.testing.assert_allclose(naive.dense(source.over_columns(scale).take(slice(None), dtype)), X / scale, rtol=1e-6)
    W, b = np.linspace(-1, 1, 21).reshape(3, 7), np.arange(3.0)
    scores = source.stochastic_rows(2).scores(W, b, picked)
    np.testing.assert_allclose(scores, X[picked] @ W.T + b, rtol=tolerance, atol=tolerance)
    wide = open_rows(any_format(X[:5])).reduced()
    np.testing.assert_allclose(wide.L @ wide.L.T, X[:5].astype(float) @ X[:5].T.astype(float), atol=1e-5)


# ---------------------------------------------------------------- what it is given

@pytest.mark.parametrize("X, error, text", [
    ([[1.0, 2.0]], TypeError, "not list"),
    (np.ones((3, 2), int), TypeError, "float32 or float64, got int64"),
    (sp.csc_matrix(np.ones((3, 2))), TypeError, "CSR format, got csc"),
    (np.ones(3), ValueError, "Expected 2D array, got 1D array"),
    (np.ones((2, 2)), ValueError, r"inconsistent numbers of samples: \[2, 3\]"),
], ids=["list", "int", "csc", "1D", "labels"])
def test_what_is_no_source_of_rows(X, error, text):
    with pytest.raises(error, match=text):
        open_rows(X, np.ones(3))


# ---------------------------------------------------------------- nobody else asks

def test_only_homes_and_validation_ask_what_X_is():
    asked = {}
    for path in sorted([*SOURCE.rglob("*.py"), *SOURCE.rglob("*.pyx")]):
        name = path.relative_to(SOURCE).as_posix()
        lines = [number for number, line in enumerate(path.read_text().splitlines(), 1) if ASKS.search(line)]
        if lines:
            asked[name] = lines
    assert not {name: lines for name, lines in asked.items() if not name.startswith(MAY_ASK)}
    assert "data/open_here.py" in asked                                           # the search finds what there is


def declared(protocol):
    own = {name for kind in protocol.__mro__ for name in vars(kind) if not name.startswith("_")}
    return own | {name for kind in protocol.__mro__ for name in getattr(kind, "__annotations__", {})}


VIEWS = [(base.DataSource, memory.MemorySource), (base.LocalRowPass, row_pass.MemoryRowPass),
         (base.DualPass, dual_rows.DualRowPass), (base.ScoreBlocks, score_blocks.ScoreBlocks),
         (base.SoftmaxPass, softmax_rows.SoftmaxRowPass), (base.SoftmaxPass, FileSoftmaxPass),
         (base.SoftmaxPass, ShardedSoftmaxPass), (base.StochasticRows, stochastic_rows.StochasticRows),
         (base.DataSource, FileSource), (base.KeptRowPass, FileRowPass), (base.RowPass, WorkerPass),
         (base.KeptRowPass, RankPass),
         (base.DataSource, DeviceSource), (base.RowPass, DeviceRowPass), (base.ScoreBlocks, DeviceScoreBlocks),
         (base.StochasticRows, DeviceStochasticRows), (base.StochasticRows, FileStochasticRows),
         (base.Walkers, FileWalkers), (base.Shards, RankSource), (base.KeptWalkers, RankWalkers),
         (base.Shards, worker_source.WorkerSource), (base.ShardWalkers, WorkerWalkers)]


@pytest.mark.parametrize("protocol, done", VIEWS, ids=lambda given: given.__name__)
def test_methods_are_as_they_are_declared(protocol, done):
    for name in declared(protocol):
        method = getattr(protocol, name, None)
        if not inspect.isfunction(method) or name.startswith("between_"):     # a number, or what the solver puts there
            continue
        assert callable(getattr(done, name)), name
        if inspect.isfunction(getattr(done, name)):                       # a compiled one does not tell its names
            assert inspect.signature(getattr(done, name)) == inspect.signature(method), name


class Declared:
    """A view of which only what is declared can be reached."""

    def __init__(self, view, protocol):
        names = declared(protocol) | {"between_slices", "between_chunks"}
        vars(self).update(_view=view, _protocol=protocol, _names=names)

    def __getattr__(self, name):
        if name not in self._names:
            raise AttributeError(f"{self._protocol.__name__} declares no {name}")
        found = getattr(self._view, name)
        kind = MADE.get((self._protocol, name))
        if kind is None:
            return found
        if not callable(found):
            return wrapped(found, kind)
        return lambda *args, **kwargs: wrapped(found(*args, **kwargs), kind)

    def __setattr__(self, name, value):
        assert name in self._names, f"{self._protocol.__name__} declares no {name}"
        setattr(self._view, name, value)


MADE = {(base.DataSource, "row_pass"): base.LocalRowPass, (base.DataSource, "keep"): base.DataSource,
        (base.DataSource, "score_blocks"): base.ScoreBlocks, (base.DataSource, "softmax_pass"): base.SoftmaxPass,
        (base.DataSource, "stochastic_rows"): base.StochasticRows, (base.ScoreBlocks, "source"): base.DataSource,
        (base.ScoreBlocks, "row_pass"): base.LocalRowPass, (base.StochasticRows, "over_columns"): base.StochasticRows}


def wrapped(made, kind):
    return (Declared(made[0], kind), *made[1:]) if isinstance(made, tuple) else Declared(made, kind)


@pytest.mark.parametrize("estimator", [
    *(model for model in quick_estimators() if not hasattr(model, "cv")),
    baselines.PreconditionedSGDClassifier(preconditioner="diagonal", max_passes=2),
    SLNDClassifier(loss="multinomial", l2=1e-2), SLNDClassifier(loss="logistic", hessian_refresh=1, max_passes=2),
    SmSVMClassifier(l1=1e-2), SmSVMClassifier(linear_solver="cg", tol=1e-2), SmSVMClassifier(linear_solver="dual"),
    SmSVMClassifier(linear_solver="woodbury"), SmSVMClassifier(line_search="quadratic", l2=1e-2, tol=1e-2),
    SmSVMClassifier(callback=lambda model: False)], ids=named)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_is_not_declared_is_not_used(monkeypatch, estimator, n_classes):
    X, y = blobs(n=240, k=n_classes)
    X = sp.csr_matrix(X) if estimator.get_params().get("linear_solver") == "dual" else X
    weight = np.where(np.arange(len(y)) % 9, 1.0, 0.0) if "Catoni" not in str(estimator) else None
    monkeypatch.setattr(validation, "source_of", lambda *given: Declared(source_of(*given), base.DataSource))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = estimator.set_params(n_jobs=1).fit(X, y, *(() if weight is None else (weight,)))
    assert np.isfinite(fitted.coef_).all() and fitted.score(X, y) > 0.5
