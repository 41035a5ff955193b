"""A fit over the ranks of COMM_WORLD with a checkpoint: left alone, then with a rank killed; or going on from there.

    killed.py FOLDER SLND|SmSVM|pursuit RANK WRITES     RANK is killed by SIGKILL after so many checkpoints
    killed.py FOLDER SLND|SmSVM|pursuit                 goes on
"""

import os
import signal
import sys

import numpy as np
from mpi4py import MPI
from sklearn.datasets import load_digits

from cmargin import Checkpoint, MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier

comm, (folder, name, *kill) = MPI.COMM_WORLD, sys.argv[1:]
X, y = load_digits(n_class=3, return_X_y=True)
X = X / 16
MODELS = {
    "SLND": SLNDClassifier(max_passes=6, random_state=3, n_jobs=1), "SmSVM": SmSVMClassifier(n_jobs=1),
    "pursuit": MarginPursuitClassifier(l2=1e-3, n_jobs=1),
}
count, replace = 0, os.replace


def counting(rank, writes):
    """`os.replace`, counted: every rank needs one a checkpoint, and rank 0 one more."""
    def counted(*names):
        global count
        replace(*names)
        count += 1
        if comm.rank == rank and count == writes * (2 if comm.rank == 0 else 1):
            os.kill(os.getpid(), signal.SIGKILL)
    return counted


def fit(which, rank=-1, writes=0):
    global count
    count, os.replace, path = 0, counting(rank, writes), os.path.join(folder, which, "fit")
    model = MODELS[name].set_params(checkpoint=Checkpoint(path, seconds=None, passes=1.0))
    model.fit(X[comm.rank::comm.size], y[comm.rank::comm.size], comm=comm)
    assert len(set(comm.allgather(model.coef_.tobytes()))) == 1
    if comm.rank == 0:
        assert not os.path.exists(path)
        np.save(os.path.join(folder, which, "coef.npy"), model.coef_)
        print("passes", model.n_passes_, "written", count // 2, flush=True)


if kill:
    fit("alone")
fit("killed", *map(int, kill))
ended = comm.gather(comm.rank)
if comm.rank == 0:
    print("done", ended, flush=True)
