"""The hold of BLAS to one thread: from every thread, by count, through errors, forks and libraries of other kinds."""

import os
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from api import _blas_libraries
from conftest import named
from estimators import quick_estimators
from sklearn.base import clone
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from cmargin._runtime import blas_threads as hold
from cmargin._runtime.blas_threads import _find, _Library, blas_threads, single_threaded_blas
from cmargin.data import open_rows

HANG = 300.0        # seconds after which a fit counts as hung; they take a tenth of one


@pytest.fixture
def two_threads():
    """BLAS with two threads, whatever the machine and the environment."""
    before = [library.get() for library in _find()]
    for library in _find():
        library.set(2)
    yield
    for library, n in zip(_find(), before, strict=True):
        library.set(n)


def counts():
    return set(blas_threads().values())


def in_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result(HANG)


def held_counts():
    with single_threaded_blas():
        return counts()


def test_numpys_and_scipys_libraries_are_both_found():
    # The hold was once taken before SciPy's library was loaded, and never looked again
    code = "from cmargin._runtime.blas_threads import blas_threads; print(*blas_threads())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(found) == sorted(blas_threads()) and found


@pytest.mark.parametrize(("names", "trails"), [
    (["Haswell", "Haswell"], True), (["Haswell", "SkylakeX"], False), (["zen3"], True), (["Zen", ""], False),
    ([], False)])
def test_a_library_trails_where_it_is_known_to_have_shorter_registers_than_the_processor(monkeypatch, names, trails):
    monkeypatch.setattr(_blas_libraries, "blas_libraries", lambda: [SimpleNamespace(architecture=n) for n in names])
    assert _blas_libraries.blas_trails() == trails


def test_another_thread_can_hold_where_threadpoolctl_lets_only_the_first_one(two_threads):
    # From version 3.8 on the first thread to set OpenBLAS's count is the only one that can, as long as it lives: holds
    # in other threads did nothing. Eight fits of load_digits took 134 s in eight threads, 2.5 s one by one.
    threadpool_limits(2, user_api="blas")               # this thread is in control from here on
    assert held_counts() == {1}
    assert in_thread(held_counts) == {1}
    assert counts() == {2}


def test_holds_of_several_threads_overlap_and_the_last_one_out_gives_back(two_threads):
    n_threads, seen = 4, []
    together = threading.Barrier(n_threads, timeout=HANG)

    def one(number):
        with single_threaded_blas():
            together.wait()
            for _ in range(200):
                with single_threaded_blas():
                    seen.append(counts())
            if number:                                   # all but the first leave
                return
            while hold._users > 1:
                pass
            seen.append(counts())

    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(one, range(n_threads), timeout=HANG))
    assert len(seen) == 200 * n_threads + 1 and set().union(*seen) == {1}
    assert counts() == {2} and hold._users == 0


def test_a_hold_inside_another_waits_for_nobody(two_threads, monkeypatch):
    # a small fit has sixty of them: with the lock each waited for those of other threads
    class Counting:
        entered = 0

        def __enter__(self):
            self.entered += 1

        def __exit__(self, *error):
            pass

    monkeypatch.setattr(hold, "_lock", Counting())
    with single_threaded_blas():
        for _ in range(5):
            with single_threaded_blas():
                assert counts() == {1}
        for library in _find():
            library.set(2)                               # by somebody else
        with single_threaded_blas():
            assert counts() == {1}
    assert hold._lock.entered == 3 and counts() == {2} and hold._users == 0


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_an_error_gives_back(two_threads, error):
    with pytest.raises(error), single_threaded_blas(), single_threaded_blas():
        assert counts() == {1}
        raise error
    assert counts() == {2} and hold._users == 0


def test_a_count_that_was_not_ours_is_left_alone(two_threads):
    for library in _find():
        library.set(1)
    assert held_counts() == {1} and counts() == {1}


def test_a_change_from_outside_is_undone_by_the_next_hold_and_told_of_in_debug(two_threads, monkeypatch):
    with single_threaded_blas():
        _find()[0].set(2)
        assert held_counts() == {1}
    monkeypatch.setenv("CMARGIN_DEBUG", "1")
    assert held_counts() == {1}
    with pytest.raises(RuntimeError, match="something else set it"), single_threaded_blas():
        _find()[0].set(2)
    assert hold._users == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("who", ["another", "this"])
