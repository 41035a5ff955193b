"""Compiled drivers brought to their end in slices of a tenth of a second, between which Python is heard."""

from time import perf_counter

import numpy as np

from cmargin._core.newton._asking import advance_all
from cmargin._runtime.fit_slots import give_way
from cmargin.data.moves import evaluate_as_asked
from cmargin.solvers import cost
from cmargin.solvers.newton.parts import NO_PARTS
from cmargin.solvers.prices import too_wide

SLICE = 0.1                    # seconds between two moments at which Python is heard
SQUARES = 6                    # (p, p) arrays that a driver of p columns, and its question, hold at most
VECTORS = 64                   # (p,) arrays, the same


# how rows that are elsewhere answer, as `cmargin.data.source` has it
ANSWERS = {
    "evaluate": lambda source, asked: evaluate_as_asked(source, **asked),
    "line": lambda source, asked: source.line(**asked)[1:],
    "hessp": lambda source, asked: source.hessp(**asked),
    "objective": lambda source, asked: source.objective(asked["x"], True),
}


class InSlices:
    """What the compiled drivers leave to Python; to be put before a `Driver` among the bases.

    ``settings.between``, () -> status to leave with or None, is asked between two slices; ``result`` is where `store`
    puts what is known.
    """

    left = False                       # ended from outside
    gift = None                        # what was given for a checkpoint, until that is written
    way = None, "whole"                # problem and stage, by which a checkpoint names it
    more: dict[str, object] = {}       # what a checkpoint needs besides
    posted = None                      # the request that rows elsewhere will answer with their next read

    @property
    def worker(self):
        """Who is at work for this one: it, or a solver that it waits for."""
        return self

    def run(self):
        self.begin()
        return self.finish()

    def finish(self, parts=NO_PARTS):
        """To the end, alone."""
        try:
            while self.asks is not None:
                self.advance(perf_counter() + SLICE)
                self.attend_to(parts)
                give_way()
        finally:
            self.store(self.result)
        return self.result

    def attend_to(self, parts):
        """`attend`; but where a checkpoint is due, first stop at the next pause, give what is kept, wait for others.

        The pause leaves no trace: what follows it is what would have followed without it.
        """
        if self.gift is not None:
            if parts.waits_with(self.gift):
                return
            self.gift = None
        elif self.asks is not None and not self.left and self.status == "running" and parts.wants(self.way, self.reads):
            if self.asks == "pause":
                self.gift = parts.take(self.way, self.state())
                self.pauses = self.pauses_anyway or parts.by_passes
                if self.gift is not None:
                    return
            else:
                self.pauses = True
        self.attend()

    @property
    def pauses_anyway(self):
        return self.settings.pauses

    def attend(self):
        """What the compiled steps leave to Python, between two slices."""
        if self.asks == "pause":
            self.store(self.result)
            if self.settings.tell is not None:
                self.settings.tell(self.result)
            if self.status == "running" and self.settings.stop is not None and self.asked_to_stop():
                self.left = True
                self.end_with("stopped")
            self.go_on()
        elif self.asks is not None and not self.left:
            late = "max_time" if self.settings.clock.late else None
            self.leave_with((self.settings.between and self.settings.between()) or late)
        if self.asks is None:
            self.store(self.result)

    def asked_to_stop(self):
        pause = perf_counter()
        stop = self.settings.stop()
        self.pass_over(perf_counter() - pause)
        return stop

    def state(self):
        """What is kept of it for a checkpoint, at a pause."""
        return {"driver": self.kept(), "rows": self.source.kept(), **self.more}

    def of_problem(self, c, parts):
        """It works on problem ``c``, whose checkpoint is of ``parts``; before it is attended to."""
        self.way = (c, *self.way[1:])
        self.pauses = self.pauses_anyway or parts.by_passes
        return self

    def begin_or_go_on(self, kept):
        """`begin`; where ``kept`` is not None, `go_on_from` it."""
        if kept is None:
            self.begin()
        else:
            self.go_on_from(kept)

    def go_on_from(self, kept):
        """At the pause where another driver gave ``kept``."""
        self.source.take_back(kept["rows"])
        self.take_back(kept["driver"])

    def advance(self, until):
        """Until a question is for Python, or the clock says ``until``; rows that are not here answer through Python."""
        if self.source_is_here:
            return super().advance(until)
        self.put_question(until)
        if self.posted is not None:
            self.source.work(until)
            self.take_answer()

    def put_question(self, until):
        """To rows that are elsewhere; one that takes long, a read of files, is ``posted`` for others to join."""
        posts = getattr(self.source, "posts", ())
        while self.asks in ANSWERS and self.posted is None and perf_counter() < until:
            if self.asks in posts:
                self.posted = self.source.post(self.asks, self.ask())
            else:
                self.tell(*ANSWERS[self.asks](self.source, self.ask()))

    def take_answer(self):
        if self.posted.answer is not None:
            posted, self.posted = self.posted, None
            self.tell(*posted.answer)

    def leave_with(self, status):
        """End here with ``status``, unless it is None."""
        if status:
            self.left = True
            if self.posted is not None:
                self.posted.wanted, self.posted = False, None
            self.leave(status)
            while self.asks in getattr(self.source, "not_when_late", ()):        # an evaluation that reads files
                self.tell(np.inf, np.zeros(self.source.n_columns))


