"""Rows in files: what opens, what is read and how often, what is refused, and the answers of rows in memory."""

import os
import signal
import sys
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from killed_fits import same, stopped
from rare_columns import rows_with_rare_columns
from rows_in_files import IN_FILES, Slow, files_of, paths_of, readers, write_csr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from started import python

from cmargin import MarginPursuitClassifier, SmSVMClassifier
from cmargin.data import open_rows
from cmargin.data.files import RowFiles, arrays_in_files, open_files, read_ahead, sources
from cmargin.data.files import source as source
from cmargin.solvers import cost
from cmargin.solvers.newton import working_set


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """So that a few hundred rows are many chunks; returns the setter of another size."""
    def of(size):
        monkeypatch.setattr(source, "CHUNK", size)

    of(2000)
    return of


@pytest.fixture
def data():
    X, y = blobs(n=900, d=9, k=2)
    return np.where(np.abs(X) > 0.4, X, 0.0).astype(np.float32), y


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def counted(monkeypatch):
    """A list that gets the number of reads of the rows, by chunks, of every data source of files, when one ends."""
    opened, make = [], source.FileSource.__init__

    def remembered(self, *given):
        make(self, *given)
        opened.append(self)

    monkeypatch.setattr(source.FileSource, "__init__", remembered)
    return opened


@pytest.mark.parametrize("kind", ["npy C", "csr folder"])
@pytest.mark.parametrize("refused", [False, True])
def test_nobody_reads_the_files_when_a_fit_is_over(data, kind, refused, tmp_path, monkeypatch):
    # the chunk after the last is read ahead; a file that its owner then writes anew would end the process
    X, y = data
    files, slow, before = files_of(X, kind, tmp_path), arrays_in_files.fetch, readers(0)

    def fetch(mapped, given_up):
        given_up.wait(0.02)
        slow(mapped, given_up)

    monkeypatch.setattr(arrays_in_files, "fetch", fetch)
    if refused:
        with pytest.raises(ValueError, match="sample_weight"):
            SmSVMClassifier().fit(files, y, sample_weight=-np.ones(len(y)))
    else:
        SmSVMClassifier(tol=0.5).fit(files, y)
    assert not readers(0.5, before)


# ---------------------------------------------------------------- what opens

@pytest.mark.parametrize("kind", IN_FILES)
def test_rows_are_those_of_the_files(data, kind, dtype, tmp_path):
    X = data[0].astype(dtype)
    files = files_of(X, kind, tmp_path)
    assert (files.shape, files.dtype, files.sparse) == (X.shape, dtype, kind.startswith("csr"))
    assert files.entries == (np.count_nonzero(X) if files.sparse else X.size)
    np.testing.assert_array_equal(dense(files[:]), X)
    for rows in (slice(290, 310), slice(None, None, 7), slice(-3, None), slice(5, 3), slice(880, 2000, 2)):
        np.testing.assert_array_equal(dense(files[rows]), X[rows])
    chunks = files.chunks(2000)
    assert len(chunks) > 5 and [lo for lo, _ in chunks[1:]] == [hi for _, hi in chunks[:-1]] and chunks[-1][1] == len(X)
    rows = open_rows(files)
    picked = np.array([899, 3, 4, 5, 288, 17, 700])
    np.testing.assert_array_equal(dense(rows.take(picked, np.float64)), X[picked])
    np.testing.assert_array_equal(dense(rows.take(slice(5, 700), dtype)), X[5:700])
    assert rows.largest() == np.abs(X).max()


def test_rows_that_are_not_read_backwards_or_one_by_one(data, tmp_path):
    # a step was ignored, and [::-1] had no rows
    files = files_of(data[0], "npy C", tmp_path)
    with pytest.raises(ValueError, match=r"step of a slice must be 1 or more, got -1"):
        files[::-1]
    with pytest.raises(TypeError, match=r"by slices, files\[lo:hi\], got 5; open_files"):
        files[5]


@pytest.mark.parametrize("kind", IN_FILES)
def test_files_that_fit_are_read_whole(data, kind, tmp_path):
    X, y = data
    given, in_memory = paths_of(X, kind, tmp_path), sp.csr_matrix(X) if kind.startswith("csr") else X
    np.save(tmp_path / "y.npy", y)
    found = SmSVMClassifier(l2=1e-2).fit(given, str(tmp_path / "y.npy"))
    wanted = SmSVMClassifier(l2=1e-2).fit(in_memory, y)
    if "F" not in kind:                                                  # a layout whose sums round in their own way
        assert found.coef_.tobytes() == wanted.coef_.tobytes()
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-12)
    np.testing.assert_array_equal(found.predict(given), wanted.predict(in_memory))
    assert found.score(given, str(tmp_path / "y.npy")) == wanted.score(in_memory, y)


