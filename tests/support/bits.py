"""Hashes of some 350 fits, to see whether two builds on one machine give the same bits.

    python tests/support/bits.py                        # prints the hash of every fit of the build that is imported
    python tests/support/bits.py BASE HEAD              # runs in two checkouts, and names the fits that differ

A hash is of `coef_`, `intercept_` and of the columns of `history_` that hold no seconds. Which bits a fit has depends
on the processor (kernels are compiled for several), on BLAS and on the compiler: see `fingerprint`. All fits are made
in one process, as the bits of a fit must not depend on what was fitted before it.
"""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import scipy
import scipy.sparse as sp
from ranks_in_threads import on_ranks
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification
from threadpoolctl import threadpool_info

SECONDS = ("seconds", "time")           # in the names of columns of `history_` that differ from run to run


def fingerprint():
    """What the bits of a fit depend on beside the source: a dict of strings."""
    from cmargin._core.linalg import _blas

    blas = [f"{pool['internal_api']} {pool['version']} {pool.get('architecture')}" for pool in threadpool_info()
            if pool["user_api"] == "blas"]
    compiler = re.search(rb"GCC: \([^)]*\) [\d.]+|clang version [\d.]+", Path(_blas.__file__).read_bytes())
    return {"machine": platform.machine(), "lanes": str(_blas.lanes_here()), "blas": ", ".join(sorted(blas)),
            "numpy": np.__version__, "scipy": scipy.__version__, "compiler": compiler[0].decode() if compiler else ""}


def hash_of(model):
    """Eight letters that stand for the numbers of a fitted ``model``."""
    found = hashlib.sha256()
    for name in ("coef_", "intercept_"):
        found.update(np.ascontiguousarray(getattr(model, name)).tobytes())
    history = getattr(model, "history_", {})
    for name in sorted(history):
        if not any(word in name for word in SECONDS):
            found.update(f"{name} {np.asarray(history[name], float).round(14).tolist()}".encode())
    return found.hexdigest()[:8]


# ---------------------------------------------------------------- sets

def standardised(load):
    X, y = load(return_X_y=True)
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1), y


def sets():
    """Names of (X, y): two and more classes, few and many rows, wide, sparse."""
    rng = np.random.default_rng(0)
    many, rows = partial(make_classification, random_state=1), partial(sp.random, format="csr", random_state=2)
    sparse = rows(2500, 400, 0.03)
    return {
        "iris": standardised(load_iris), "cancer": standardised(load_breast_cancer),
        "digits": standardised(load_digits),
        "tall": many(6000, 30, n_informative=15, n_classes=4), "two": many(20_000, 12, n_informative=6),
        "wide": many(60, 300, n_informative=20, n_classes=3),
        "sparse": (sparse, np.asarray((sparse @ rng.standard_normal((400, 3))).argmax(axis=1)).ravel()),
    }


def estimators():
    """Names of functions that make an estimator, given more parameters."""
    from cmargin import BSNClassifier, MarginPursuitClassifier, PegasosClassifier, SLNDClassifier, SmSVMClassifier
    from cmargin.baselines import AdamClassifier, CGDescentClassifier, PreconditionedSGDClassifier, SGDQNClassifier

    few = {"random_state": 0, "max_passes": 4}
    return {
        "hinge": SmSVMClassifier,
        "hinge l2=1e-2": partial(SmSVMClassifier, l2=1e-2, tol=1e-6),
        "hinge C=1": partial(SmSVMClassifier, C=1.0),
        "squared hinge": partial(SmSVMClassifier, loss="squared_hinge", l2=1e-3),
        "logistic": partial(SmSVMClassifier, loss="logistic", l2=1e-5),
        "l1": partial(SmSVMClassifier, l1=1e-3),
        "logistic l1": partial(SmSVMClassifier, loss="logistic", l1=1e-3, l2=0.0),
        "dual": partial(SmSVMClassifier, linear_solver="dual"),
        "cg": partial(SmSVMClassifier, linear_solver="cg"),
        "cholesky": partial(SmSVMClassifier, linear_solver="cholesky", loss="squared_hinge"),
        "slnd": partial(SLNDClassifier, **few),
        "slnd l2": partial(SLNDClassifier, l2=1e-3),
        "slnd logistic": partial(SLNDClassifier, loss="logistic", **few),
        "slnd refreshed": partial(SLNDClassifier, loss="logistic", hessian_refresh=1, curvature="loss", **few),
        "slnd calibrated": partial(SLNDClassifier, loss="calibrated_hinge", tail="scale", **few),
        "bsn": partial(BSNClassifier, **few),
        "pursuit": MarginPursuitClassifier,
        "pursuit l2=1e-3": partial(MarginPursuitClassifier, l2=1e-3),
        "pursuit sgd": partial(MarginPursuitClassifier, solver="sgd", l2=1e-3, **few),
        "pegasos": partial(PegasosClassifier, **few),
        "sgdqn": partial(SGDQNClassifier, **few),
        "preconditioned sgd": partial(PreconditionedSGDClassifier, **few),
        "adam": partial(AdamClassifier, **few),
        "cg descent": CGDescentClassifier,
    }


