"""SmSVM over two MPI ranks of one thread each, beside one process of two threads.

    python asv_benches/compare_mpi.py --data FOLDER [--fits N] [--quick]

Forest cover, class 2 against the rest, standardised, to a certified 1e-4. Both are started once, take turns, and sleep
while the other fits. Printed: the least and the median seconds of a fit, and what a fit over ranks sends; that this is
what its questions come to is tested in tests/data/test_ranks.py. ``--quick`` takes breast_cancer, to see that it runs.
Needs mpi4py, and mpiexec in PATH.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from time import perf_counter, sleep

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cmargin import SmSVMClassifier
from cmargin.datasets import load
from measure.report import heading, table
from race.data import prepare

L2 = (1e-3, 1e-5)


class Counting:
    """A communicator that counts what goes through it, by method."""

    def __init__(self, comm):
        self.comm, self.messages, self.bytes = comm, {}, {}

    def __getattr__(self, name):
        method = getattr(self.comm, name)
        if name not in ("Bcast", "Reduce", "Gather"):
            return method

        def counted(buffer, *others, **named):
            self.messages[name] = self.messages.get(name, 0) + 1
            self.bytes[name] = self.bytes.get(name, 0) + buffer.nbytes
            return method(buffer, *others, **named)

        return counted


def next_order(comm):
    """A line of rank 0's standard input, on every rank; who waits for it leaves the processor to others."""
    if comm is None:
        return sys.stdin.readline()
    if comm.Get_rank() == 0:
        line = sys.stdin.readline()
        for other in range(1, comm.Get_size()):
            comm.send(line, other)
        return line
    while not comm.Iprobe(0):
        sleep(1e-3)
    return comm.recv(source=0)


def main_of_rank(task):
    """Fit at every order; print what it took."""
    comm = None
    if task["ranks"]:
        from mpi4py import MPI
        comm = MPI.COMM_WORLD
    rank, size = (comm.Get_rank(), comm.Get_size()) if comm else (0, 1)
    data = load("breast_cancer" if task["quick"] else "covtype")
    X, y = prepare(data.X, intercept=False), np.where(data.y == 1, 1, -1)
    mine = np.array_split(np.arange(len(y)), size)[rank]
    X, y = np.ascontiguousarray(X[mine]), y[mine]
    warnings.simplefilter("ignore", ConvergenceWarning)
    while True:
        order = next_order(comm)
        if not order.strip():
            return
        counting = Counting(comm) if comm else None
        model = SmSVMClassifier(l2=json.loads(order), n_jobs=task["n_jobs"], random_state=3)
        begun = perf_counter()
        model.fit(X, y, **({"comm": counting} if comm else {}))
        seconds = perf_counter() - begun
        if rank == 0:
            received = {"seconds": seconds, "gap": float(model.duality_gap_.max()), "passes": model.n_passes_}
            received |= {"messages": counting.messages, "bytes": counting.bytes} if comm else {}
            print(json.dumps(received), flush=True)


def started(task, before=()):
    command = [*before, sys.executable, __file__, "--rank", json.dumps(task)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(process, l2):
    process.stdin.write(json.dumps(l2) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--fits", type=int, default=10)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank:
        main_of_rank(json.loads(args.rank))
        return
    if args.data:
        os.environ["CMARGIN_DATA"] = args.data
    task = {"quick": args.quick}
    both = {"2 threads": started(task | {"ranks": False, "n_jobs": 2}),
            "2 ranks": started(task | {"ranks": True, "n_jobs": 1}, ("mpiexec", "-n", "2"))}
    print(heading(2))
    rows = []
    for l2 in L2:
        received = {name: [ask(process, l2)] for name, process in both.items()}        # the first fit warms up
        for name in (*both, *reversed(both)) * (args.fits // 2):
            received[name].append(ask(both[name], l2))
        seconds = {name: np.array([one["seconds"] for one in found[1:]]) for name, found in received.items()}
        last = received["2 ranks"][-1]
        rows.append([f"{l2:g}", *(f"{seconds[name].min():.3f} / {np.median(seconds[name]):.3f}" for name in both),
                     f"{seconds['2 ranks'].min() / seconds['2 threads'].min():.2f}",
                     f"{np.median(seconds['2 ranks']) / np.median(seconds['2 threads']):.2f}",
                     *(f"{received[name][-1]['passes']:.2f}" for name in both), f"{last['gap']:.1e}",
                     sum(last["messages"].values()), f"{sum(last['bytes'].values()) / 1024:.0f}"])
    print(table("Seconds of a fit: one process of two threads, two ranks of one thread",
                ("l2", "2 threads: least / median", "2 ranks", "ratio of least", "of medians", "passes",
                 "passes of ranks", "gap", "messages", "KiB sent"), rows))
    for process in both.values():
        process.communicate("\n")


if __name__ == "__main__":
    main()
