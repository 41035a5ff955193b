"""Fits that run at once take turns at the cores.

With more threads than cores every kernel that ends waits to get the interpreter's lock back, and finds its caches full
of another fit's rows. So as many fits as there are cores, and one more for the moments in which another waits for the
lock, run for a tenth of a second each, or to their end, and others wait, in the order of coming. Eight short fits are
over sooner than side by side.

Nobody waits long for anybody: a slot that is over counts no more, whether its fit has come to a place where it gives
way or not, and after `PATIENCE` seconds one goes on in any case. So a callback that waits for another thread's fit
cannot hang. The bits know nothing of it.
"""

import os
import threading
from collections import deque
from time import perf_counter

SLOT = 0.1               # seconds: a slice of the compiled drivers
PATIENCE = 0.5           # seconds that a fit waits at most, however many there are
SPARE = 1                # fits beside those that the cores are for: a core whose fit waits for the lock has another


def cores():
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def places():
    """Fits that run at a time."""
    return cores() + SPARE


class FitSlots:
    """Which fits have a slot, and which wait."""

    def __init__(self, n_places=places, clock=perf_counter):
        self.n_places, self.clock = n_places, clock
        self.reset()

    def reset(self):
        """As in a process without fits: after a fork the parent's other threads are not there."""
        self.lock, self.running, self.waiting, self.local = threading.Lock(), set(), deque(), threading.local()

    def begin(self, slot):
        """Return when this one has a slot, or its patience is over."""
        slot.until = self.clock() + slot.patience
        with self.lock:
            self.forget_the_gone()
            if not self.waiting and self.room():
                self.start(slot)
                return
        try:
            with self.lock:
                self.waiting.append(slot)
            while not self.comes(slot):
                slot.called.acquire(timeout=max(0.0, slot.look_again - self.clock()))
        finally:
            with self.lock:
                if slot in self.waiting:
                    self.waiting.remove(slot)
                self.start(slot)
                self.call_next()

    def end(self, slot):
        with self.lock:
            self.running.discard(slot)
            self.call_next()

    # ---- with the lock held, but for `comes`

    def start(self, slot):
        slot.over = self.clock() + SLOT
        self.running.add(slot)

    def room(self):
        now = self.clock()
        self.running = {slot for slot in self.running if slot.over > now}
        return len(self.running) < self.n_places()

    def forget_the_gone(self):
        # a Ctrl-C may end a fit at any place: whose patience is long over waits no more
        while self.waiting and self.clock() > self.waiting[0].until + PATIENCE:
            self.waiting.popleft()

    def comes(self, slot):
        with self.lock:
            self.forget_the_gone()
            if self.clock() >= slot.until or (self.room() and self.waiting[0] is slot):
                return True
            slot.look_again = min([slot.until, *(other.over for other in self.running)])
            return False

    def call_next(self):
        if self.waiting and self.waiting[0].called.locked():
            self.waiting[0].called.release()


FIT_SLOTS = FitSlots()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=FIT_SLOTS.reset)


class FitSlot:
    """The context of one fit; ``waits``: whether it may have to. Inside another fit of its thread it does nothing."""

    def __init__(self, waits=True, slots=FIT_SLOTS):
        self.slots, self.patience = slots, PATIENCE if waits else 0.0
        self.called, self.over, self.look_again, self.until = threading.Lock(), 0.0, 0.0, 0.0

    def __enter__(self):
        local = self.slots.local
        self.outer = getattr(local, "slot", None)
        if self.outer is None:
            self.called.acquire()
            self.slots.begin(self)
            local.slot = self
        return self

    def __exit__(self, *_):
        if self.outer is None:
            self.slots.local.slot = None
            self.slots.end(self)


def give_way(slots=FIT_SLOTS):
    """Between two steps: where this thread's slot is over and others wait, begin another one after theirs."""
    slot = getattr(slots.local, "slot", None)
    if slot is not None and slots.clock() >= slot.over:
        slots.end(slot)
        slots.begin(slot)
