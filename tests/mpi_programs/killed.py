"""A fit over the ranks of COMM_WORLD with a checkpoint, of which one rank is killed, or that goes on from there.

    killed.py FOLDER SLND|SmSVM|pursuit RANK WRITES      RANK is killed by SIGKILL after so many checkpoints; -1: nobody
"""

import os
import signal
import sys

import numpy as np
from mpi4py import MPI
from sklearn.datasets import load_digits

from cmargin import Checkpoint, MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier

comm, (folder, name, rank, writes) = MPI.COMM_WORLD, sys.argv[1:]
X, y = load_digits(n_class=3, return_X_y=True)
X = X / 16
MODELS = {
    "SLND": SLNDClassifier(max_passes=6, random_state=3, n_jobs=1), "SmSVM": SmSVMClassifier(n_jobs=1),
    "pursuit": MarginPursuitClassifier(l2=1e-3, n_jobs=1),
}
count, replace = 0, os.replace


def counting(*names):
    """Every rank writes one file a checkpoint, and rank 0 one more."""
    global count
    replace(*names)
    count += 1
    if comm.rank == int(rank) and count == int(writes) * (2 if comm.rank == 0 else 1):
        os.kill(os.getpid(), signal.SIGKILL)


os.replace = counting
model = MODELS[name].set_params(checkpoint=Checkpoint(os.path.join(folder, "fit"), seconds=None, passes=1.0))
model.fit(X[comm.rank::comm.size], y[comm.rank::comm.size], comm=comm)
assert len(set(comm.allgather(model.coef_.tobytes()))) == 1
if comm.rank == 0:
    assert not os.path.exists(os.path.join(folder, "fit"))
    np.save(os.path.join(folder, "coef.npy"), model.coef_)
    print("passes", model.n_passes_, "written", count // 2, flush=True)
ended = comm.gather(comm.rank)
if comm.rank == 0:
    print("done", ended, flush=True)
