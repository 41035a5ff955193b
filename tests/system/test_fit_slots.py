"""Fits that run at once take turns at the cores, and nobody waits long for anybody."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from estimators import quick_estimators
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from cmargin import SLNDClassifier
from cmargin._runtime import fit_slots
from cmargin._runtime.fit_slots import FIT_SLOTS, PATIENCE, SLOT, FitSlot, FitSlots, cores, give_way

LONG = 60.0                # seconds after which a test gives up


@pytest.fixture
def timeless():
    """One core, and a clock that a test sets: the fits' slots are over when it says so."""
    now = [0.0]
    found = FitSlots(lambda: 1, lambda: now[0])
    found.now = now
    return found


def begun_beside(where, waits=True):
    """A thread that begins a slot, says so, and ends it when told."""
    begun, done = threading.Event(), threading.Event()

    def fit():
        with FitSlot(waits, where):
            begun.set()
            done.wait(LONG)

    thread = threading.Thread(target=fit)
    thread.start()
    return thread, begun, done


def until_waiting(where, n):
    for _ in range(int(LONG / 0.001)):
        with where.lock:
            if len(where.waiting) == n:
                return
        threading.Event().wait(0.001)
    raise AssertionError(f"{len(where.waiting)} wait, not {n}")


def test_the_second_waits_for_the_first(timeless):
    with FitSlot(slots=timeless) as first:
        thread, begun, done = begun_beside(timeless)
        until_waiting(timeless, 1)
        assert not begun.is_set() and timeless.running == {first}
    assert begun.wait(LONG)
    done.set()
    thread.join(LONG)
    assert not timeless.running and not timeless.waiting


def test_who_came_first_begins_first(timeless):
    order = []

    def fit(k):
        with FitSlot(slots=timeless):
            order.append(k)

    with FitSlot(slots=timeless):
        threads = []
        for k in range(4):
            threads.append(threading.Thread(target=fit, args=(k,)))
            threads[-1].start()
            until_waiting(timeless, k + 1)
    for thread in threads:
        thread.join(LONG)
    assert order == [0, 1, 2, 3]


def test_a_slot_that_is_over_keeps_nobody(timeless):
    with FitSlot(slots=timeless):
        timeless.now[0] = SLOT
        thread, begun, done = begun_beside(timeless)
        assert begun.wait(LONG)
        done.set()
        thread.join(LONG)


def test_a_fit_inside_another_has_no_slot_of_its_own(timeless):
    with FitSlot(slots=timeless) as outer:
        with FitSlot(slots=timeless):
            assert timeless.running == {outer}
        assert timeless.running == {outer} and timeless.local.slot is outer


def test_patience_ends(timeless):
    with FitSlot(slots=timeless) as first:
        first.over = np.inf                              # never ends
        thread, begun, done = begun_beside(timeless)
        until_waiting(timeless, 1)
        timeless.now[0] = PATIENCE
        assert begun.wait(LONG)
        done.set()
        thread.join(LONG)


def test_who_has_no_time_does_not_wait(timeless):
    with FitSlot(slots=timeless):
        thread, begun, done = begun_beside(timeless, waits=False)
        assert begun.wait(LONG)
        done.set()
        thread.join(LONG)


def test_a_long_fit_gives_way(timeless):
    with FitSlot(slots=timeless) as first:
        give_way(timeless)                               # its slot has just begun
        assert timeless.running == {first}
        thread, begun, done = begun_beside(timeless)
        until_waiting(timeless, 1)
        timeless.now[0] = SLOT
        done.set()
        give_way(timeless)                               # waits for the other, which ends at once
        assert begun.is_set() and first in timeless.running and first.over == 2 * SLOT
    thread.join(LONG)
    give_way(timeless)                                   # without a slot


@pytest.mark.parametrize("estimator", [*quick_estimators(), SLNDClassifier(l2=1e-3)], ids=repr)
@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
def test_every_fit_gives_way(estimator, monkeypatch):
    # Newton steps of the multinomial loss did not: eight fits of the digits ran at once, at half again the work
    ends, end = [], FitSlots.end
    monkeypatch.setattr(fit_slots, "SLOT", 0.0)
    monkeypatch.setattr(FitSlots, "end", lambda self, slot: ends.append(slot) or end(self, slot))
    estimator.fit(*load_iris(return_X_y=True))
    assert len(ends) > 1 and not FIT_SLOTS.running       # the last one is that of the fit's own end


def test_an_interrupt_while_waiting_leaves_nobody_behind(timeless, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with FitSlot(slots=timeless):
        with pytest.raises(KeyboardInterrupt), monkeypatch.context() as patch:
            patch.setattr(timeless, "comes", interrupted)
            timeless.begin(FitSlot(slots=timeless))
        assert not timeless.waiting
    timeless.now[0] = SLOT
    assert timeless.room()


def test_a_fork_knows_no_others(timeless):
    with FitSlot(slots=timeless):
        timeless.reset()
        with FitSlot(slots=timeless):
            assert len(timeless.running) == 1


def test_one_fit_more_than_there_are_cores_runs():
    assert FIT_SLOTS.n_places() == cores() + 1


def test_as_many_fits_begin_as_there_are_places(monkeypatch):
    """Of fits whose slots never end by the clock two train at once at most; the bits are those of one alone."""
    here = FitSlots(lambda: 2, lambda: 0.0)
    monkeypatch.setattr("cmargin._estimators.base.FitSlot", lambda waits: FitSlot(waits, here))
    X, y = load_iris(return_X_y=True)
    at_once = []

    def fit(_):
        return SLNDClassifier(random_state=0, callback=lambda _: at_once.append(len(here.running))).fit(X, y).coef_

    alone = fit(0)
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(fit, range(12)))
    assert 1 <= min(at_once) <= max(at_once) <= 2 and not here.running and not here.waiting
    assert all(np.array_equal(alone, coef) for coef in together)


def test_a_slot_whose_fit_is_gone_is_forgotten(timeless):
    # a Ctrl-C between two lines left it among those who wait, and every later fit waited half a second for each tenth
    gone = FitSlot(slots=timeless)
    timeless.waiting.append(gone)
    timeless.now[0] = 2 * PATIENCE + 0.01
    with FitSlot(slots=timeless) as one:
        assert timeless.running == {one} and not timeless.waiting