# ---------------------------------------------------------------- ways to fit

def in_memory(make, X, y, **kwargs):
    return make(**kwargs).fit(X, y)


def weighted(make, X, y):
    return make().fit(X, y, sample_weight=0.5 + np.arange(len(y)) % 3)


def from_files(make, X, y):
    try:
        from cmargin.data.files import open_files
    except ModuleNotFoundError:                 # of a build whose folders had other names
        from cmargin.sources.files import open_files
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "X.npz" if sp.issparse(X) else "X.npy")
        if sp.issparse(X):
            sp.save_npz(path, sp.csr_matrix(X), compressed=False)
        else:
            np.save(path, X)
        return make().fit(open_files(path, in_memory=False), y)


def over_ranks(make, X, y):
    found, _ = on_ranks(2, lambda comm: make().fit(X[comm.rank::2], y[comm.rank::2], comm=comm))
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def on_device(make, X, y):
    import array_api_strict

    return make().fit(array_api_strict.asarray(X), y)


class StopAt:
    """A callback that ends a fit as Ctrl-C does."""

    def __init__(self, n):
        self.left = n

    def __call__(self, *said, **known):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def stopped_and_resumed(make, X, y):
    from cmargin import Checkpoint

    with tempfile.TemporaryDirectory() as folder:
        kept = Checkpoint(Path(folder, "kept"), passes=1, seconds=None)
        try:
            make(checkpoint=kept, callback=StopAt(3)).fit(X, y)
        except KeyboardInterrupt:
            pass
        return make(checkpoint=kept).fit(X, y)


PLACES = {"files": from_files, "two ranks": over_ranks, "device": on_device, "resumed": stopped_and_resumed}
REFUSED = {"files": ["slnd l2"], "two ranks": ["slnd l2"], "device": ["slnd l2", "slnd logistic"]}
SECOND_ORDER = ("hinge", "squared hinge", "logistic", "l1", "slnd", "slnd l2", "slnd logistic", "pursuit l2=1e-3")


def fits(few=False):
    """Names of functions that return a fitted model: all, or forty ``few``."""
    made, data = estimators(), sets()
    names = ("iris", "wide", "sparse") if few else data
    for of in names:
        X, y = data[of]
        for name, make in made.items():
            if few and of != "iris" and name not in SECOND_ORDER:
                continue
            yield f"{of}, {name}", partial(in_memory, make, X, y)
            if not few and of in ("digits", "sparse"):
                yield f"{of}, {name}, single", partial(in_memory, make, X.astype(np.float32), y)
            if not few and of == "tall":
                yield f"{of}, {name}, three threads", partial(in_memory, make, X, y, n_jobs=3)
                yield f"{of}, {name}, columns first", partial(in_memory, make, np.asfortranarray(X), y)
                yield f"{of}, {name}, weights", partial(weighted, make, X, y)
    for of in () if few else ("tall", "two", "sparse"):
        X, y = data[of]
        for name in SECOND_ORDER:
            for place, way in PLACES.items():
                if name not in REFUSED.get(place, ()) and not (place == "device" and sp.issparse(X)):
                    yield f"{of}, {name}, {place}", partial(way, made[name], X, y)


def hashes(few=False):
    """The hash of every fit by its name; of one that is refused, what was said."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fitted in fits(few):
            try:
                found[name] = hash_of(fitted())
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"[:60]
    return found


def main(folders):
    if not folders:
        json.dump({"machine": fingerprint(), "fits": hashes()}, sys.stdout, indent=1)
        return 0
    said = []
    for folder in folders:
        path = os.pathsep.join([str(Path(folder).resolve()), str(Path(__file__).resolve().parent)])
        done = subprocess.run([sys.executable, __file__], env={**os.environ, "PYTHONPATH": path}, check=True,
                              stdout=subprocess.PIPE, text=True)
        said.append(json.loads(done.stdout)["fits"])
    base, head = said
    for name in base.keys() | head.keys():
        if base.get(name) != head.get(name):
            print(f"{name}: {base.get(name)}, {head.get(name)}")
    same = sum(base[name] == head.get(name) for name in base)
    print(f"{same} of {len(base)} fits have the same bits")
    return int(same < len(base))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
