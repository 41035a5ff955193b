"""A Ctrl-C on one rank ends the fit on all of them, and all have the best weights so far: every system in turn.

Another rank for each; what a fit has left behind would disturb the one after it.
"""

import os
import signal
import threading
from time import perf_counter, sleep

import numpy as np
from mpi4py import MPI

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier

comm = MPI.COMM_WORLD
rng = np.random.default_rng(comm.rank)
y = rng.integers(0, 40, 20_000)
X = rng.standard_normal((len(y), 40)) + np.random.default_rng(9).standard_normal((40, 40))[y]


def slow(model):
    sleep(0.05)                                        # so that no machine is done before the interrupt


def interrupted(model, rank):
    """Seconds from the Ctrl-C on ``rank`` to the end of the fit there."""
    pressed = []

    def press():
        pressed.append(perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    comm.Barrier()
    if comm.rank == rank:
        threading.Timer(1.0, press).start()
    try:
        model.fit(X, y, comm=comm)
        ended = "at its end"
    except KeyboardInterrupt:
        ended = "interrupted"
    assert ended == "interrupted", ended
    assert len(set(comm.allgather(model.coef_.tobytes()))) == 1
    assert np.isfinite(model.coef_).all() and model.score(X, y) > 0.9
    return comm.bcast(perf_counter() - pressed[0] if pressed else None, rank)


models = {"SmSVM": SmSVMClassifier(l2=1e-6, n_jobs=1, callback=slow),
          "SLND": SLNDClassifier(step_size=0.1, max_passes=10_000, n_jobs=1),
          "pursuit": MarginPursuitClassifier(tol=1e-14, max_passes=10_000, n_jobs=1, callback=slow)}
for number, (name, model) in enumerate(models.items(), comm.size - 1):
    seconds = interrupted(model, number % comm.size)
    if comm.rank == 0:
        print("interrupted", name, seconds, flush=True)
ended = comm.gather(comm.rank)
if comm.rank == 0:
    print("done", ended, flush=True)
