"""Fits that run at once take turns at the cores.

With more threads than cores every kernel that ends waits to get the interpreter's lock back, and finds its caches full
of another fit's rows. So as many fits as there are cores, and one more for the moments in which another waits for the
lock, run for a tenth of a second each, or to their end, and others wait, in the order of coming. Eight short fits are
over sooner than side by side.

Nobody waits long for anybody: a turn that is over counts no more, whether its fit has come to a place where it gives
way or not, and after `PATIENCE` seconds one goes on in any case. So a callback that waits for another thread's fit
cannot hang. The bits know nothing of it.
"""

import os
import threading
from collections import deque
from time import perf_counter

TURN = 0.1               # seconds: a slice of the compiled drivers
PATIENCE = 0.5           # seconds that a fit waits at most, however many there are
SPARE = 1                # fits beside those that the cores are for: a core whose fit waits for the lock has another


def cores():
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def places():
    """Fits that run at a time."""
    return cores() + SPARE


class Turns:
    """Whose turn it is, and who waits."""

    def __init__(self, n_places=places, clock=perf_counter):
        self.n_places, self.clock = n_places, clock
        self.reset()

    def reset(self):
        """As in a process without fits: after a fork the parent's other threads are not there."""
        self.lock, self.running, self.waiting, self.local = threading.Lock(), set(), deque(), threading.local()

    def begin(self, turn):
        """Return when it is this one's turn, or its patience is over."""
        turn.until = self.clock() + turn.patience
        with self.lock:
            self.forget_the_gone()
            if not self.waiting and self.room():
                self.start(turn)
                return
        try:
            with self.lock:
                self.waiting.append(turn)
            while not self.comes(turn):
                turn.called.acquire(timeout=max(0.0, turn.look_again - self.clock()))
        finally:
            with self.lock:
                if turn in self.waiting:
                    self.waiting.remove(turn)
                self.start(turn)
                self.call_next()

    def end(self, turn):
        with self.lock:
            self.running.discard(turn)
            self.call_next()

    # ---- with the lock held, but for `comes`

    def start(self, turn):
        turn.over = self.clock() + TURN
        self.running.add(turn)

    def room(self):
        now = self.clock()
        self.running = {turn for turn in self.running if turn.over > now}
        return len(self.running) < self.n_places()

    def forget_the_gone(self):
        # a Ctrl-C may end a fit at any place: whose patience is long over waits no more
        while self.waiting and self.clock() > self.waiting[0].until + PATIENCE:
            self.waiting.popleft()

    def comes(self, turn):
        with self.lock:
            self.forget_the_gone()
            if self.clock() >= turn.until or (self.room() and self.waiting[0] is turn):
                return True
            turn.look_again = min([turn.until, *(other.over for other in self.running)])
            return False

    def call_next(self):
        if self.waiting and self.waiting[0].called.locked():
            self.waiting[0].called.release()


TURNS = Turns()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=TURNS.reset)


class Turn:
    """The context of one fit; ``waits``: whether it may have to. Inside another fit of its thread it does nothing."""

    def __init__(self, waits=True, turns=TURNS):
        self.turns, self.patience = turns, PATIENCE if waits else 0.0
        self.called, self.over, self.look_again, self.until = threading.Lock(), 0.0, 0.0, 0.0

    def __enter__(self):
        local = self.turns.local
        self.outer = getattr(local, "turn", None)
        if self.outer is None:
            self.called.acquire()
            self.turns.begin(self)
            local.turn = self
        return self

    def __exit__(self, *_):
        if self.outer is None:
            self.turns.local.turn = None
            self.turns.end(self)


def give_way(turns=TURNS):
    """Between two steps: where this thread's turn is over and others wait, begin another one after theirs."""
    turn = getattr(turns.local, "turn", None)
    if turn is not None and turns.clock() >= turn.over:
        turns.end(turn)
        turns.begin(turn)
