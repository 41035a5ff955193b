"""SLND on rows in files: as good as in memory however they lie, the same bits, each row once a pass, bounded memory."""

import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from killed_fits import StopAt
from rows_in_files import IN_FILES, Slow, bits_of_fits, files_of, in_memory_and_there, readers, stopped_by_ctrl_c
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from started import python

from cmargin import BSNClassifier, Checkpoint, SLNDClassifier, baselines
from cmargin.data import open_rows
from cmargin.data.files import open_files
from cmargin.data.files import source as source
from cmargin.data.files import windows as windows_module
from cmargin.data.files.windows import Windows
from cmargin.solvers.sgd.class_lists import ClassLists, SharedLists
from cmargin.solvers.sgd.remote_run import kinds_of

CHUNK = 4000
BOTH = pytest.mark.parametrize("loss", ["logistic", "multinomial"])


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """So that a few hundred rows are many windows, of pieces of a few rows."""
    monkeypatch.setattr(source, "CHUNK", CHUNK)
    monkeypatch.setattr(windows_module, "SHORTEST", 1)


@pytest.fixture
def data():
    X, y = blobs(n=900, d=9, k=3)
    return np.where(np.abs(X) > 0.4, X, 0.0).astype(np.float32), y.astype(np.int64)


def windows_of(X, y, kind, folder, seed=3):
    return Windows(open_rows(files_of(X, kind, folder)), y, int(y.max()) + 1, seed)


def model(**parameters):
    return SLNDClassifier(**{"loss": "multinomial", "random_state": 5, "max_passes": 5, **parameters})


# ---------------------------------------------------------------- windows

@pytest.mark.parametrize("kind", IN_FILES)
def test_a_pass_reads_every_row_once_in_another_order(data, kind, tmp_path):
    X, y = data
    windows, orders = windows_of(X, y, kind, tmp_path), []
    assert windows.n > 5
    for number in (0, 1):
        seen = []
        for rows, part in windows.of_pass(number):
            np.testing.assert_array_equal(part.toarray() if sp.issparse(part) else part, X[rows])
            assert len(rows) <= 1.5 * windows.size
            seen.append(rows)
        orders.append(np.concatenate(seen))
        np.testing.assert_array_equal(np.sort(orders[-1]), np.arange(len(X)))
    assert (orders[0] != orders[1]).any()
    windows.source.let_go()


def test_windows_of_rows_sorted_by_class_have_all_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK", 32_000)                       # 400 rows
    rng = np.random.default_rng(1)
    y = np.sort(rng.choice(8, 4000, p=np.arange(1, 9) / 36))
    X = rng.standard_normal((4000, 10))
    mixed = windows_of(X, y, "npy C", tmp_path)
    lengths = [len(mixed.edges)]
    for rows, _ in mixed.of_pass(0):
        shares = np.bincount(y[rows], minlength=8) / len(rows)
        assert np.abs(shares - np.arange(1, 9) / 36).sum() / 2 < 0.12
    mixed.source.let_go()
    at_random = windows_of(X, rng.permutation(y), "npy C", tmp_path)
    lengths.append(len(at_random.edges))
    at_random.source.let_go()
    assert lengths[0] >= 2 * lengths[1]                              # long pieces where they will do