def test_a_child_made_by_fork_during_a_hold(who):
    # The holds of other threads are not in the child: it must not wait for their end, nor stay at one thread for ever
    code = f"""
        import os, threading, warnings
        warnings.simplefilter("ignore")
        from cmargin._runtime.blas_threads import _find, blas_threads, single_threaded_blas
        def counts():
            return set(blas_threads().values())
        for library in _find():
            library.set(2)
        ready, over = threading.Event(), threading.Event()
        def hold():
            with single_threaded_blas():
                ready.set()
                over.wait()
        def child():
            with single_threaded_blas():
                assert counts() == {{1}}
        if {who!r} == "another":
            threading.Thread(target=hold).start()
            ready.wait()
            pid = os.fork()
            if not pid:
                assert counts() == {{2}}
                child()
                assert counts() == {{2}}
                os._exit(0)
            over.set()
        else:
            with single_threaded_blas():
                pid = os.fork()
                child()
                assert counts() == {{1}}
            assert counts() == {{2}}
            if not pid:
                os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    """
    code = "\n".join(line[8:] for line in code.splitlines())
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG)


# ---------------------------------------------------------------- libraries of other kinds

class Counted(threading.local):
    """A library that counts for each thread."""

    n = 3

    def set(self, n):
        self.n = n

    def get(self):
        return self.n


@pytest.fixture
def per_thread(monkeypatch):
    """A library whose count is each thread's own, beside those there are; its number is read by ``get``."""
    own = Counted()
    library = _Library("libown.so", own.get, [own.set])
    monkeypatch.setattr(hold, "_libraries", [*_find(), library])
    return own


def test_a_count_of_each_thread_is_held_and_given_back_in_that_thread(per_thread):
    first_is_in, second_is_out = threading.Event(), threading.Event()

    def first():
        with single_threaded_blas():
            first_is_in.set()
            assert second_is_out.wait(HANG)
            with single_threaded_blas():
                inside = per_thread.get()
        return inside, per_thread.get()

    def second():
        assert first_is_in.wait(HANG)
        with single_threaded_blas():
            inside = per_thread.get()
        after = per_thread.get()
        second_is_out.set()
        return inside, after

    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(function) for function in (first, second)]
        assert [result.result(HANG) for result in results] == [(1, 3), (1, 3)]


def test_threads_that_share_out_blocks_hold_too(per_thread):
    rows = open_rows(np.ones((1 << 12, 300))).score_blocks(sp.csc_matrix(np.ones((1 << 12, 1))), None, 2)
    assert len(rows.blocks) > 2
    assert set(rows.map(lambda block: per_thread.get())) == {1}


def test_a_library_that_does_not_listen_is_told_of_once(monkeypatch):
    deaf = _Library("libdeaf.so", lambda: 4, [lambda n: None])
    monkeypatch.delenv("CMARGIN_DEBUG", raising=False)
    monkeypatch.setattr(hold, "_libraries", [deaf])
    with pytest.warns(RuntimeWarning, match="keeps 4 threads whatever"):
        held_counts()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert held_counts() == {4}
    deaf.deaf = False
    monkeypatch.setenv("CMARGIN_DEBUG", "1")
    with pytest.raises(RuntimeError, match="keeps 4 threads whatever"):
        held_counts()
    assert hold._users == 0 and hold._own().depth == 0


# ---------------------------------------------------------------- fits at once

@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", quick_estimators(), ids=named)
def test_fits_in_threads_have_the_bits_of_a_fit_alone(two_threads, model):
    # A hold did nothing beside the main thread: fits there differed by 1e-16, and BLAS's threads spun
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16, y[:600] % 5

    def fit(_=None):
        fitted = clone(model).fit(X, y)
        return fitted.coef_.tobytes() + fitted.intercept_.tobytes()

    alone = fit()
    with ThreadPoolExecutor(8) as pool:
        assert {result.result(HANG) for result in [pool.submit(fit) for _ in range(8)]} == {alone}
    assert counts() == {2} and fit() == alone
