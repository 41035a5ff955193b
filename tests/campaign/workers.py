"""Every check in a process of its own: what one breaks, or how it dies, is not the next one's matter.

A worker loads the library once and forks for every seed; it starts no thread itself, so that a fork is safe.
"""

import math
import multiprocessing
import os
import resource
import signal
import traceback
from dataclasses import dataclass
from multiprocessing.connection import wait
from unittest.mock import patch

from .findings import Findings

PATIENCE = 10                  # times as long on the clock, for a check that waits for what never comes


@dataclass
class Part:
    """One part of the campaign: ``check`` takes a seed, ``describe`` names its kinds without running anything."""

    name: str
    check: object              # seed -> Findings; like the other two a function of a module
    describe: object           # seed -> list of str
    load: object               # () -> None: import what the checks need
    seconds: float             # of the processor after which a check counts as hung
    limits: dict               # figures above these are counted, see Totals
    n_seeds: int | None = None     # where there are only so many
    timed: bool = False        # wants the machine for itself
    prepare: object = dict     # () -> what workers have in their environment


def check_alone(part, seed):
    """Findings of a seed, from a forked process."""
    here, there = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        limit_processor(part.seconds)
        for output in (1, 2):                  # progress of verbose fits, last words of the C library
            os.dup2(os.open(os.devnull, os.O_WRONLY), output)
        try:
            found = part.check(seed)
        except BaseException:
            found = Findings(seed, [], [("campaign", traceback.format_exc())])
        there.send(found)
        os._exit(0)
    there.close()
    found = None
    try:
        late = not here.poll(PATIENCE * part.seconds)
        if not late:
            found = here.recv()
    except EOFError:
        pass
    here.close()
    os.kill(child, signal.SIGKILL)         # does nothing to one that has ended
    _, status = os.waitpid(child, 0)
    if found is None:
        found = Findings(seed, part.describe(seed))
        how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"status {status >> 8}"
        late = late or how in ("SIGXCPU", "SIGPROF")
        found.add(*("hang", f"no answer in {part.seconds:g} s") if late else ("signal", f"died: {how}"))
    return found


def limit_processor(seconds):
    """End this process after so many seconds at work: those that others use of the machine do not count."""
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))


def serve(pipe, part):
    """What a worker does: one seed in, its findings out."""
    part.load()
    while (seed := pipe.recv()) is not None:
        pipe.send(check_alone(part, seed))


class Worker:
    def __init__(self, part):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, part))
        self.process.start()
        other.close()


def run_part(part, seeds, n_workers, more=lambda: True):
    """Yield the findings of ``seeds`` as they come, as long as ``more()``."""
    seeds, busy = iter(seeds), {}
    with patch.dict(os.environ, part.prepare()):
        workers = [Worker(part) for _ in range(n_workers)]
    try:
        idle = list(workers)
        while True:
            while idle and more() and (seed := next(seeds, None)) is not None:
                worker = idle.pop()
                worker.pipe.send(seed)
                busy[worker.pipe] = worker
            if not busy:
                return
            for pipe in wait(list(busy)):
                found = pipe.recv()
                idle.append(busy.pop(pipe))
                yield found
    finally:
        for worker in workers:
            if worker.pipe in busy:
                worker.process.terminate()
            else:
                worker.pipe.send(None)
            worker.process.join()
