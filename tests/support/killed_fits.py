"""Fits that are killed by SIGKILL after a checkpoint, taken up by another process, killed again, and brought to an end.

    python tests/support/killed_fits.py folder   prints by case, as JSON, what differs from a fit that was left alone

One process that trains on one thread only, to have all modules at hand, forks a child for every fit: an interpreter
for each would take a second, and threads do not survive a fork.
"""

import json
import os
import signal
import sys
import traceback
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from cmargin import (
    BSNClassifier,
    Checkpoint,
    MarginPursuitClassifier,
    PegasosClassifier,
    SLNDClassifier,
    SmSVMClassifier,
    SmSVMClassifierCV,
    baselines,
)
from cmargin.data.files import open_files
from cmargin.data.files import source as files_source

COMPARED = ("coef_", "intercept_", "objective_", "gradient_norm_", "duality_gap_", "n_iter_", "n_passes_", "scores_")
SEED = {"random_state": 7}
OFTEN = {"seconds": None, "passes": 1e-9}              # a checkpoint whenever there may be one

FAMILIES = {                                           # on dense and on CSR rows
    "gradient": MarginPursuitClassifier(solver="gd", max_passes=9, l2=1e-3, scale="one-shot"),
    "projected": MarginPursuitClassifier(solver="sgd", max_passes=6, **SEED),
    "slnd": SLNDClassifier(loss="logistic", max_passes=5, hessian_refresh=2, **SEED),
    "multinomial": SLNDClassifier(max_passes=9, **SEED),
    "optimum": SLNDClassifier(l2=1e-6, tol=1e-8),
    "optimum with l1": SLNDClassifier(l1=1e-4, tol=1e-8),
    "smsvm": SmSVMClassifier(l2=1e-4),
    "l1": SmSVMClassifier(l1=1e-3, loss="logistic"),
    "dual": SmSVMClassifier(linear_solver="dual", C=1.0),
    "pursuit": MarginPursuitClassifier(scale=0.3, tol=1e-9),
}
ON_DENSE = {
    "nesterov": baselines.NesterovClassifier(max_passes=9),
    "adadelta": baselines.AdaDeltaClassifier(max_passes=5, **SEED),
    "conjugate": baselines.CGDescentClassifier(max_passes=9),
    "catoni": baselines.CatoniHingeClassifier(max_passes=5),
    "theory": SLNDClassifier(loss="logistic", max_passes=4, step_size="theory", **SEED),
    "refreshed": SLNDClassifier(max_passes=6, step_size=0.5, hessian_refresh=2, **SEED),
    "sgdqn": baselines.SGDQNClassifier(max_passes=5, **SEED),
    "published": SmSVMClassifier(line_search="quadratic", l1=1e-2, max_passes=20),
    "search": SmSVMClassifierCV(l2s=(1e-2, 1e-1), cv=2),
}
ON_CSR = {
    "pegasos": PegasosClassifier(max_passes=6, **SEED),
    "adam": baselines.AdamClassifier(max_passes=5, **SEED),
    "odm": baselines.ODMClassifier(max_passes=5, smoothing=0.05),
    "profile": baselines.ProjectionProfileClassifier(max_passes=5),
    "bsn": BSNClassifier(loss="calibrated_hinge", max_passes=5, tail="drop", rank=4, **SEED),
    "balanced": baselines.BalancedSGDClassifier(max_passes=5, **SEED),
    "diagonal": baselines.PreconditionedSGDClassifier(max_passes=5, preconditioner="diagonal", **SEED),
    "products": SmSVMClassifier(linear_solver="cg", loss="squared_hinge"),
}
LARGE = {                                              # begun on a tenth of the rows
    "smsvm": SmSVMClassifier(**SEED),
    "pursuit": MarginPursuitClassifier(trace=False),
}
GIVEN_UP = SmSVMClassifier(loss="logistic", C=1e3)      # begun by products, in both
WIDE = {"smsvm": SmSVMClassifier(l2=1e-3), "pursuit": MarginPursuitClassifier(l2=1e-3), "products": GIVEN_UP}
COLUMNS = {"products": GIVEN_UP}
SAMPLED = {loss: SmSVMClassifier(loss=loss, l2=1e-7, **SEED) for loss in ("hinge", "squared_hinge", "logistic")}
IN_FILES = {"smsvm": SmSVMClassifier(**SEED), "pursuit": MarginPursuitClassifier(l2=1e-3)}


class StopAt:
    """Callback that presses Ctrl-C after ``n`` passes, or says that it is enough where ``raises`` is None."""

    def __init__(self, n, raises=KeyboardInterrupt):
        self.left, self.raises = n, raises

    def __call__(self, model):
        self.left -= 1
        if self.left == 0 and self.raises is not None:
            raise self.raises
        return self.left == 0


def stopped(model, path, n, X, y, **fit):
    """Fit it until a Ctrl-C after ``n`` passes; the checkpoint is left, and the model that takes it up is returned."""
    model = clone(model).set_params(checkpoint=Checkpoint(path, **OFTEN), callback=StopAt(n))
    try:
        model.fit(X, y, **fit)
    except KeyboardInterrupt:
        assert os.path.exists(path)
        return clone(model).set_params(callback=None)
    raise AssertionError("the fit came to its end")


