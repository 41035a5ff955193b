"""After a fit nothing of it holds the caller's rows, without the cyclic collector, however it ended."""

import gc
import warnings
import weakref
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from campaign.estimators import ESTIMATORS, WAYS, make
from conftest import named
from estimators import quick_estimators
from ranks_in_threads import on_ranks
from rows_in_files import files_of
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tensors import strict, strict_on

from cmargin import Checkpoint, MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier, SmSVMClassifierCV
from cmargin.data.memory.row_pass import MemoryRowPass
from cmargin.solvers import cost

FEW = {"max_passes": 3, "n_jobs": 1, "l2s": (1e-2,), "cv": 2}
ALL_WAYS = [make(name, **{**FEW, **way}) for name in ESTIMATORS for way in WAYS.get(name, [{}])]
HOMES = {
    "C": np.array, "F": np.asfortranarray, "float32": lambda X: X.astype(np.float32), "csr": sp.csr_array,
    "int8": lambda X: np.rint(X).astype(np.int8), "memmap": None, "files": None, "csr files": None}
if strict is not None:
    HOMES["device"] = strict_on("device1")
KINDS = {"memmap": "memmap", "files": "shards", "csr files": "csr folder"}


@pytest.fixture(autouse=True, scope="module")
def no_collector():
    """Collections that a test asks for look at the tests' objects alone, and take little time."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def in_cycles():
    """Classes of ours, and methods of them, among the objects that only the collector would find."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        found = {type(one).__qualname__ if type(one).__module__.startswith("cmargin") else one.__qualname__
                 for one in gc.garbage
                 if type(one).__module__.startswith("cmargin")
                 or str(getattr(one, "__module__", "")).startswith("cmargin")}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    return found


@contextmanager
def released():
    """A list for what is to be gone with the block but for the one who made it; and nothing may be in a cycle."""
    gone = []
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield gone
    assert [kept for kept in (one() for one in gone) if kept is not None] == []
    assert in_cycles() == set()


