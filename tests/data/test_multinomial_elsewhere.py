"""The penalised multinomial optimum of rows in files, over ranks and on workers: that of the same rows in memory."""

import gc
import time
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from rows_in_files import IN_FILES, files_of
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from test_ranks import fitted, parts_of
from workers_in_place import InPlace, Losing, fitted_in_place

from cmargin import Checkpoint, SLNDClassifier, SLNDClassifierCV, slnd_path
from cmargin.data.files import softmax_rows as files_softmax_rows
from cmargin.data.files import source as files_source
from cmargin.solvers.multinomial import newton as multinomial_newton

X, Y = blobs(n=700, d=6, k=4)
X = X * np.array([1, 2, 0.5, 1, 1, 3.0])
STRONG, BALANCED = {"l2": 1e-1}, {"l2": 1e-5, "class_weight": "balanced"}
NO_INTERCEPT = {"l2": 1e-3, "fit_intercept": False}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(files_source, "CHUNK", 8000)


def agree(one, there, tol, weights):
    """Both are certified, and within ``weights`` of each other."""
    assert one.duality_gap_ <= tol and there.duality_gap_ <= tol
    lowest = one.objective_ * (1 - one.duality_gap_)
    assert lowest * (1 - 1e-12) <= there.objective_ <= lowest + (tol + 1e-12) * there.objective_
    np.testing.assert_allclose(there.coef_, one.coef_, atol=weights)
    np.testing.assert_allclose(there.intercept_, one.intercept_, atol=weights)


@pytest.mark.parametrize("kind, settings", [
    (kind, (BALANCED, NO_INTERCEPT, STRONG)[place % 3]) for place, kind in enumerate(IN_FILES)], ids=str)
def test_in_files_the_optimum_is_that_in_memory(kind, settings, dtype, tmp_path):
    rows, model = X.astype(dtype), SLNDClassifier(tol=1e-6, **settings)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
    one = clone(model).fit(sp.csr_matrix(rows) if "csr" in kind else rows, Y, weight)
    there = model.fit(files_of(rows, kind, tmp_path), Y, weight)
    agree(one, there, 1e-6, 1e-9 if dtype == np.float64 else 3e-3)
    assert there.n_iter_ == one.n_iter_ or dtype == np.float32


def test_blocks_of_the_classes_precondition_rows_in_files(monkeypatch, tmp_path):
    made, real = [], multinomial_newton.ClassInverse
    monkeypatch.setattr(multinomial_newton, "ClassInverse", lambda *about: made.append(about) or real(*about))
    agree(SLNDClassifier(l2=1e-8, tol=1e-9).fit(X, Y),
          SLNDClassifier(l2=1e-8, tol=1e-9).fit(files_of(X, "npy C", tmp_path), Y), 1e-9, 1e-4)
    assert len(made) >= 2


@pytest.mark.parametrize("size, how", [(1, "even"), (2, "even"), (3, "uneven")])
@pytest.mark.parametrize("layout, settings", [("dense", STRONG), ("CSR", BALANCED), ("dense", NO_INTERCEPT)], ids=str)
def test_over_ranks_the_optimum_is_one_machines(size, how, layout, settings, dtype):
    rows = X.astype(dtype) if layout == "dense" else sp.csr_matrix(X.astype(dtype))
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
    weight[Y == 2] = 0                                      # a class that no row of weight is of
    models, one, _ = fitted(lambda: SLNDClassifier(tol=1e-6, **settings), size, rows, Y, weight, how)
    for other in models[1:]:
        assert other.coef_.tobytes() == models[0].coef_.tobytes() and other.objective_ == models[0].objective_
    agree(one, models[0], 1e-6, 3e-3)
    assert (models[0].predict(X) != 2).all()


def test_scores_of_rows_stay_with_their_ranks():
    _, _, comms = fitted(lambda: SLNDClassifier(l2=1e-3, tol=1e-6), 2, X, Y)
    largest = max(size for kind, size in comms[0].calls if kind == "Reduce")
    assert largest == 8 * (2 + 2 + 7 * 4)                   # the state, risk and entropy, a gradient


@pytest.mark.parametrize("cuts", [[200, 450], [10, 10, 690]], ids=str)
@pytest.mark.parametrize("l2", [1e-1, 1e-4])
def test_on_workers_the_optimum_is_that_here_whatever_they_lose(cuts, l2, dtype):
    rows = X.astype(dtype)
    one = SLNDClassifier(l2=l2, tol=1e-6).fit(rows, Y)
    safe, losing = (fitted_in_place(SLNDClassifier(l2=l2, tol=1e-6), rows, Y, cuts, kind()) for kind in
                    (InPlace, Losing))
    agree(one, safe, 1e-6, 1e-9 if dtype == np.float64 else 3e-3)
    np.testing.assert_array_equal(safe.coef_, losing.coef_)