def test_row_groups_of_parquet_are_read_whole(data, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = data
    table = arrow.table({f"x{j}": X[:, j] for j in range(X.shape[1])})
    parquet.write_table(table, tmp_path / "X.parquet", row_group_size=250)
    files = open_files(tmp_path / "X.parquet", in_memory=False)
    assert Windows(open_rows(files), y, 3, 1).edges.tolist() == [0, 250, 500, 750, 900]
    assert model().fit(files, y).score(X, y) > 0.7


# ---------------------------------------------------------------- lists

@pytest.mark.parametrize("negatives_per_positive", [None, 2.5, 0.01])
def test_lists_of_all_places_are_the_list_of_all_rows(negatives_per_positive):
    rng = np.random.default_rng(2)
    Y = sp.csr_matrix(rng.random((500, 4)) < [0.3, 0.05, 0.01, 0.0])
    whole = ClassLists.from_indicator(Y, negatives_per_positive)
    shared = SharedLists(whole.n_negatives, whole.n_rows - whole.n_positives)
    order, lists = rng.permutation(500), []
    for rows in np.split(order, [3, 3, 200, 430]):                    # a place of no rows among them
        lists.append(ClassLists.of_part(Y[rows], shared))
        assert (lists[-1].n_negatives <= len(rows) - lists[-1].n_positives).all()
        expected = whole.n_negatives * (len(rows) - lists[-1].n_positives) / (whole.n_rows - whole.n_positives)
        assert np.abs(lists[-1].n_negatives - expected).max() <= 1
    np.testing.assert_array_equal(sum(one.n_positives for one in lists), whole.n_positives)
    np.testing.assert_array_equal(sum(one.n_negatives for one in lists), whole.n_negatives)


def test_a_row_is_of_its_rarest_class():
    Y = np.array([[1, 0, 1], [1, 0, 0], [0, 0, 0], [1, 1, 1], [0, 0, 1]])
    assert kinds_of(ClassLists.from_indicator(sp.csc_matrix(Y), 1)).tolist() == [2, 0, 3, 1, 2]


# ---------------------------------------------------------------- fits

@pytest.mark.parametrize("kind", ["npy C", "csr npz"])
@pytest.mark.parametrize("parameters", [
    {}, {"step_size": 0.5, "average": False}, {"tail": "drop", "rank": 4, "step_size": 0.5},
    {"step_size": 0.5, "hessian_refresh": 2}, {"fit_intercept": False, "hessian_samples": 100, "step_size": 1.0},
    {"class_weight": "balanced", "step_size": 1.0}, {"loss": "logistic"},
    {"loss": "squared", "step_size": 0.2, "average": False}, {"loss": "calibrated_hinge", "tail": "drop", "rank": 6},
    {"loss": "logistic", "hessian_refresh": 2, "step_size": 0.3},
    {"loss": "logistic", "fit_intercept": False, "negatives_per_positive": None},
    {"loss": "logistic", "class_weight": "balanced", "negatives_per_positive": 1}], ids=str)
@pytest.mark.parametrize("in_order", [False, True], ids=["random", "sorted"])
def test_fits_are_as_good_as_in_memory(digits, parameters, kind, in_order, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK", 1 << 16)                      # 10 windows
    _, X_test, _, y_test = digits
    memory, there = in_memory_and_there(model(**parameters), digits, kind, in_order, tmp_path)
    one_vs_rest = "loss" in parameters
    assert there.score(X_test, y_test) > memory.score(X_test, y_test) - (0.02 if one_vs_rest else 0.015)
    if one_vs_rest or "step_size" in parameters:                     # else the rows held out end the passes
        assert there.history_["objective"][-1] == pytest.approx(memory.history_["objective"][-1],
                                                                rel=0.15 if one_vs_rest else 0.1)
        assert there.n_iter_ == 5
    if one_vs_rest:
        np.testing.assert_allclose(there.sampled_prior_, memory.sampled_prior_, rtol=0.1)
    elif "step_size" in parameters:
        assert there.n_passes_ <= memory.n_passes_
    assert there.history_.keys() == memory.history_.keys()
    np.testing.assert_allclose(there.class_prior_, memory.class_prior_)


@BOTH
def test_what_is_chosen_is_what_memory_chooses(digits, loss, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK", 1 << 16)
    X, _, y, _ = digits
    memory, there = (model(loss=loss).fit(rows, y) for rows in (X, files_of(X, "npy C", tmp_path)))
    assert there.step_size_ == memory.step_size_ and there.rank_ == memory.rank_
    np.testing.assert_array_equal(there.eigenvalues_, memory.eigenvalues_)
    np.testing.assert_array_equal(there.preconditioner_.eigenvectors, memory.preconditioner_.eigenvectors)


@pytest.mark.parametrize("in_order", [False, True], ids=["random", "sorted"])
def test_two_classes_are_logistic_by_default(in_order, tmp_path):
    X, y = blobs(n=2400, d=8, k=3)
    y = (y > 0).astype(int)
    order = np.argsort(y, kind="stable") if in_order else np.arange(len(y))
    X, names = X[order], np.array(["no", "yes"])[y[order]]
    memory, there = (SLNDClassifier(random_state=2, max_passes=2).fit(rows, names)
                     for rows in (X, files_of(X, "npy C", tmp_path)))
    assert there.loss_ == "logistic" and there.coef_.shape == (1, 8) and there.classes_.tolist() == ["no", "yes"]
    assert there.score(X, names) > memory.score(X, names) - 0.005
    np.testing.assert_array_equal(there.history_["visits"], memory.history_["visits"])
    assert 2 + 1000 / 2400 < there.n_passes_ < 2 + 1000 / 2400 + 0.2                      # passes, H, the trial


def test_labels_that_do_not_exclude_each_other(data, tmp_path):
    X, y = data
    Y = np.column_stack([y == 0, y > 0, X[:, 0] > 0.5])
    order = np.argsort(y)
    memory = SLNDClassifier(random_state=1).fit(X[order], Y[order])
    there = SLNDClassifier(random_state=1).fit(files_of(X[order], "npy C", tmp_path), Y[order])
    assert there.coef_.shape == (3, 9)
    assert ((there.predict(X) == Y).mean(axis=0) > (memory.predict(X) == Y).mean(axis=0) - 0.02).all()


@pytest.mark.parametrize("parameters", [
    {"max_passes": 4}, {"loss": "logistic", "max_passes": 2},
    {"loss": "logistic", "max_passes": 2, "hessian_refresh": 1, "step_size": 0.3}], ids=str)
@pytest.mark.parametrize("kinds", [["npy C", "npy F", "npz", "memmap", "memmap F", "shards"],
                                   ["csr npz", "csr folder", "csr shards"]], ids=["dense", "csr"])
def test_the_same_bits_however_the_rows_lie_in_files_and_for_any_number_of_threads(
        data, kinds, parameters, tmp_path):
    assert len(bits_of_fits(model(**parameters), *data, kinds, tmp_path)) == 1


def test_bsn_two_classes_a_warm_start_and_labels_in_files(data, tmp_path):
    X, y = data
    np.save(tmp_path / "y.npy", (y > 0).astype(int))
    files = files_of(X, "npy C", tmp_path)
    two = BSNClassifier(loss="multinomial", random_state=1, warm_start=True, max_passes=3)
    two.fit(files, str(tmp_path / "y.npy"))
    first, n_first = two.score(files, y > 0), two._passes_total
    two.fit(files, str(tmp_path / "y.npy"))
    assert two.coef_.shape == (1, 9) and two._passes_total > n_first
    assert min(first, two.score(files, y > 0)) > 0.8


def test_bsn_goes_on_from_weights_inside_its_basis_and_outside(data, tmp_path):
    X, y = data
    files = files_of(X, "npy C", tmp_path)
    two = BSNClassifier(loss="logistic", random_state=1, warm_start=True, max_passes=2).fit(files, y)
    first, n_first = two.score(files, y), two._passes_total
    two.fit(files, y)
    assert two._passes_total == 2 * n_first and two.score(files, y) > first - 0.02
    two.set_params(tail="drop", rank=3).fit(files, y)
    assert two.score(files, y) > first - 0.02                        # the part outside the basis is kept


@pytest.mark.parametrize("chosen", [{"step_size": 0.5}, {"step_size": 0.5, "hessian_refresh": 1}, {"loss": "logistic"},
                                    {"loss": "logistic", "hessian_refresh": 1}], ids=str)
def test_a_checkpoint_is_gone_on_with_to_the_same_bits(chosen, data, tmp_path):
    X, y = data
    files = files_of(X, "npy C", tmp_path)
    whole = model(max_passes=4, **chosen)

    def fitted(stop):
        return clone(whole).set_params(checkpoint=Checkpoint(tmp_path / "fit", seconds=0.0), callback=stop)

    for passes in (1, 2):                          # a fit that is gone on with writes checkpoints of its own
        with pytest.raises(KeyboardInterrupt):
            fitted(StopAt(passes)).fit(files, y)
        assert (tmp_path / "fit").exists()
    alone, again = clone(whole).fit(files, y), fitted(None).fit(files, y)
    np.testing.assert_array_equal(again.coef_, alone.coef_)
    assert again.n_passes_ == alone.n_passes_ and len(again.history_["pass"]) == 4
    assert not (tmp_path / "fit").exists()


# ---------------------------------------------------------------- refused, interrupted

@BOTH
def test_numbers_are_checked_when_they_are_first_read(data, loss, tmp_path):
    X, y = data
    for row in (0, 450, 899):
        broken = X.copy()
        broken[row, 3] = np.nan
        for kind in ("npy C", "csr npz"):
            fitted = model(loss=loss).fit(X, y)
            before = fitted.coef_
            with pytest.raises(ValueError, match="Input X contains NaN"):
                fitted.fit(files_of(broken, kind, tmp_path), y)
            assert fitted.coef_ is before


@pytest.mark.parametrize("estimator, what", [
    (model(loss="logistic", step_size="theory"), "SLNDClassifier with step_size='theory'"),
    (model(loss="auto", step_size="theory"), ""), (model(l1=1e-3), ""), (model(loss="logistic", l2=1.0), "l2=1.0"),
    (baselines.BalancedSGDClassifier(), "BalancedSGDClassifier with loss=")], ids=str)
def test_what_needs_rows_in_memory_says_so(estimator, what, data, tmp_path):
    with pytest.raises(ValueError, match=f"{what}.*needs"):
        estimator.fit(files_of(data[0], "npy C", tmp_path), data[1])


def test_partial_fit_takes_slices(data, tmp_path):
    X, y = data
    files = files_of(X, "npy C", tmp_path)
    with pytest.raises(ValueError, match="partial_fit needs the rows in memory"):
        model().partial_fit(files, y, classes=[0, 1, 2])
    fitted = model().partial_fit(files[:400], y[:400], classes=[0, 1, 2]).partial_fit(files[400:], y[400:])
    assert fitted.score(files, y) > 0.7


@BOTH
@pytest.mark.parametrize("after", [0, 200, 600])
def test_ctrl_c_while_the_disk_is_slow(data, after, loss, tmp_path, monkeypatch):
    X, y = data
    files = files_of(X, "npy C", tmp_path)
    Slow(monkeypatch, 30.0, after, listens=True)
    fitted, before = model(loss=loss, max_passes=50, step_size=0.5), readers(0)
    assert stopped_by_ctrl_c(fitted, files, y) < 8.0         # the disk takes 30
    assert np.isfinite(fitted.coef_).all() and fitted.coef_.shape == (3, 9)
    assert not readers(2.0, before)


@pytest.mark.parametrize("chosen", [{"step_size": 0.5}, {"loss": "logistic"}], ids=str)
def test_max_time_while_the_disk_is_slow(data, chosen, tmp_path, monkeypatch):
    X, y = data
    files = files_of(X, "npy C", tmp_path)
    Slow(monkeypatch, 20.0, 600)
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        fitted = model(max_time=0.5, max_passes=50, **chosen).fit(files, y)
    assert time.perf_counter() - begin < 8.0 and np.isfinite(fitted.coef_).all()
    assert "loss" in chosen or fitted.score(X, y) > 0.5


# ---------------------------------------------------------------- more than memory

LIMITED = """
import resource, sys
import numpy as np
from cmargin import SLNDClassifier
from cmargin.data.files import open_files

SLNDClassifier(n_jobs=1, loss="multinomial", max_passes=1).fit(np.eye(60), np.arange(60) % 3)
pages = int(open("/proc/self/statm").read().split()[0])
files = open_files([sys.argv[1]] * int(sys.argv[4]), in_memory=False)
limit = files.nbytes // 4
assert pages * resource.getpagesize() + (50 << 20) < limit, (pages * resource.getpagesize(), limit)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    np.empty(files.nbytes // 3, np.uint8)
    raise SystemExit("the limit does not hold")
except MemoryError:
    pass
y = np.tile(np.load(sys.argv[2]), int(sys.argv[4]))
model = SLNDClassifier(max_passes=1, step_size=1.0, n_jobs=1, random_state=0).fit(files, y)
np.save(sys.argv[3], np.column_stack([model.coef_, model.intercept_]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit of the address space is Linux's")
def test_files_four_times_the_address_space(tmp_path):
    # one shard many times, so that the disk holds 60 MB and the rows are 3.4 GB
    X, y = blobs(n=15_000, d=1000, k=4, spread=4.0)
    X, shards = X.astype(np.float32), 56
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y.astype(np.int64))
    paths = [tmp_path / name for name in ("X.npy", "y.npy", "found.npy")]
    python("-c", LIMITED, *paths, shards, limit=300, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    found = np.load(tmp_path / "found.npy")
    right = (X @ found[:, :-1].T + found[:, -1]).argmax(axis=1) == y
    memory = SLNDClassifier(max_passes=1, step_size=1.0, random_state=0).fit(X, y)
    assert right.mean() > memory.score(X, y) - 0.005