def problem(n=90, d=5, k=3, seed=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.standard_normal((k, d))[y] + rng.standard_normal((n, d)), y


def placed(X, source, folder):
    if source not in KINDS:
        return HOMES[source](X)
    return files_of(X, KINDS[source], folder)


def fit_ends(model, X, y, ending, folder):
    """Fit, which ends so; the name of the exception that ended it, or None."""
    def asked(_):
        if ending == "interrupt":
            raise KeyboardInterrupt
        if ending == "error":
            raise ZeroDivisionError
        return True

    chosen = {"max_time": {"max_time": 1e-9}, "checkpoint": {"checkpoint": Checkpoint(str(folder / "c"), 0.0)}}.get(
        ending, {"callback": asked} if ending in ("interrupt", "error", "stop") else {})
    model.set_params(**{name: value for name, value in chosen.items() if name in model.get_params()})
    try:
        model.fit(X, np.zeros(len(y)) if ending == "one class" else y)
    except (Exception, KeyboardInterrupt) as error:
        return type(error).__name__


ENDED = {"max_time": (None,), "stop": (None,), "checkpoint": (None,), "interrupt": ("KeyboardInterrupt",),
         "error": ("ZeroDivisionError",), "one class": ("ValueError",), "NaN": ("ValueError",)}
ELSEWHERE = [SmSVMClassifier(), SmSVMClassifier(loss="logistic"), MarginPursuitClassifier(),
             SLNDClassifier(random_state=0, max_passes=3),
             SLNDClassifier(loss="multinomial", random_state=0, max_passes=3)]


def cases():
    """Every way of every estimator, every estimator on every home and with every ending, a few with all of these."""
    yield from ((model, "C", ending, None) for model in ALL_WAYS for ending in (None, "interrupt"))
    yield from ((model, source, None, None) for model in quick_estimators() for source in HOMES)
    # the search has no callback; its fits end so below
    yield from ((model, "C", ending, ENDED[ending]) for model in quick_estimators() for ending in ENDED
                if ending not in ("interrupt", "error", "stop") or "callback" in model.get_params())
    yield from ((model, source, ending, ENDED[ending]) for source in ("csr", "files", "csr files", "device")
                for model in ELSEWHERE for ending in ("max_time", "interrupt", "error", "stop", "NaN")
                if source in HOMES)


@pytest.mark.parametrize("model, source, ending, expected", list(cases()), ids=named)
def test_rows_go_with_their_last_name_however_a_fit_ends(model, source, ending, expected, tmp_path):
    # SmSVM's checkpoint held a method of the fit that held the checkpoint, and the rows' data source another one: eight
    # arrays of 57 MiB held 457 MiB until the collector came. An interrupt that is raised again after the fit is stored,
    # by a frame that had it among its variables, was a cycle too
    with released() as gone:
        X, y = problem()
        X[7, 2] = np.nan if ending == "NaN" else X[7, 2]
        X = placed(X, source, tmp_path)
        gone.append(weakref.ref(X))
        model = clone(model)
        ended = fit_ends(model, X, y, ending, tmp_path)
        assert expected is None or ended in expected
        if hasattr(model, "coef_"):
            model.predict(X)
        del X


@pytest.mark.parametrize("model", [SmSVMClassifier(), SmSVMClassifier(loss="squared_hinge"), MarginPursuitClassifier()],
                         ids=named)
@pytest.mark.parametrize("ending", [None, "interrupt", "error", "stop", "max_time"])
@pytest.mark.parametrize("k", [2, 3])
def test_a_fit_that_begins_on_a_tenth_of_the_rows(model, ending, k, tmp_path, monkeypatch):
    # what was asked after every evaluation at the tenth held the driver that asked
    for name in ("SUBSET_FROM_ROWS", "SUBSET_ROWS_PER_COLUMN"):
        monkeypatch.setattr(cost, name, 0)
    with released() as gone:
        X, y = problem(n=900, k=k)
        gone.append(weakref.ref(X))
        fit_ends(clone(model), X, y, ending, tmp_path)
        del X


def raises(error):
    """A callback that does."""
    def asked(_):
        raise error

    return asked


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_a_search_whose_fits_end_so(error, tmp_path):
    with released() as gone:
        X, y = problem()
        gone.append(weakref.ref(X))
        search = SmSVMClassifierCV(l2s=(1e-2,), cv=2, estimator=SmSVMClassifier(callback=raises(error)))
        assert fit_ends(search, X, y, None, tmp_path) == error.__name__
        del X


@pytest.mark.parametrize("model", [SmSVMClassifier(), MarginPursuitClassifier(max_passes=3),
                                   SLNDClassifier(max_passes=3, random_state=0),
                                   SLNDClassifier(loss="multinomial", max_passes=3, random_state=0)], ids=named)
@pytest.mark.parametrize("ending", [None, "interrupt", "error", "one class", "NaN"])
def test_over_ranks(model, ending, tmp_path):
    X, y = problem()
    X[7, 2] = np.nan if ending == "NaN" else X[7, 2]
    gone = []

    def work(comm):
        mine = np.array(X[comm.rank::2])
        gone.append(weakref.ref(mine))
        one = clone(model)
        if comm.rank == 0 and ending in ("interrupt", "error"):
            one.set_params(callback=raises({"interrupt": KeyboardInterrupt, "error": ZeroDivisionError}[ending]))
        try:
            one.fit(mine, np.zeros(len(mine)) if ending == "one class" else y[comm.rank::2], comm=comm)
        except (Exception, KeyboardInterrupt) as error:
            return type(error).__name__

    with released() as left:
        found, _ = on_ranks(2, work)
        assert found[0] == found[1] and (found[0] is None) == (ending is None)
        left += gone


def test_a_read_that_fails_is_let_go(tmp_path):
    # the future of a read had its exception, whose traceback had the frame that had the future
    X, y = problem(n=4000)
    np.save(tmp_path / "X.npy", X)
    with released() as gone:
        files = files_of(X, "npy C", tmp_path)
        (tmp_path / "X.npy").write_bytes((tmp_path / "X.npy").read_bytes()[:20_000])
        gone.append(weakref.ref(files))
        assert fit_ends(SmSVMClassifier(), files, y, None, tmp_path) is not None
        del files


def test_rows_of_the_subset_go_before_the_fit_to_all_rows(monkeypatch):
    # which a local name kept to the end of the fit
    rng, parts, alive = np.random.default_rng(0), [], []
    X = np.asfortranarray(rng.standard_normal((60_000, 8)))
    y = X.sum(axis=1) + 3 * rng.standard_normal(60_000) > 0
    subset = MemoryRowPass.subset
    monkeypatch.setattr(MemoryRowPass, "subset",
                        lambda *given: parts.append(weakref.ref(made := subset(*given))) or made)
    asked = {"loss": "squared_hinge", "tol": 1e-6, "l2": 1e-5}
    SmSVMClassifier(**asked, callback=lambda *_: alive.append([part() is not None for part in parts])).fit(X, y)
    assert any(alive[0]) and not any(alive[-1])