def blobs(n, d, k, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X @ rng.standard_normal((d, k)) + rng.standard_normal((n, k))).argmax(axis=1)


KINDS = {"dense": FAMILIES | ON_DENSE, "CSR": FAMILIES | ON_CSR, "large": LARGE, "files": IN_FILES, "wide": WIDE,
         "columns": COLUMNS, "sampled": SAMPLED}
NAMES = [f"{name}, {kind}" for kind, estimators in KINDS.items() for name in estimators]


def data_of(kind, folder):
    """Rows and labels."""
    if kind == "wide":
        return blobs(60, 300, 3)
    if kind == "columns":
        return blobs(300, 120, 3)
    if kind == "sampled":                    # their curvature; of columns that products alone want many for
        X, y = blobs(6400, 200, 2)
        return (np.cos(X[:, :9] @ X[:9]) + X / 9).astype("f"), y
    X, y = blobs(400, 9, 3) if kind in ("dense", "CSR") else blobs(21_000, 6, 3)
    if kind == "dense":
        return X, y
    if kind == "CSR":
        return sp.csr_matrix(np.where(np.abs(X) > 0.6, X, 0.0)), y
    X[:, 3] = 0.0
    X[::300, 3] = 40.0
    if kind == "large":
        return X, y
    np.save(os.path.join(folder, "X.npy"), X)
    return open_files(os.path.join(folder, "X.npy"), in_memory=False), (y > 1).astype(int)


def cases(folder):
    """Yield name, estimator, rows, labels."""
    for kind, estimators in KINDS.items():
        X, y = data_of(kind, folder)
        for name, estimator in estimators.items():
            yield f"{name}, {kind}", estimator, X, y


def in_child(work):
    """Exit status of ``work()`` in a process of its own."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
        sys.stderr.flush()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(1)


def after_writes(n, then):
    """Call ``then`` when a checkpoint has been written for the n-th time; how often that was, a list of one number."""
    count, replace = [0], os.replace

    def counting(*names):
        replace(*names)
        count[0] += 1
        if count[0] == n:
            then()

    os.replace = counting
    return count


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def fitted(estimator, X, y, **parameters):
    parameters = {name: value for name, value in parameters.items() if name in estimator.get_params()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(estimator).set_params(**parameters).fit(X, y)


def numbers_of(model):
    numbers = {name: np.asarray(getattr(model, name)) for name in COMPARED if hasattr(model, name)}
    return numbers | {f"history {name}": column for name, column in model.history_.items()
                      if not name.startswith("seconds")}


def same(a, b):
    """Whether all numbers of two fits are, to the bit."""
    there, here = numbers_of(a), numbers_of(b)
    return there.keys() == here.keys() and all(np.array_equal(there[k], here[k], equal_nan=True) for k in there)


def keep(path, model, **more):
    np.savez(path, **numbers_of(model), **more)


def difference(path, other):
    """The names of what is not the same to the bit."""
    with np.load(path) as there, np.load(other) as here:
        return [name for name in there.files if name != "writes"
                and not np.array_equal(there[name], here[name], equal_nan=True)]


def trouble(name, estimator, X, y, folder, rng):
    """What is wrong with this case, "" for nothing."""
    path, alone, through = (os.path.join(folder, f"{name}.{kind}") for kind in ("checkpoint", "alone.npz", "end.npz"))
    kept = Checkpoint(path, **OFTEN)

    def undisturbed():
        keep(alone, fitted(estimator, X, y, n_jobs=2))
        count = after_writes(-1, None)
        keep(through, fitted(estimator, X, y, n_jobs=2, checkpoint=kept), writes=count)

    def disturbed(n):
        after_writes(n, killed)
        fitted(estimator, X, y, n_jobs=2, checkpoint=kept)

    if in_child(undisturbed) or os.path.exists(path):
        return "it fails, or leaves its file"
    if difference(alone, through):
        return f"writing changes {difference(alone, through)}"
    with np.load(through) as found:
        writes = int(found["writes"][0])
    if writes < 2:
        return f"there were {writes} checkpoints"
    n = int(rng.integers(1, writes))
    if (status := in_child(lambda: disturbed(n))) not in (-signal.SIGKILL, 0):
        return f"the first fit exits with {status}"
    if (status := in_child(lambda: disturbed(int(rng.integers(1, 3))))) not in (-signal.SIGKILL, 0):
        return f"the fit gone on with exits with {status}"
    if in_child(lambda: keep(through, fitted(estimator, X, y, n_jobs=1, checkpoint=kept))) or os.path.exists(path):
        return "the end fails, or leaves its file"
    return f"after {n} of {writes} there differ {found}" if (found := difference(alone, through)) else ""


def main(folder):
    files_source.CHUNK = 1 << 18
    X, y = blobs(50, 3, 3)
    for estimator in FAMILIES.values():
        fitted(estimator, X, y, n_jobs=1)
    rng = np.random.default_rng(11)
    print(json.dumps({name: trouble(name, *case, folder, rng) for name, *case in cases(folder)}))


if __name__ == "__main__":
    main(sys.argv[1])
