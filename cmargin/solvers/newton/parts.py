"""The checkpoint of problems that are at work side by side: the state of each, taken at a moment of its own."""

from cmargin._runtime.checkpoint import NO_CHECKPOINTER

STOPPED = ("stopped", "max_time", "callback", "interrupted")


class Parts:
    """What the problems at work have given for the checkpoint that is due; the last one writes it.

    Problems know nothing of each other, so that their states need not be of one moment. Each waits until it is written,
    and nothing is copied. ``rest(places)`` is the dictionary of what else belongs into the checkpoint.
    """

    def __init__(self, checkpointer=NO_CHECKPOINTER, rest=None):
        self.checkpointer, self.rest = checkpointer, rest
        self.at_work, self.given, self.reads = set(), {}, {}
        self.closed, self.due, self.number = not checkpointer.active, False, 0
        self.by_passes = checkpointer.active and checkpointer.passes is not None       # asked after every evaluation
        self.found = {} if checkpointer.found is None else checkpointer.found["parts"]

    def begin(self, c):
        """Problem ``c`` is at work from here on; its part of the checkpoint that the fit goes on from, or None."""
        self.at_work.add(c)
        return self.found.pop(c, None)

    def end(self, c, status):
        """It is no longer. From one that was stopped on, nothing more is written: the last state is the one to keep."""
        self.at_work.discard(c)
        self.given.pop(c, None)
        self.closed = self.closed or status in STOPPED
        self.write_if_complete()

    def wants(self, way, reads):
        """Whether a state is wanted of the problem that has come so far; ``reads``: of the data, by it."""
        if self.closed:
            return False
        self.reads[way[0]] = reads
        self.due = self.due or self.checkpointer.due(sum(self.reads.values()))
        return self.due and way[0] not in self.given

    def take(self, way, kept):
        """``kept`` is the state; a gift to wait with, or None where the problem may go on at once."""
        self.given[way[0]] = {"stage": way[1], **kept}
        number = self.number
        self.write_if_complete()
        return None if self.number > number else number

    def waits_with(self, gift):
        return self.number == gift and not self.closed

    def write_if_complete(self):
        if self.due and not self.closed and self.at_work <= self.given.keys():
            parts = {**self.found, **self.given}         # what was found of problems not yet begun again is kept on
            self.checkpointer.write(sum(self.reads.values()), {**self.rest(self.at_work), "parts": parts})
            self.given, self.due, self.number = {}, False, self.number + 1


NO_PARTS = Parts()