def test_light_sparse_rows_of_few_columns_stay_in_their_files(tmp_path):
    # whether the dual pays was asked of rows that are not there: an AttributeError
    rng = np.random.default_rng(0)
    X = sp.csr_matrix((np.ones(5600), rng.integers(0, 8, 5600) + np.tile(8 * np.arange(14), 400),
                       np.arange(0, 5601, 14)), shape=(400, 112))
    y = np.where(X @ rng.standard_normal(112) > 0, 1, -1)
    files = open_files(write_csr(tmp_path / "rows", X), in_memory=False)
    found, wanted = (SmSVMClassifier(l2=0.1, tol=1e-6).fit(rows, y) for rows in (files, X))
    assert found.objective_ == pytest.approx(wanted.objective_, rel=2e-6)


def test_labels_in_shards(data, tmp_path):
    X, y = data
    paths = [tmp_path / "y1.npy", tmp_path / "y2.npy"]
    np.save(paths[0], y[:300])
    np.save(paths[1], y[300:])
    found = SmSVMClassifier(l2=1e-2).fit(files_of(X, "shards", tmp_path), paths)
    assert found.objective_ == pytest.approx(SmSVMClassifier(l2=1e-2).fit(X, y).objective_, rel=1e-4)


def test_a_memory_map_too_large_for_memory_stays_in_its_file(data, tmp_path, monkeypatch):
    X, y = data
    np.save(tmp_path / "X.npy", X)
    mapped, opened = np.load(tmp_path / "X.npy", mmap_mode="r"), counted(monkeypatch)
    SmSVMClassifier(l2=1e-2).fit(mapped, y)
    assert not opened                                                     # as any array
    monkeypatch.setattr(sources, "memory_left", lambda: X.nbytes)
    found = SmSVMClassifier(l2=1e-2).fit(mapped, y)
    assert len(opened) == 1 and found.score(mapped, y) > 0.9
    assert isinstance(open_files(mapped), RowFiles)
    SmSVMClassifier(l2=1e-2).fit(mapped[::2], y[::2])                    # rows that do not lie one after the other
    SmSVMClassifier(l2=1e-2).fit(mapped[:, 1:], y)
    assert len(opened) == 1


