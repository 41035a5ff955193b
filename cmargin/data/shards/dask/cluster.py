"""Tasks on every partition of a cluster, and their answers: nothing hangs, and what goes wrong is a sentence."""

import uuid
from time import perf_counter

import distributed
import numpy as np

from cmargin._runtime.aligned import aligned_throughout

POLL = 0.1                     # seconds between two moments at which Python is heard while workers are at work
WORKER_CHECK = 2.0             # and between two checks whether there are workers at all,
PATIENCE = 30.0                # without which nobody waits longer than that


def client_of(client=None):
    """``client``, or the one that this thread would use; ValueError where there is none."""
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            raise ValueError("Rows in Dask collections are read by the workers of a dask.distributed cluster, and "
                             "there is none: make a distributed.Client first, or give X.compute().") from None
    if client.asynchronous:
        raise ValueError("An asynchronous dask.distributed Client cannot wait for a fit; make one with "
                         "asynchronous=False.")
    return client


def check_imports(client):
    """Raise ImportError unless scheduler and workers know this package: a worker that is sent what it cannot read dies,
    and another is tried after it. What is sent here, everybody can read."""
    line = "import cmargin.data.shards.workers.tasks"
    try:
        client.run_on_scheduler(exec, line)
        client.run(exec, line)
    except ImportError as error:
        raise ImportError(f"The workers and the scheduler of the Dask cluster must have cmargin installed: {error}"
                          ) from error


class OnAligned:
    """A function whose arguments come over a network: arrays are left where they were in the message, at any byte."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *arguments):
        return self.function(*aligned_throughout(arguments))


class Cluster:
    """A client, and how tasks are sent and waited for."""

    def __init__(self, client):
        # heard: called about ten times a second while workers are at work; may raise
        self.client, self.heard, self.alone_since = client, lambda: None, None

    def everywhere(self, name, function, *columns):
        """Futures of ``function`` of every partition, called ``name`` on the dashboard; columns are lists by partition.

        Nothing is found by what it was made of: two fits never share a task.
        """
        token = uuid.uuid4().hex
        keys = [(f"cmargin-{name}-{token}", place) for place in range(len(columns[0]))]
        return self.client.map(OnAligned(function), *columns, key=keys, pure=False)

    def groups(self, futures):
        """Numbers of the partitions that one task goes through: as many groups of a worker's as it has threads.

        A task costs a scheduler about as much whatever it does. Who is nowhere yet is alone.
        """
        who_has, threads = self.client.who_has(futures), self.client.nthreads()
        of_workers = {worker: [] for worker in sorted(threads)}
        groups = []
        for number, future in enumerate(futures):
            there = [worker for worker in who_has.get(future.key, ()) if worker in of_workers]
            if there:                                    # a copy is with several: with who has least
                of_workers[min(there, key=lambda worker: (len(of_workers[worker]), worker))].append(number)
            else:
                groups.append([number])
        for worker, numbers in of_workers.items():
            n_groups = min(len(numbers), threads[worker])
            groups += [part.tolist() for part in np.array_split(numbers, n_groups)] if n_groups else []
        return groups

    def results(self, futures, until=np.inf):
        """What the futures come to, in their order; None where the clock says ``until`` first.

        Without such a time somebody waits for the answer alone, and must be heard here.
        """
        looked = perf_counter()
        while True:
            if self.client.sync(_are_done, futures):
                return self.gathered(futures)
            if perf_counter() > until:
                return None
            if until == np.inf:
                self.heard()
            if perf_counter() - looked > WORKER_CHECK:
                looked = perf_counter()
                self.look_for_workers()

    def gathered(self, futures):
        """What finished futures come to; their error, which may be a TimeoutError of its own, in words."""
        try:
            return self.client.gather(futures)
        except Exception as error:
            raise in_words(error) from error

    @staticmethod
    def have_done(futures):
        return all(future.done() for future in futures)

    @staticmethod
    def forget(futures):
        """Let the workers forget results: not when these objects go, which tracebacks may keep, but now."""
        for future in futures or ():
            if future is not None:
                future.release()

    def look_for_workers(self):
        if self.client.status not in ("running", "connecting"):
            raise RuntimeError("The connection to the scheduler of the Dask cluster is lost.")
        if self.client.nthreads():
            self.alone_since = None
            return
        self.alone_since = self.alone_since or perf_counter()
        if perf_counter() - self.alone_since > PATIENCE:
            raise RuntimeError(f"The Dask cluster has had no worker for {PATIENCE:g} seconds.")

    def memory(self):
        """Bytes that its workers may use; infinite where they do not say."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(worker["memory_limit"] or float("inf") for worker in workers)


async def _are_done(futures):
    """Whether they are within `POLL` seconds. distributed 2026.8 keeps an error that its `sync` raises in a cycle with
    the frames of whoever called it, and a whole fit with them: so none is raised for a wait that is too short."""
    try:
        await distributed.wait(futures, timeout=POLL)
    except TimeoutError:
        return False
    return True


def in_words(error):
    """The same as one sentence where it is the cluster's."""
    if isinstance(error, distributed.scheduler.KilledWorker):
        return RuntimeError("Workers of the Dask cluster died again and again while they read a partition, as they do "
                            f"where memory is short: {error}")
    if isinstance(error, distributed.client.FutureCancelledError):
        return RuntimeError("The Dask cluster has lost partitions that it cannot make again, as where they were "
                            f"scattered to a worker that died: {error}")
    return error