@pytest.mark.parametrize("where", ["files", "ranks"])
def test_a_checkpoint_is_gone_on_with_to_the_same_bits(where, tmp_path):
    path, model = tmp_path / "fit", SLNDClassifier(l2=1e-4, tol=1e-10)
    often = Checkpoint(path, seconds=None, passes=1e-9)

    def fit(**settings):
        made = clone(model).set_params(**settings)
        if where == "files":
            return made.fit(files_of(X, "npy C", tmp_path), Y)
        return fitted(lambda: clone(made), 3, X, Y, how="uneven")[0][0]

    whole = fit()
    assert whole.n_iter_ > 6
    steps = []

    def stop(model):
        steps.append(model.n_iter_)
        if len(steps) == 4:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError):
        fit(checkpoint=often, callback=stop)
    again = fit(checkpoint=often)
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert again.n_iter_ == whole.n_iter_ and again.objective_ == whole.objective_


def test_time_ends_a_fit_of_rows_in_files_with_its_best_weights(tmp_path, monkeypatch):
    files, begin = files_of(X, "npy C", tmp_path), time.perf_counter()
    reads, real = [0], files_source.FileSource.load

    def load(source, k, room):
        reads[0] += 1
        if reads[0] > 60:
            time.sleep(0.05)
        return real(source, k, room)

    monkeypatch.setattr(files_source.FileSource, "load", load)
    with pytest.warns(ConvergenceWarning, match="stopped at max_time=0.5 s"):
        model = SLNDClassifier(l2=1e-8, tol=1e-12, max_time=0.5).fit(files, Y)
    assert time.perf_counter() - begin < 10 and model.score(X, Y) > 0.5 and np.isfinite(model.coef_).all()


@pytest.mark.parametrize("settings", [{"l2s": [1e-1, 1e-3, 1e-5]}, {"l2s": [1e-1, 1e-4], "between": True},
                                      {"n_l2s": 5, "l2_min": 1e-2}], ids=str)
def test_a_path_of_rows_in_files(settings, tmp_path):
    here, there = (slnd_path(rows, Y, tol=1e-3, **settings) for rows in (X, files_of(X, "npy C", tmp_path)))
    np.testing.assert_allclose(there.l2s[0], here.l2s[0])
    assert there.gaps.max() <= 1e-3 and len(there) == len(here)
    assert there.objectives[0] == pytest.approx(here.objectives[0], rel=2e-3)


@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "f1_macro"])
def test_a_search_of_rows_in_files_has_the_scores_of_one_in_memory(scoring, tmp_path):
    search = SLNDClassifierCV([1e-1, 1e-3, 1e-5], cv=3, scoring=scoring, estimator=SLNDClassifier(tol=1e-8))
    here, there = (clone(search).fit(rows, Y) for rows in (X, files_of(X, "npy F", tmp_path)))
    np.testing.assert_allclose(there.scores_, here.scores_, atol=1e-4)
    assert there.l2_ == here.l2_ and there.n_passes_ == pytest.approx(here.n_passes_, rel=0.2)
    assert (there.cv_results_["max_duality_gap"] <= 1e-8).all()


@pytest.mark.parametrize("fit", [
    lambda files: SLNDClassifier(l2=1e-3).fit(files, Y), lambda files: slnd_path(files, Y, l2s=[1e-1, 1e-3]),
    lambda files: SLNDClassifierCV([1e-1, 1e-3], cv=2).fit(files, Y)], ids=["fit", "path", "search"])
def test_no_scores_of_rows_in_files_stay_behind(fit, tmp_path, monkeypatch):
    kept, init = [], files_softmax_rows.FileSoftmaxPass.__init__
    monkeypatch.setattr(files_softmax_rows.FileSoftmaxPass, "__init__",
                        lambda rows, *about: kept.append(weakref.ref(rows)) or init(rows, *about))
    gc.disable()                                            # which may come late
    try:
        fit(files_of(X, "npy C", tmp_path))
        assert kept and all(rows() is None for rows in kept)
    finally:
        gc.enable()


def test_partitions_of_ranks_are_as_meant():
    assert [len(part) for part in parts_of(len(Y), 3, "uneven")] == [70, 0, 630]
