"""Threads that share out work and sleep: every item once, whoever does it, and after a fork too."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from api import KERNELS, effective_n_threads, who_did
from conftest import blobs

from cmargin.data.files import RowFiles
from cmargin.data.files.formats import open_one
from cmargin.data.files.source import FileSource

needed = pytest.mark.skipif(sys.platform == "win32" or effective_n_threads(-1) == 1,
                            reason="built without such threads, or one processor")


@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
def test_every_item_is_done_once_in_every_round(n_threads):
    for n in (1, 2, 7, 1000, 0, 3) * 50:
        who = who_did(n, n_threads)
        assert ((who >= 0) & (who < n_threads)).all()
    assert (who_did(300, 1) == 0).all()                                   # nobody joins who was not asked


@needed
def test_a_helper_begins_with_items_of_its_own():
    """What a thread had the time before is in its caches: of many rounds some are shared by halves."""
    n = 1 << 18                                                           # milliseconds, in which it wakes up
    for _ in range(1000):
        helped = np.flatnonzero(who_did(n, 2) == 1)
        if len(helped):
            assert helped.max() >= n // 2                                 # begins at its half, whatever else it takes
            return
    raise AssertionError("it never came")


def test_teams_of_several_python_threads():
    found = []

    def work():
        found.append(all((who_did(64, 3) >= 0).all() for _ in range(200)))

    for _ in range(10):                                                   # a thread that ends ends its team
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [True] * 40


@needed
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="no /proc")
def test_helpers_end_with_the_thread_that_had_them():
    def threads_here():
        return len(os.listdir("/proc/self/task"))

    who_did(100, 4)
    before = threads_here()
    for _ in range(20):
        thread = threading.Thread(target=who_did, args=(100, 4))
        thread.start()
        thread.join()
    for _ in range(100):                                                  # the system takes a moment to forget them
        if threads_here() <= before:
            break
        time.sleep(0.01)
    assert threads_here() <= before


@needed
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_has_a_team_of_its_own():
    who_did(10, 3)
    child = os.fork()
    if child == 0:
        signal.alarm(60)                                                  # a child that hangs is a failure
        os._exit(0 if all((who_did(100, 3) >= 0).all() for _ in range(100)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (who_did(10, 3) >= 0).all()


@needed
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="no /proc")
def test_helpers_sleep_when_there_is_nothing_to_do():
    def states():
        found = []
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/stat") as file:
                found.append(file.read().rpartition(")")[2].split()[0])
        return found

    assert (who_did(100, 4) >= 0).all()
    for _ in range(1000):                                                 # this thread is the one that runs
        time.sleep(0.001)
        if states().count("R") == 1:
            return
    raise AssertionError("helpers never sleep")


def test_openmp_shares_out_long_work_on_classes_alone():
    # its threads spin at the end of every region: beside two busy programs a fit on two took 24 times one's time
    if not list(KERNELS.rglob("*.pyx")):
        pytest.skip("an installation without sources")
    found = [path for path in KERNELS.rglob("*.p[xy][xd]") if "in prange(" in path.read_text()]
    assert found == [KERNELS / "sgd" / "_low_rank.pyx"]


def test_sums_over_files_are_the_same_bits(tmp_path):
    X, y = blobs(n=5000, d=12, k=2)
    np.save(tmp_path / "X.npy", X)
    found = []
    for n_threads in (1, 2, 5):
        rows = FileSource(RowFiles([open_one(str(tmp_path / "X.npy"))]), chunk=1 << 16).row_pass(
            np.where(y == 1, 1.0, -1.0), intercept=True, n_threads=n_threads)
        rows.start()
        received = rows.evaluate(np.linspace(-0.2, 0.3, 13), 1.0, 0.5, 0.3, 0.0)
        product = rows.hessp(None, 0.3)[0]
        found.append([*received, product, rows.line(0.5, 0.3), rows.objective(np.ones(13), True)[1]])
    for one in found[1:]:
        for here, there in zip(found[0], one, strict=True):
            np.testing.assert_array_equal(here, there)
