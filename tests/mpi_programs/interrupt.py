"""A Ctrl-C on one rank, the number given, ends the fit on all of them, and all have the best weights so far.

The second argument is the estimator.
"""

import os
import signal
import sys
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


models = {"SmSVM": SmSVMClassifier(l2=1e-6, n_jobs=1, callback=slow),
          "SLND": SLNDClassifier(step_size=0.1, max_passes=10_000, n_jobs=1),
          "pursuit": MarginPursuitClassifier(tol=1e-14, max_passes=10_000, n_jobs=1, callback=slow)}
model, pressed = models[sys.argv[2]], []


def press():
    pressed.append(perf_counter())
    os.kill(os.getpid(), signal.SIGINT)


comm.Barrier()
if comm.rank == int(sys.argv[1]) % comm.size:
    threading.Timer(1.0, press).start()
try:
    model.fit(X, y, comm=comm)
    ended = "at its end"
except KeyboardInterrupt:
    ended = "interrupted"
assert ended == "interrupted", ended
assert len(set(comm.allgather(model.coef_.tobytes()))) == 1
assert np.isfinite(model.coef_).all() and model.score(X, y) > 0.9
ended = comm.gather((comm.rank, *(perf_counter() - at for at in pressed)))
if comm.rank == 0:
    print("seconds", *(seconds for _, *found in ended for seconds in found), flush=True)
    print("done", [rank for rank, *_ in ended], flush=True)
