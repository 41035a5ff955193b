"""Ever longer runs of one solver, each timed from its start: what a user would have waited who knew when to stop."""

import contextlib
import io
import signal
import sys
import threading
import warnings
from itertools import pairwise
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np

SHORT = 0.05                   # seconds below which a run is repeated
REPEATS = 5


class TimeUp(BaseException):
    """A run took far too long. Like an interrupt, it is no Exception: no solver is to swallow it."""


@contextlib.contextmanager
def within(seconds):
    """Raise TimeUp in the block after so many seconds, as soon as the interpreter is back from compiled code.

    Does nothing off the main thread, nor where the system has no such alarm.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(number, frame):
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Point(NamedTuple):
    seconds: float
    value: object              # what was judged
    run: object                # what the run handed back, the judged coefficients left out by whoever made it


class Trace(NamedTuple):
    points: list
    longest: float             # seconds of the longest run, finished or not: what was not reached takes longer
    end: str                   # why there is no longer one

    def first(self, reached):
        """The quickest of the runs whose value is good enough, or None."""
        return min((p for p in self.points if reached(p.value)), key=lambda p: p.seconds, default=None)


def joined(traces):
    """Several ways of the same solver as one trace; ways that stand still or failed do not limit the others' time."""
    going = [t for t in traces if t.end in ("time limit", "broken off", "passes done")]
    going = going or [t for t in traces if t.points] or traces
    shortest = min(going, key=lambda t: t.longest)
    return Trace([p for t in traces for p in t.points], shortest.longest, shortest.end)


def passes_within(points, limit):
    """How many passes take ``limit`` seconds, by the dearest pass seen; one run alone counts with all its seconds."""
    seen = [(p.seconds, p.run[0].passes) for p in points if p.run[0].passes > 0]
    if not seen:
        return 1
    more = [(b[0] - a[0]) / (b[1] - a[1]) for a, b in pairwise(seen) if b[1] > a[1]]
    return max(1, int(limit / max(max(more, default=seen[0][0] / seen[0][1]), 1e-7)))


@contextlib.contextmanager
def quiet():
    """No warnings, printed ones included: every run is stopped early on purpose, and told so by its solver.

    Nor a word where the alarm goes off inside a callback of compiled code, which goes on. A Ctrl-C that was lost there,
    as in LIBLINEAR's printing, is raised at the end.
    """
    before, lost = sys.unraisablehook, []

    def hook(report):
        if isinstance(report.exc_value, KeyboardInterrupt):
            lost.append(report.exc_value)
        elif not isinstance(report.exc_value, TimeUp):
            before(report)

    sys.unraisablehook = hook
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.unraisablehook = before
        if lost:
            raise KeyboardInterrupt


def clock_of(threads):
    """What one thread is timed by is the processor's time, to which other work on the machine adds little."""
    return process_time if threads == 1 else perf_counter


def timed(run, clock=perf_counter):
    """(result, seconds); short runs are repeated and the best time is taken."""
    seconds, count = np.inf, 0
    while count == 0 or (seconds < SHORT and count < REPEATS):
        start = clock()
        result = run()
        seconds, count = min(seconds, clock() - start), count + 1
    return result, seconds


def expected(points, growth):
    """Seconds of the next run: by the growth seen last, which is between none and that of the effort.

    After a first run: as many again, for much of a single pass or a loose tolerance is preparation.
    """
    last = points[-1].seconds
    seen = last / points[-2].seconds if len(points) > 1 else 1.0
    return last * min(max(seen, 1.0), growth)


def trace(run, judge, limit, settled, growth=2.0, clock=perf_counter):
    """Runs with effort 1, growth, growth^2, ... until one is expected to last longer than ``limit`` seconds.

    ``judge(result)`` gives the value of a point and what to keep of the result; it is not timed. The trace also ends
    when ``settled(values)`` or where a run fails. A run is broken off at twice the limit.
    """
    points, longest, effort = [], 0.0, 1.0
    while True:
        start = clock()
        try:
            with quiet(), within((2 if clock is perf_counter else 20) * limit):     # the alarm goes by the clock
                result, seconds = timed(lambda: run(effort), clock)     # noqa: B023 (called at once)
        except TimeUp:
            return Trace(points, max(longest, clock() - start), "broken off")
        except Exception as error:             # another package's failure is a result, not the end of the race
            return Trace(points, longest, f"failed: {error}".split("\n")[0])
        value, kept = judge(result)
        points.append(Point(seconds, value, kept))
        longest = max(longest, seconds)
        if settled([p.value for p in points]):
            return Trace(points, longest, "settled")
        if expected(points, growth) > limit:
            return Trace(points, longest, "time limit")
        if effort > 1e8:                       # LIBLINEAR's 300 passes, whatever it is told
            return Trace(points, longest, "no more to ask for")
        effort *= growth


def ratio(row, ours, key):
    """(seconds over ours at the target ``key``, "" or the sign of a bound where one of the two never got there)."""
    if ours is None:
        return np.nan, ""
    mine, theirs = ours[key], row[key]
    if np.isfinite(mine):
        return (theirs / mine, "") if np.isfinite(theirs) else (row["longest"] / mine, ">")
    return (theirs / ours["longest"], "<") if np.isfinite(theirs) else (np.nan, "")
