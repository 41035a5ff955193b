"""Every estimator, in every way of its, on few rows of every format: for valgrind, which takes forty times the time.

    build_tools/valgrind.sh         # runs this
"""

import sys
import tempfile
import time
import warnings

import numpy as np
import scipy.sparse as sp
from campaign.estimators import ESTIMATORS, WAYS, make
from sklearn.exceptions import ConvergenceWarning

from cmargin import SmSVMClassifier, margins
from cmargin.data.files import open_files

SHAPES = ((37, 5, 3), (30, 70, 2))          # rows, columns, classes: more rows than columns, and fewer
ANSWERS = ("predict", "decision_function", "scores", "predict_proba", "posterior")


def rows(n, p, k, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.standard_normal((k, p))[y] + rng.standard_normal((n, p)), y


def formats(X):
    sparse = sp.csr_array(np.where(np.abs(X) > 0.8, X, 0)[:, ::-1])
    yield "C, float64", np.ascontiguousarray(X)
    yield "F, float32", np.asfortranarray(X, np.float32)
    yield "CSR, float32", sparse.astype(np.float32)
    sparse.indices, sparse.indptr = sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)
    yield "CSR of 64 bits, float64", sparse


def fit_everything(until):
    for n, p, k in SHAPES:
        X, y = rows(n, p, k)
        weight = 0.5 + np.arange(n) % 3
        for name in ESTIMATORS:
            for settings in WAYS.get(name, [{}]):
                begin = time.monotonic()
                for number, (_, A) in enumerate(formats(X)):
                    few = {"max_passes": 3, "n_jobs": 1 + number % 2, "l2s": (1e-2,), "cv": 2}
                    estimator = make(name, **{**few, **settings})
                    estimator.fit(A, y, weight if number % 2 and name != "CatoniHingeClassifier" else None)
                    for answer in ANSWERS:
                        if hasattr(estimator, answer):
                            assert np.isfinite(getattr(estimator, answer)(A)).all(), (name, answer)
                print(f"{n} x {p}, {name} {settings}: {time.monotonic() - begin:.1f} s", flush=True)
                if time.monotonic() > until:
                    return "stopped: no time left"
    return "done"


def fit_files():
    X, y = rows(61, 5, 2)
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X)
        files = open_files(f"{folder}/X.npy", in_memory=False)
        assert np.isfinite(SmSVMClassifier().fit(files, y).coef_).all()


def measure_margins():
    rng = np.random.default_rng(0)
    q = rng.standard_normal((23, 3))
    truth = np.arange(23) % 3
    margins.margin_summary(q[:, 0])
    margins.location_estimate(q[:, 0])
    margins.psi_inverse(margins.psi_transform(rng.random(9)))
    margins.cubic_roots(*rng.standard_normal((4, 5)))
    margins.top_k_accuracy(q, truth, 2)
    margins.margin(q, truth)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    measure_margins()
    fit_files()
    print(fit_everything(time.monotonic() + float(sys.argv[1])))
