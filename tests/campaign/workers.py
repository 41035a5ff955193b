"""Checks in processes of their own, begun again after one that died or hung."""

import multiprocessing
import signal
import time
from dataclasses import dataclass
from multiprocessing.connection import wait

from .findings import Findings


@dataclass
class Part:
    """One part of the campaign: ``check`` takes a seed, ``describe`` names its kinds without running anything."""

    name: str
    check: object              # seed -> Findings, a function of a module
    describe: object           # seed -> list of str
    seconds: float             # after which a check counts as hung
    limits: dict               # see Totals
    n_seeds: int | None = None     # where there are only so many


def serve(pipe, check):
    """What a worker does: one seed in, its findings out."""
    while (seed := pipe.recv()) is not None:
        pipe.send(check(seed))


class Worker:
    def __init__(self, part):
        context = multiprocessing.get_context("spawn")
        self.part = part
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, part.check), daemon=True)
        self.process.start()
        other.close()
        self.seed, self.deadline = None, None

    def give(self, seed, seconds):
        self.seed, self.deadline = seed, time.monotonic() + seconds
        self.pipe.send(seed)

    def answer(self):
        """Findings of the present seed, or None while there are none; a dead or late worker is at fault itself."""
        found = Findings(self.seed, [])
        if self.pipe.poll():
            try:
                return self.pipe.recv()
            except (EOFError, ConnectionResetError):
                self.process.join()
                code = self.process.exitcode
                found.add("signal", f"died: {signal.Signals(-code).name if code < 0 else f'exit status {code}'}")
        elif time.monotonic() > self.deadline:
            found.add("hang", f"no answer in {self.part.seconds:g} s")
        else:
            return None
        self.stop()
        found.tags = self.part.describe(self.seed)
        return found

    @property
    def gone(self):
        return not self.process.is_alive()

    def stop(self):
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run_part(part, seeds, n_workers, until=float("inf")):
    """Yield the findings of ``seeds``, as they come, until the clock of `time.monotonic` says ``until``."""
    seeds, idle, busy = iter(seeds), [], []
    try:
        while True:
            while len(busy) < n_workers and time.monotonic() < until:
                seed = next(seeds, None)
                if seed is None:
                    break
                fresh = not idle
                worker = Worker(part) if fresh else idle.pop()
                busy.append(worker)
                worker.give(seed, part.seconds + 60 * fresh)           # a fresh one loads the library first
            if not busy:
                return
            wait([worker.pipe for worker in busy], timeout=0.5)
            for worker in list(busy):
                found = worker.answer()
                if found is not None:
                    busy.remove(worker)
                    idle += [] if worker.gone else [worker]
                    yield found
    finally:
        for worker in idle + busy:
            worker.stop()
