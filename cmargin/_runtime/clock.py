"""The time of one run: what is over, what each phase took, when it has to end."""

from time import perf_counter

from cmargin._runtime.fit_slots import give_way


class TimeUp(Exception):
    """``max_time`` is over; the weights are those of the last step taken."""


class RunClock:
    """Begins when it is made. What a callback takes is nobody's time: neither the run's, nor that of its deadline.

    ``deadline`` is on the clock of `time.perf_counter`, or None; the seconds of each of the ``phases`` count apart.
    """

    def __init__(self, deadline, phases=("steps", "trace")):
        self.begin, self.deadline, self.phases = perf_counter(), deadline, dict.fromkeys(phases, 0.0)

    def __getstate__(self):
        return self.seconds, self.phases

    def __setstate__(self, state):
        """Goes on in another process: without its deadline, which was that of the call."""
        seconds, self.phases = state
        self.begin, self.deadline = perf_counter() - seconds, None

    @property
    def seconds(self):
        return perf_counter() - self.begin

    @property
    def late(self):
        return self.deadline is not None and perf_counter() > self.deadline

    def go_on_from(self, kept):
        """With the seconds of a checkpoint's clock, and the deadline of this call."""
        self.begin, self.phases = kept.begin, kept.phases

    def timed(self, phase, work, *arguments):
        begin = perf_counter()
        result = work(*arguments)
        self.phases[phase] += perf_counter() - begin
        return result

    def watch(self):
        """Give way to other fits; raise `TimeUp` where it is late."""
        give_way()
        if self.late:
            raise TimeUp

    def asked_to_stop(self, on_pass, fit):
        """The callback's answer."""
        pause = perf_counter()
        stop = on_pass(fit)
        pause = perf_counter() - pause
        self.begin += pause
        if self.deadline is not None:
            self.deadline += pause
        return stop
