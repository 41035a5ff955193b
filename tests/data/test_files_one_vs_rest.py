"""SLND, one-vs-rest, on rows in files: as good as in memory however they lie, the same bits, every row once a pass."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from killed_fits import StopAt
from rows_in_files import Slow, bits_of_fits, files_of, in_memory_and_there, stopped_by_ctrl_c
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from test_files_slnd import data, small_chunks  # noqa: F401

from cmargin import BSNClassifier, Checkpoint, SLNDClassifier, baselines
from cmargin.data.files import source as source
from cmargin.solvers.sgd.class_lists import ClassLists, SharedLists
from cmargin.solvers.sgd.remote_run import kinds_of


def model(**parameters):
    return SLNDClassifier(**{"loss": "logistic", "random_state": 5, "max_passes": 4, **parameters})


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
    {}, {"loss": "squared", "step_size": 0.2, "average": False},
    {"loss": "calibrated_hinge", "tail": "drop", "rank": 6},
    {"hessian_refresh": 2, "step_size": 0.3}, {"fit_intercept": False, "negatives_per_positive": None},
    {"class_weight": "balanced", "negatives_per_positive": 1}], ids=str)
@pytest.mark.parametrize("in_order", [False, True], ids=["random", "sorted"])
def test_fits_are_as_good_as_in_memory(digits, parameters, kind, in_order, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK", 1 << 16)                      # 10 windows
    _, X_test, _, y_test = digits
    memory, there = in_memory_and_there(model(**parameters), digits, kind, in_order, tmp_path)
    assert there.score(X_test, y_test) > memory.score(X_test, y_test) - 0.02
    assert there.history_["objective"][-1] == pytest.approx(memory.history_["objective"][-1], rel=0.15)
    assert there.history_.keys() == memory.history_.keys() and there.n_iter_ == 4
    np.testing.assert_allclose(there.class_prior_, memory.class_prior_)
    np.testing.assert_allclose(there.sampled_prior_, memory.sampled_prior_, rtol=0.1)


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


def test_what_is_chosen_is_what_memory_chooses(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK", 1 << 16)
    X, _, y, _ = digits
    memory, there = model().fit(X, y), model().fit(files_of(X, "npy C", tmp_path), y)
    assert there.step_size_ == memory.step_size_ and there.rank_ == memory.rank_
    np.testing.assert_array_equal(there.eigenvalues_, memory.eigenvalues_)
    np.testing.assert_array_equal(there.preconditioner_.eigenvectors, memory.preconditioner_.eigenvectors)


def test_labels_that_do_not_exclude_each_other(data, tmp_path):                    # noqa: F811
    X, y = data
    Y = np.column_stack([y == 0, y > 0, X[:, 0] > 0.5])
    order = np.argsort(y)
    memory = SLNDClassifier(random_state=1).fit(X[order], Y[order])
    there = SLNDClassifier(random_state=1).fit(files_of(X[order], "npy C", tmp_path), Y[order])
    assert there.coef_.shape == (3, 9)
    assert ((there.predict(X) == Y).mean(axis=0) > (memory.predict(X) == Y).mean(axis=0) - 0.02).all()


@pytest.mark.parametrize("parameters", [{}, {"hessian_refresh": 1, "step_size": 0.3}], ids=str)
@pytest.mark.parametrize("kinds", [["npy C", "npy F", "npz", "memmap", "memmap F", "shards"],
                                   ["csr npz", "csr folder", "csr shards"]], ids=["dense", "csr"])
def test_the_same_bits_however_the_rows_lie_in_files_and_for_any_number_of_threads(
        data, kinds, parameters, tmp_path):                                        # noqa: F811
    assert len(bits_of_fits(model(max_passes=2, **parameters), *data, kinds, tmp_path)) == 1


def test_bsn_goes_on_from_weights_inside_its_basis_and_outside(data, tmp_path):    # noqa: F811
    X, y = data
    files = files_of(X, "npy C", tmp_path)
    two = BSNClassifier(loss="logistic", random_state=1, warm_start=True, max_passes=2).fit(files, y)
    first, n_first = two.score(files, y), two._passes_total
    two.fit(files, y)
    assert two._passes_total == 2 * n_first and two.score(files, y) > first - 0.02
    two.set_params(tail="drop", rank=3).fit(files, y)
    assert two.score(files, y) > first - 0.02                        # the part outside the basis is kept


# ---------------------------------------------------------------- checkpoints, interrupts, refusals

@pytest.mark.parametrize("chosen", [{}, {"hessian_refresh": 1}], ids=str)
def test_a_checkpoint_is_gone_on_with_to_the_same_bits(chosen, data, tmp_path):    # noqa: F811
    X, y = data
    files = files_of(X, "npy C", tmp_path)
    whole = model(**chosen)

    def fitted(stop):
        return clone(whole).set_params(checkpoint=Checkpoint(tmp_path / "fit", seconds=0.0), callback=stop)

    for passes in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            fitted(StopAt(passes)).fit(files, y)
    alone, again = clone(whole).fit(files, y), fitted(None).fit(files, y)
    np.testing.assert_array_equal(again.coef_, alone.coef_)
    assert again.n_passes_ == alone.n_passes_ and len(again.history_["pass"]) == 4
    assert not (tmp_path / "fit").exists()


@pytest.mark.parametrize("after", [0, 200, 600])
def test_ctrl_c_while_the_disk_is_slow(data, after, tmp_path, monkeypatch):        # noqa: F811
    X, y = data
    files = files_of(X, "npy C", tmp_path)
    Slow(monkeypatch, 30.0, after, listens=True)
    fitted = model(max_passes=50, step_size=0.5)
    assert stopped_by_ctrl_c(fitted, files, y) < 8.0         # the disk takes 30
    assert np.isfinite(fitted.coef_).all() and fitted.coef_.shape == (3, 9)


def test_max_time_while_the_disk_is_slow(data, tmp_path, monkeypatch):             # noqa: F811
    X, y = data
    Slow(monkeypatch, 20.0, 600)
    begin = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        fitted = model(max_time=0.5, max_passes=50).fit(files_of(X, "npy C", tmp_path), y)
    assert time.perf_counter() - begin < 8.0 and np.isfinite(fitted.coef_).all()


def test_numbers_are_checked_when_they_are_first_read(data, tmp_path):             # noqa: F811
    X, y = data
    for row in (0, 450, 899):
        broken = X.copy()
        broken[row, 3] = np.nan
        with pytest.raises(ValueError, match="Input X contains NaN"):
            model().fit(files_of(broken, "npy C", tmp_path), y)


@pytest.mark.parametrize("estimator, what", [
    (model(step_size="theory"), "SLNDClassifier with step_size='theory'"),
    (baselines.BalancedSGDClassifier(), "BalancedSGDClassifier with loss="), (model(l2=1.0), "l2=1.0")],
    ids=["theory", "baseline", "l2"])
def test_what_needs_rows_in_memory_says_so(estimator, what, data, tmp_path):       # noqa: F811
    with pytest.raises(ValueError, match=f"{what}.*needs"):
        estimator.fit(files_of(data[0], "npy C", tmp_path), data[1])
