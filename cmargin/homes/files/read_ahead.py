"""Chunks of rows one after the other, the next one read by a thread of its own while the last is looked at."""

import threading
from concurrent.futures import Future, TimeoutError
from time import perf_counter

from cmargin.homes.files.formats import Room

HEARD = 0.1                  # seconds between two moments at which whoever waits for a disk is heard


def in_background(function, *arguments):
    """The future of ``function(*arguments)`` on a thread of its own, for which nobody has to wait, not even at exit."""
    future = Future()

    def run():
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="cmargin-reads").start()
    return future


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

    A chunk is there until the next is taken.
    """

    def __init__(self, load, n, given_up):
        self.load, self.n = load, n
        self.rooms = [Room(given_up), Room(given_up)]
        self.next, self.future = None, None

    def take(self, k, until=float("inf"), heard=lambda: None):
        """Chunk ``k``, or None where it is not there before ``until``."""
        if self.next != k:
            if self.future is not None and not wait_for(self.future, until, heard):
                return None                                  # its room is still written to
            self.ask_for(k)
        if not wait_for(self.future, until, heard):
            return None
        future, self.next, self.future = self.future, None, None
        chunk = future.result()
        if self.n > 1:
            self.ask_for((k + 1) % self.n)
        return chunk

    def ask_for(self, k):
        self.rooms.reverse()
        self.future, self.next = in_background(self.load, k, self.rooms[0]), k