def bytes_of_columns(n_rows, n_columns):
    """What a driver holds at most besides its state of the rows."""
    squares = 0 if too_wide(n_rows, n_columns) else SQUARES * n_columns
    return 8 * n_columns * (squares + VECTORS)


def side_by_side(ways, n_threads, status, interrupted=lambda: None, at_once=None, parts=NO_PARTS):
    """A few problems at a time, each on one thread without the interpreter where its rows are here, slice by slice.

    ``ways``: of every problem an iterator over the drivers that bring it to its end, begun, each ended before the next.
    ``status``: what drivers are left with where an exception ends the work, a Ctrl-C say, after ``interrupted()``.
    ``at_once``: problems begun at a time; a few for every thread if None, and more where they are short.
    ``parts``: of a checkpoint; when one is due the drivers at work wait for each other, each at its next pause.
    """
    ways, most = iter(ways), cost.MOST_PROBLEMS_PER_THREAD * n_threads if at_once is None else at_once
    at_once = cost.PROBLEMS_PER_THREAD * n_threads if at_once is None else at_once
    at_work = []                                            # a problem's way, and the driver it has come to
    try:
        while True:
            while len(at_work) < at_once and (way := next(ways, None)) is not None:
                at_work += [(way, driver) for driver in [next(way, None)] if driver is not None]
            if not at_work:
                return
            end = perf_counter() + SLICE
            workers = [driver.worker for _, driver in at_work]
            here = [worker for worker in workers if worker.source_is_here]
            are_last = len(at_work) < at_once and cost.THREADS_PER_LAST_PROBLEM * len(here) <= n_threads
            if are_last and all([worker.use_threads(n_threads) for worker in here]):
                for worker in here:
                    worker.advance(perf_counter() + SLICE)
            else:
                advance_all(here, end, n_threads)
            now = perf_counter()
            if now < end and any(worker.asks is None for worker in here):
                at_once = min(4 * at_once, most)
            until = now + SLICE
            for worker in workers:
                if not worker.source_is_here:
                    worker.put_question(until)                           # one read answers all that wait for one
            for worker, (_, driver) in zip(workers, at_work, strict=True):
                if not worker.source_is_here:
                    worker.advance(until)
                driver.attend_to(parts)
            come_to = [driver if driver.asks is not None else next(way, None) for way, driver in at_work]
            at_work = [(way, driver) for (way, _), driver in zip(at_work, come_to, strict=True) if driver is not None]
            if now >= end:                                      # those that had this slice are the last of the next
                at_work = at_work[n_threads:] + at_work[:n_threads]
            give_way()
    except BaseException:
        interrupted()
        for way, driver in at_work:
            if driver.asks is not None:
                driver.leave(status)
            driver.store(driver.result)
            way.close()
        raise
