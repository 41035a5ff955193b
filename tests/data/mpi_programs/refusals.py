"""Whatever is wrong on one rank is raised on all."""

import numpy as np
from mpi4py import MPI

from cmargin import SmSVMClassifier

comm = MPI.COMM_WORLD
rng = np.random.default_rng(comm.rank)
X, y, last = rng.standard_normal((50, 4)), rng.integers(0, 3, 50), comm.rank == comm.size - 1


def callback(model):
    raise ArithmeticError("enough")


for rows, labels, parameters in (
        (X[:, :3] if last else X, y, {}),
        (X.astype("f") if last else X, y, {}),
        (np.full_like(X, np.nan) if last else X, y, {}),
        (X, y, {"l2": 0.1 if last else 0.2}),
        (X, y * 0, {}),
        (X, y, {"callback": callback})):
    try:
        SmSVMClassifier(**parameters).fit(rows, labels, comm=comm)
        text = "nothing was raised"
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    said = comm.allgather(text)
    if comm.rank == 0:
        assert len(set(said)) == 1, said
        print("everywhere", text.splitlines()[0], flush=True)
ended = comm.gather(comm.rank)
if comm.rank == 0:
    print("done", ended, flush=True)
