"""Fits over the ranks of COMM_WORLD: one machine's, or as good, and the same bits on all ranks and every time."""

from itertools import product

import numpy as np
import scipy.sparse as sp
from mpi4py import MPI
from sklearn.datasets import load_digits

from cmargin import MarginPursuitClassifier, SLNDClassifier, SmSVMClassifier
from cmargin.solvers.sgd.multinomial import MultinomialRun

comm = MPI.COMM_WORLD
X, y = load_digits(return_X_y=True)
X = X / 16
MINE = np.array_split(np.argsort(y, kind="stable"), comm.size)[comm.rank]         # a rank misses most classes
MODELS = [
    (SmSVMClassifier(n_jobs=1), np.float64, np.asarray), (SmSVMClassifier(n_jobs=1), np.float32, sp.csr_matrix),
    (SmSVMClassifier(l1=1e-3, n_jobs=1), np.float64, sp.csr_matrix),
    (SmSVMClassifier(loss="logistic", n_jobs=1), np.float32, np.asarray),
    (SmSVMClassifier(loss="squared_hinge", class_weight="balanced", n_jobs=1), np.float64, np.asarray),
    (MarginPursuitClassifier(l2=1e-3, n_jobs=1), np.float64, np.asarray),
]

for model, dtype, container in MODELS:
    rows = container(X.astype(dtype))
    bits = [model.fit(rows[MINE], y[MINE], comm=comm).coef_.tobytes() for _ in range(2)]
    every = comm.allgather(bits)
    assert len({one for pair in every for one in pair}) == 1, "other bits on another rank, or in the second run"
    if comm.rank == 0:
        coef, score = model.coef_.copy(), model.score(rows, y)
        one = model.fit(rows, y)
        tolerance = 1e-7 if dtype == np.float64 else 1e-3
        np.testing.assert_allclose(coef, one.coef_, rtol=tolerance, atol=tolerance)
        assert abs(score - one.score(rows, y)) < 2e-3
        print("equal", model, flush=True)
MIXED = np.array_split(np.random.default_rng(1).permutation(len(y)), comm.size)[comm.rank]
for part, loss in product((MIXED, MINE), ("auto", "logistic")):                    # MINE: by class
    model = SLNDClassifier(loss=loss, max_passes=4, random_state=3, n_jobs=1)
    bits = [model.fit(X[part], y[part], comm=comm).coef_.tobytes() for _ in range(2)]
    assert len({one for pair in comm.allgather(bits) for one in pair}) == 1
    if comm.rank == 0:
        MultinomialRun.in_one_memory = False                                      # its end is not that of passes
        score = model.score(X, y)
        assert score > model.fit(X, y).score(X, y) - 0.01
        print("equal", model, flush=True)
ended = comm.gather(comm.rank)
if comm.rank == 0:
    print("done", ended, flush=True)
