"""Searches over rows in files and on devices: folds by weights of 0, the scores of rows in memory, few reads."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import blobs
from rows_in_files import files_of
from sklearn.model_selection import GroupKFold, ShuffleSplit
from tensors import strict, strict_on

from cmargin import SmSVMClassifier, SmSVMClassifierCV, smsvm_path
from cmargin.data.files.source import FileSource
from cmargin.solvers.path import PathSolver

TIGHT = SmSVMClassifier(tol=1e-8)
PLACES = ["npy C", "npy F", "memmap", "shards", "csr folder", "csr shards"] + ["device"] * (strict is not None)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr("cmargin.data.files.source.CHUNK", 5000)


@pytest.fixture
def reads(monkeypatch):
    """Sums up the reads of the files of all fits that have ended."""
    told, let_go = [], FileSource.let_go

    def heard(self):
        told.append(self.reads)
        self.reads = 0.0
        let_go(self)

    monkeypatch.setattr(FileSource, "let_go", heard)
    return told


def data(n_classes=2, n=300, m=5, seed=0):
    X, y = blobs(n, m, n_classes, seed)
    return X, y


def elsewhere(X, place, folder):
    return strict_on("device1")(X) if place == "device" else files_of(X, place, folder)


def assert_same(search, of_memory, within=1e-9):
    np.testing.assert_allclose(search.scores_, of_memory.scores_, rtol=0, atol=within)
    assert search.best_params_ == of_memory.best_params_
    assert (search.cv_results_["max_duality_gap"] <= search.best_estimator_.tol).all()
    np.testing.assert_allclose(search.coef_, of_memory.coef_, rtol=0, atol=1e-4)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_those_of_rows_in_memory(place, n_classes, tmp_path):
    X, y = data(n_classes)
    given = {"l2s": np.geomspace(1e-4, 1, 7), "cv": 3, "estimator": TIGHT}
    search = SmSVMClassifierCV(**given).fit(elsewhere(X, place, tmp_path), y)
    assert_same(search, SmSVMClassifierCV(**given).fit(sp.csr_matrix(X) if "csr" in place else X, y))
    assert search.predict(X).shape == y.shape


@pytest.mark.parametrize("given", [
    {"Cs": [0.01, 1.0, np.inf, 0.01], "l1s": (1e-3,)}, {"l2s": 4}, {"l2s": (1e-2, 1e-1), "l1s": (0.0, 1e-3, 1e-2)},
    {"l2s": (1e-2,), "scoring": "roc_auc"}, {"l2s": (1e-3, 1e-1), "cv": GroupKFold(3)},
    {"l2s": (1e-3, 1e-1), "cv": ShuffleSplit(4, random_state=0, test_size=0.3)},
    {"l2s": (1e-2, 1.0), "estimator": SmSVMClassifier(tol=1e-10, loss="logistic"), "scoring": "neg_log_loss"},
    {"l2s": (1e-3, 1e-1), "estimator": SmSVMClassifier(tol=1e-8, class_weight="balanced", fit_intercept=False)}],
    ids=str)
def test_all_that_a_search_is_asked_for(given, tmp_path):
    # folds of a fit by C have penalties of their own: rows of a fold weigh what they weigh
    X, y = data(seed=1)
    rng = np.random.default_rng(0)
    given = {"cv": 3, "estimator": TIGHT, **given}
    more = {"sample_weight": rng.uniform(0, 2, len(y))}
    if isinstance(given["cv"], GroupKFold):
        more["groups"] = rng.integers(0, 6, len(y))
    search = SmSVMClassifierCV(**given).fit(files_of(X, "npy C", tmp_path), y, **more)
    assert_same(search, SmSVMClassifierCV(**given).fit(X, y, **more), 1e-7)


def test_label_indicators(tmp_path):
    X, y = data(3)
    Y = np.stack([y == 0, y > 0, y == 2], axis=1).astype(int)
    given = {"l2s": (1e-3, 1e-1), "cv": 3, "estimator": TIGHT}
    assert_same(SmSVMClassifierCV(**given).fit(files_of(X, "shards", tmp_path), Y),
                SmSVMClassifierCV(**given).fit(X, Y))


def test_a_fold_without_a_class_and_one_of_a_single_class(tmp_path):
    X, y = data(3)
    cv = [(np.flatnonzero(y != 2), np.flatnonzero(y == 2)), (np.flatnonzero(y == 1), np.arange(50))]
    given = {"l2s": (1e-2, 1e-1), "cv": cv, "estimator": TIGHT}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert_same(SmSVMClassifierCV(**given).fit(files_of(X, "npy C", tmp_path), y),
                    SmSVMClassifierCV(**given).fit(X, y))


def test_bits_do_not_depend_on_threads(tmp_path):
    X, y = data(3)
    rows = files_of(X, "npy C", tmp_path)
    one, two = (SmSVMClassifierCV(l2s=np.geomspace(1e-3, 1, 6), cv=3, n_jobs=n).fit(rows, y) for n in (1, 2))
    assert np.array_equal(one.cv_results_["max_duality_gap"], two.cv_results_["max_duality_gap"])
    assert np.array_equal(one.scores_, two.scores_) and np.array_equal(one.coef_, two.coef_)


def test_folds_and_penalties_share_reads(tmp_path, reads):
    # one problem after the other would read the file as often as all of them together count
    X, y = data(n=1000)
    rows, grid = files_of(X, "npy C", tmp_path), np.geomspace(1e-5, 1, 30)
    search = SmSVMClassifierCV(l2s=grid, cv=5, estimator=SmSVMClassifier(tol=1e-4)).fit(rows, y)
    of_search = sum(reads)
    assert of_search == pytest.approx(search.n_passes_)
    apart = SmSVMClassifierCV(l2s=grid, cv=5, estimator=SmSVMClassifier(tol=1e-4)).fit(X, y).n_passes_
    assert of_search < apart / 4

    reads.clear()
    path = smsvm_path(rows, y, l2s=grid[::-1], tol=1e-4)
    assert path.gaps.max() <= 1e-4 and sum(reads) < 0.7 * path.n_passes
    reads.clear()
    path = smsvm_path(rows, y, tol=1e-3)
    assert path.gaps.max() <= 1e-3 and sum(reads) < 0.9 * path.n_passes


def test_scores_are_made_in_pieces_where_memory_has_no_room(tmp_path, monkeypatch, reads):
    X, y = data()
    rows, given = files_of(X, "npy C", tmp_path), {"l2s": np.geomspace(1e-3, 1, 6), "cv": 3, "estimator": TIGHT}
    whole = SmSVMClassifierCV(**given).fit(rows, y)
    n_reads = sum(reads)
    monkeypatch.setattr("cmargin._estimators.search.elsewhere.GATHERED", 0.0)
    pieces = SmSVMClassifierCV(**given).fit(rows, y)
    assert np.array_equal(whole.scores_, pieces.scores_)
    assert sum(reads) - n_reads > n_reads                        # one read a score then, and not one for all


def test_fits_at_work_have_room_for_what_they_keep_of_the_columns(tmp_path, monkeypatch):
    # six arrays of all pairs of columns each: 30 fits over 600 columns took 500 MB
    X, y = data(3, m=40)
    rows, given = files_of(X, "npy C", tmp_path), {"l2s": np.geomspace(1e-3, 1, 6), "cv": 3, "estimator": TIGHT}
    whole, way, at_work, most = SmSVMClassifierCV(**given).fit(rows, y), PathSolver._way, [0], [0]

    def counted(*arguments):
        at_work[0] += 1
        most[0] = max(most[0], at_work[0])
        yield from way(*arguments)
        at_work[0] -= 1

    monkeypatch.setattr(PathSolver, "_way", counted)
    monkeypatch.setattr("cmargin.data.files.source.memory_left", lambda: 6e5)
    few = SmSVMClassifierCV(**given).fit(rows, y)
    assert 1 < most[0] < 4 and np.array_equal(whole.scores_, few.scores_)


def test_the_strongest_penalties_are_proven_first_where_time_may_end_the_search(tmp_path, monkeypatch):
    # all fits went on together, none had ended when time was over, and nothing was scored
    X, y = data()
    fit_at, asked = PathSolver.fit_at, []
    monkeypatch.setattr(PathSolver, "fit_at", lambda self, fits: (asked.append({of.l2 for _, of in fits}),
                                                                  fit_at(self, fits)))
    given = {"l2s": np.geomspace(1e-4, 1, 8), "cv": 3, "estimator": TIGHT}
    timed = SmSVMClassifierCV(**given, max_time=1000.0).fit(files_of(X, "npy C", tmp_path), y)
    assert asked[:2] == [{1.0}, {1e-4}]
    assert_same(timed, SmSVMClassifierCV(**given).fit(X, y))


@pytest.mark.parametrize("given, what", [
    ({"cv": "loo"}, "cv='loo'"), ({"standardize": True}, "standardize=True"),
    ({"scoring": lambda model, X, y: 1.0}, "whose scoring asks for rows"),
    ({"l2s": (0.0,)}, "by single fits"), ({"estimator": SmSVMClassifier(lower=0.0)}, "by single fits"),
    ({"estimator": SmSVMClassifier(max_time=5.0)}, "by single fits")])
def test_what_is_refused_says_so(given, what, tmp_path):
    X, y = data()
    with pytest.raises(ValueError, match=f"{what}.* needs the rows in memory"):
        SmSVMClassifierCV(**{"l2s": (1e-2,), **given}).fit(files_of(X, "npy C", tmp_path), y)


def test_time_is_over_at_once(tmp_path):
    X, y = data()
    with pytest.warns(UserWarning, match="6 of 6 fits of folds not made"):
        search = SmSVMClassifierCV(l2s=(1e-2, 1e-1), cv=3, max_time=1e-9).fit(files_of(X, "npy C", tmp_path), y)
    assert np.isnan(search.scores_).all() and search.l2_ == 1e-1


def test_an_interrupted_search_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    X, y = data()
    rows, count, made = files_of(X, "npy C", tmp_path), PathSolver._count, []
    given = {"l2s": np.geomspace(1e-4, 1, 8), "cv": 3, "estimator": TIGHT}

    def counted(*arguments):
        count(*arguments)
        made.append(1)
        if len(made) == stops_after:
            raise KeyboardInterrupt

    monkeypatch.setattr(PathSolver, "_count", counted)
    stops_after = None
    whole = SmSVMClassifierCV(**given).fit(rows, y)
    n_fits, stops_after = len(made), len(made) + 8
    search = SmSVMClassifierCV(**given, checkpoint=tmp_path / "search.checkpoint")
    with pytest.raises(KeyboardInterrupt):
        search.fit(rows, y)
    assert (tmp_path / "search.checkpoint").exists() and not hasattr(search, "scores_")
    made.clear()
    search.fit(rows, y)
    assert not (tmp_path / "search.checkpoint").exists()
    assert_same(search, whole)
    assert len(made) == n_fits - 8
