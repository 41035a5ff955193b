"""Chunks of rows one after the other, the next one read by a thread of its own while the last is summed."""

import threading
from concurrent.futures import Future, TimeoutError
from time import perf_counter

from cmargin._runtime.deferred import Deferred
from cmargin.data.files.formats import Room

HEARD = 0.1                  # seconds between two moments at which whoever waits for a disk is heard


def in_background(function, *arguments):
    """A future for `outcome`: ``function(*arguments)`` on a thread of its own, which nobody waits for at exit."""
    future = Future()
    threading.Thread(target=_run, args=(future, function, arguments), daemon=True, name="cmargin-reads").start()
    return future


def _run(future, function, arguments):
    try:
        future.set_result((function(*arguments), None))
    except BaseException as error:
        future.set_result((None, Deferred(error)))
        future = None            # an error that nobody takes has this frame in its traceback


def outcome(future):
    """What a future of `in_background` came to: the function's result, or its exception is raised."""
    result, failed = future.result()
    if failed is not None:
        raise failed.taken()
    return result


def wait_for(future, until=float("inf"), heard=lambda: None):
    """Whether the future is done before ``until``; ``heard()`` is called about ten times a second, and may raise."""
    while not future.done():
        left = until - perf_counter()
        if left <= 0:
            return False
        try:
            future.exception(min(HEARD, left))               # in the main thread Ctrl-C is heard meanwhile
        except TimeoutError:
            heard()
    return True


class ReadAhead:
    """``load(k, room)`` of k = 0 .. n - 1, in turn and from the start again; two rooms are lent, and no more.

    A chunk is there until the next is taken. ``load`` is given with every call, since whoever has it has this object.
    """

    def __init__(self, n, given_up):
        self.n = n
        self.rooms = [Room(given_up), Room(given_up)]
        self.next, self.future = None, None

    def take(self, load, k, until=float("inf"), heard=lambda: None):
        """Chunk ``k``, or None where it is not there before ``until``."""
        if self.next != k:
            if self.future is not None and not wait_for(self.future, until, heard):
                return None                                  # its room is still written to
            self.ask_for(load, k)
        if not wait_for(self.future, until, heard):
            return None
        future, self.next, self.future = self.future, None, None
        chunk = outcome(future)
        if self.n > 1:
            self.ask_for(load, (k + 1) % self.n)
        return chunk

    def ask_for(self, load, k):
        self.rooms.reverse()
        self.future, self.next = in_background(load, k, self.rooms[0]), k

    def forget(self):
        """Let go of what was read ahead, or of the error that ended that."""
        self.next = self.future = None