def test_parquet(data, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = data
    table = arrow.table({f"x{j}": X[:, j] for j in range(X.shape[1])})
    parquet.write_table(table, tmp_path / "X.parquet", row_group_size=250)
    files = open_files(tmp_path / "X.parquet", in_memory=False)
    np.testing.assert_array_equal(files[:], X)
    np.testing.assert_array_equal(files[240:510], X[240:510])
    assert files.chunks(1) == [(0, 250), (250, 500), (500, 750), (750, 900)]
    wanted = SmSVMClassifier(l2=1e-2).fit(X, y)
    assert SmSVMClassifier(l2=1e-2).fit(files, y).objective_ == pytest.approx(wanted.objective_, rel=1e-4)


# ---------------------------------------------------------------- the answers of rows in memory

SMSVM = [{}, {"l1": 1e-2}, {"loss": "squared_hinge"}, {"loss": "logistic"}, {"loss": "logistic", "l1": 1e-2},
         {"linear_solver": "cg"}, {"line_search": "quadratic", "tol": 1e-2}, {"fit_intercept": False},
         {"penalize_intercept": True}, {"class_weight": "balanced"}]


@pytest.mark.parametrize("kind", ["npy C", "npy F", "csr shards"])
@pytest.mark.parametrize("parameters", SMSVM, ids=str)
def test_smsvm_ends_where_it_does_in_memory(data, parameters, kind, tmp_path):
    X, y = data
    model = SmSVMClassifier(**{"l2": 1e-2, "tol": 1e-5, **parameters})
    weight = np.where(np.arange(len(y)) % 7, 1.5, 0.0)
    wanted = model.fit(X, y, weight).objective_.copy()
    found = model.fit(files_of(X, kind, tmp_path), y, weight)
    assert found.duality_gap_[0] <= model.tol
    assert found.objective_ == pytest.approx(wanted, rel=2 * model.tol)


@pytest.mark.parametrize("kind", ["npy C", "csr npz"])
@pytest.mark.parametrize("estimator", [
    SmSVMClassifier(l2=1e-2), MarginPursuitClassifier(l2=1e-2), MarginPursuitClassifier(l2=1e-2, trace=False),
    MarginPursuitClassifier(l2=1e-2, scale="one-shot"), MarginPursuitClassifier(l2=1e-2, solver="gd", tol=0.1)],
    ids=str)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_together(estimator, n_classes, kind, tmp_path):
    X, y = blobs(n=700, d=6, k=n_classes)
    wanted = estimator.fit(X, y)
    objective, labels = wanted.objective_.copy(), wanted.predict(X)
    files = files_of(X, kind, tmp_path)
    found = estimator.fit(files, y)
    assert found.objective_ == pytest.approx(objective, rel=2e-4)
    assert np.mean(found.predict(files) == labels) > 0.99
    np.testing.assert_allclose(found.decision_function(files), found.decision_function(X), rtol=1e-5, atol=1e-6)


def test_an_indicator(tmp_path):
    X, y = blobs(n=600, d=6, k=3)
    Y = np.column_stack([y == 0, y > 0, X[:, 0] > 0]).astype(int)
    found = SmSVMClassifier(l2=1e-2).fit(files_of(X, "npy C", tmp_path), Y)
    assert found.objective_ == pytest.approx(SmSVMClassifier(l2=1e-2).fit(X, Y).objective_, rel=2e-4)


def test_a_subset_is_gathered_in_one_read(tmp_path, monkeypatch, small_chunks):
    X, y = blobs(n=25_000, d=10, k=2, spread=3.0)
    X[::1000] *= 30                                                      # a few long rows
    small_chunks(1 << 17)
    model = SmSVMClassifier(l2=1e-4, random_state=3)
    opened, wanted = counted(monkeypatch), model.fit(X, y).objective_.copy()
    memory = model.n_passes_
    found = model.fit(files_of(X, "npy C", tmp_path), y)
    assert found.objective_ == pytest.approx(wanted, rel=2e-4)
    evaluations = np.isfinite(found.history_["objective"]).sum()
    assert evaluations < 12 and opened[0].reads <= 1 + evaluations + 2   # the sample, the evaluations, what certifies
    assert model.n_passes_ < memory + 1                                  # where long rows are not told by a read of all


def test_a_gathered_sample_is_that_of_memory(data, tmp_path):
    X, y = data
    signed_weight = np.where(y == 1, 1.0, -2.0)
    here = open_rows(X).row_pass(signed_weight, intercept=True, n_threads=1)
    for kind in ("npy C", "csr shards"):
        (tmp_path / kind).mkdir()
        there = open_rows(files_of(X, kind, tmp_path / kind)).row_pass(signed_weight, intercept=True, n_threads=1)
        for weight in (None, np.linspace(0.01, 0.1, 9)):
            a, b = here.gather_sample(0.3, 0.1, 5, weight)[0], there.gather_sample(0.3, 0.1, 5, weight)[0]
            assert a.n_rows == b.n_rows > 20 and b.share == a.share
            np.testing.assert_allclose(a.signed_weight, b.signed_weight)
            np.testing.assert_allclose(a.objective(np.ones(10), True)[1], b.objective(np.ones(10), True)[1], rtol=1e-6)


def test_a_sample_is_no_larger_than_memory_has_room_for(data, tmp_path, monkeypatch):
    X, y = data
    rows = open_rows(files_of(X, "npy C", tmp_path)).row_pass(np.where(y == 1, 1.0, -1.0), intercept=True, n_threads=1)
    monkeypatch.setattr(source.FileSource, "room_for_rows", lambda self: 60)
    part, _ = rows.gather_sample(0.5, 0.5, 1, np.full(9, 0.1))
    assert 20 < part.n_rows < 150 and part.total_weight == pytest.approx(900, rel=0.4)


@pytest.fixture
def choices(monkeypatch):
    """Shares of the rows in the working set, at every choice."""
    found, begin = [], working_set.WorkingSetSteps.begin_small

    def watched(self, newton, part, *given):
        found.append(part.share)
        return begin(self, newton, part, *given)

    monkeypatch.setattr(working_set.WorkingSetSteps, "begin_small", watched)
    return found


def test_a_choice_of_the_working_set_is_one_read_of_the_files(tmp_path, monkeypatch, small_chunks, choices):
    X, y = rows_with_rare_columns(48_000, 1)
    files = files_of(X, "npy C", tmp_path)
    small_chunks(1 << 18)
    opened, room = counted(monkeypatch), source.FileSource.room_for_rows
    model = SmSVMClassifier(l2=1e-6, random_state=0)
    memory, reads = model.fit(X, y).history_["objective"], model.n_passes_
    here, choices[:] = choices[:], []
    model.fit(files, y)
    assert choices == here and opened[0].reads == pytest.approx(round(opened[0].reads))
    np.testing.assert_allclose(model.history_["objective"], memory, rtol=1e-6)
    evaluations = np.isfinite(memory).sum()
    assert opened[0].reads <= 1 + evaluations + len(choices) + 2      # the sample, evaluations, choices, what certifies
    assert model.n_passes_ == pytest.approx(reads + len(choices) + 1, abs=1)
    choices.clear()                                                      # there is less room than that
    monkeypatch.setattr(source.FileSource, "room_for_rows", lambda self: room(self) if not self.reads else 3000)
    assert model.fit(files, y).duality_gap_[0] <= 1e-4 and 0 < max(choices) <= 3000 / len(X)
    choices.clear()                                                      # or none
    monkeypatch.setattr(source.FileSource, "room_for_rows", lambda self: room(self) if not self.reads else 0)
    assert model.fit(files, y).duality_gap_[0] <= 1e-4 and not choices


def test_a_checkpoint_goes_on_to_the_same_working_set(tmp_path, small_chunks, choices):
    X, y = rows_with_rare_columns(48_000, 1)
    files, seen, model = files_of(X, "npy C", tmp_path), [], SmSVMClassifier(l2=1e-6, random_state=0)
    small_chunks(1 << 18)
    whole = clone(model).set_params(callback=lambda model: seen.append(model.n_passes_)).fit(files, y)
    assert len(choices) > 1
    for n in (len(seen) - 2, len(seen) - 1):                             # on all rows
        assert same(stopped(model, tmp_path / "state", n, files, y).fit(files, y), whole)


# ---------------------------------------------------------------- reads and bits

def test_one_read_serves_every_class(tmp_path, monkeypatch):
    X, y = blobs(n=800, d=6, k=5)
    opened = counted(monkeypatch)
    for model in (SmSVMClassifier(l2=1e-2), MarginPursuitClassifier(l2=1e-2)):
        model.fit(files_of(X, "npy C", tmp_path), y)
    of_svm, of_pursuit = (files.reads for files in opened)
    svm = SmSVMClassifier(l2=1e-2).fit(X, y)
    each = np.bincount(svm.history_["class"])
    assert of_svm <= each.max() + 3 < each.sum()
    assert of_pursuit <= model.n_iter_ + 2


@pytest.mark.parametrize("kind", ["npy C", "csr npz"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_same_bits_for_any_number_of_threads(kind, n_classes, tmp_path, small_chunks):
    X, y = blobs(n=30_000, d=12, k=n_classes)
    small_chunks(1 << 18)
    files = files_of(X.astype(np.float32), kind, tmp_path)
    models = [SmSVMClassifier(l2=1e-3, random_state=1, n_jobs=n).fit(files, y) for n in (1, 2, 3)]
    assert len({model.coef_.tobytes() for model in models}) == 1
    assert len({model.n_passes_ for model in models}) == 1


def test_chunks_come_in_order_and_one_is_read_ahead(data, tmp_path):
    loaded = []

    def load(k, room):
        loaded.append((k, id(room)))
        return k

    ahead = read_ahead.ReadAhead(5, threading.Event())
    assert [ahead.take(load, k) for k in (0, 1, 2, 3, 4, 0, 1, 0)] == [0, 1, 2, 3, 4, 0, 1, 0]
    deadline = time.perf_counter() + 5
    while len(loaded) < 10 and time.perf_counter() < deadline:
        time.sleep(0.01)
    assert [k for k, _ in loaded] == [0, 1, 2, 3, 4, 0, 1, 2, 0, 1]      # 2 was wanted by nobody
    rooms = [room for _, room in loaded]
    assert len(set(rooms)) == 2 and all(one != other for one, other in pairwise(rooms))


def test_entries_stored_in_parts(data, tmp_path):
    X, y = data
    X = sp.csr_matrix(X)
    parts = sp.csr_matrix((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    whole, halves = (open_files(write_csr(tmp_path / name, given), in_memory=False)
                     for name, given in (("whole", X), ("halves", X)))
    folder = tmp_path / "parts"
    folder.mkdir()
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(parts, name))
    np.save(folder / "shape.npy", np.array(parts.shape))
    halves = open_files(folder, in_memory=False)
    a, b = (SmSVMClassifier(l2=1e-2).fit(given, y) for given in (whole, halves))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-4)
    assert b.duality_gap_[0] <= 1e-4


# ---------------------------------------------------------------- interrupted

@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", [SmSVMClassifier(), MarginPursuitClassifier(trace=False)], ids=str)
@pytest.mark.parametrize("after", [0, 30])
def test_ctrl_c_while_the_disk_is_slow(estimator, n_classes, after, tmp_path, monkeypatch):
    X, y = blobs(n=400, d=6, k=n_classes)
    files = files_of(X, "npy C", tmp_path)
    Slow(monkeypatch, 30.0, after)
    pressed = []

    def press():
        pressed.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.5, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(files, y)
    assert time.perf_counter() - pressed[0] < 8.0         # the disk takes 30
    assert np.isfinite(estimator.coef_).all() and estimator.coef_.shape[1] == 6


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", [SmSVMClassifier(max_time=0.4), MarginPursuitClassifier(max_time=0.4)], ids=str)
def test_max_time_while_the_disk_is_slow(estimator, n_classes, tmp_path, monkeypatch):
    X, y = blobs(n=400, d=6, k=n_classes)
    files = files_of(X, "npy C", tmp_path)
    Slow(monkeypatch, 20.0, 30)
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        estimator.fit(files, y)
    assert time.perf_counter() - begin < 8.0           # the disk takes 20
    assert np.isfinite(estimator.coef_).all()


def test_max_time_while_a_subset_is_gathered(tmp_path, monkeypatch):
    X, y = blobs(n=3000, d=6, k=2)
    files = files_of(X, "npy C", tmp_path)
    monkeypatch.setattr(cost, "SUBSET_FROM_ROWS", 1000)
    Slow(monkeypatch, 20.0, 5)
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        SmSVMClassifier(max_time=0.4).fit(files, y)
    assert time.perf_counter() - begin < 8.0           # the disk takes 20


def test_a_callback_and_verbose(data, tmp_path, capsys):
    X, y = data
    seen = []
    model = SmSVMClassifier(verbose=1, callback=lambda fit: seen.append(fit.objective_[0]) or len(seen) == 3)
    model.fit(files_of(X, "npy C", tmp_path), y)
    assert len(seen) == 3 and model.objective_[0] == min(seen) and capsys.readouterr().out.count("passes") == 3


# ---------------------------------------------------------------- more than memory

LIMITED = """
import os, resource, sys
import numpy as np
from cmargin import SmSVMClassifier

SmSVMClassifier(n_jobs=1).fit(np.eye(6), np.arange(6) % 2)
pages = int(open("/proc/self/statm").read().split()[0])
size = os.path.getsize(sys.argv[1])
limit = size // 4
assert pages * resource.getpagesize() + (50 << 20) < limit, (pages * resource.getpagesize(), limit)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    np.empty(size // 3, np.uint8)
    raise SystemExit("the limit does not hold")
except MemoryError:
    pass
model = SmSVMClassifier(l2=1e-2, tol=1e-3, n_jobs=1, random_state=0).fit(sys.argv[1], np.load(sys.argv[2]))
assert model.duality_gap_[0] <= 1e-3
np.save(sys.argv[3], np.append(model.coef_, [model.intercept_[0], model.objective_[0]]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit of the address space is Linux's")
def test_a_file_four_times_the_address_space(tmp_path):
    # All but the first rows are zeros, which a file system stores as nothing, and which stand in memory for two rows
    n, m, full = 1_250_000, 320, 4000
    X, y = blobs(n=full, d=m, k=2, spread=4.0)
    file = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (n, m))
    file[:full] = X
    del file
    labels = np.arange(n, dtype=np.int8) % 2
    labels[:full] = y
    np.save(tmp_path / "y.npy", labels)
    paths = [tmp_path / name for name in ("X.npy", "y.npy", "w.npy")]
    python("-c", LIMITED, *paths, limit=300, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    found = np.load(tmp_path / "w.npy")
    zeros = np.bincount(labels[full:])
    wanted = SmSVMClassifier(l2=1e-2, tol=1e-5).fit(
        np.vstack([X, np.zeros((2, m))]), np.append(y, [0, 1]), np.append(np.ones(full), zeros))
    assert found[-1] == pytest.approx(wanted.objective_[0], rel=1e-3)
    os.remove(tmp_path / "X.npy")


def test_labels_may_be_files_where_the_rows_were_and_are_in_memory(data, tmp_path):
    X, y = data
    np.save(tmp_path / "y.npy", y)
    parts = [str(tmp_path / name) for name in ("y0.npy", "y1.npy")]
    for path, part in zip(parts, np.split(y, [400]), strict=True):
        np.save(path, part)
    np.save(tmp_path / "X.npy", X)
    rows = open_files(tmp_path / "X.npy")
    assert isinstance(rows, np.ndarray)
    expected = SmSVMClassifier().fit(X, y)
    for labels in (tmp_path / "y.npy", str(tmp_path / "y.npy"), parts):
        model = SmSVMClassifier().fit(rows, labels)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        assert model.score(rows, labels) == expected.score(X, y)
