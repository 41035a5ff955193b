"""Data sets by name: bundled with scikit-learn, NAME.npz in a folder of your own, scikit-learn's fetchers, generated.

`load` looks in this order and downloads nothing unless told to. Generated sets depend on their seed alone; those that
stand in for data that cannot be had carry "stand-in" in their name.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

BUNDLED = ("breast_cancer", "digits", "iris", "wine")
# name: how scikit-learn comes by it, and where else it is to be had
FETCHERS = {
    "covtype": ("fetch_covtype", {}, "UCI's Covertype"),
    "mnist": ("fetch_openml", {"name": "mnist_784", "version": 1, "as_frame": False}, "OpenML's mnist_784"),
    "australian": ("fetch_openml", {"name": "Australian", "version": 4, "as_frame": False},
                   "UCI's Statlog Australian Credit Approval"),
}
ELSEWHERE = {
    "colon": "the colon cancer expression data of Alon and others (1999)",
    "sector": "sector.scale and sector.t.scale of the LIBSVM collection",
    "tinyimagenet": "features computed from Tiny ImageNet of Stanford's CS231n, which doc/experiments.md describes",
}
MNIST_TRAIN = 60_000


class DataNotFound(ValueError):
    """A data set that is not here; the message says in one sentence how to get it."""


@dataclass
class DataSet:
    """Rows and labels, with the original test rows where there is such a split.

    ``y`` is -1/+1 for two classes, 0..K-1 for more. ``note`` says what the set stands in for, "" where it is itself.
    """

    name: str
    X: Any                         # (n, m) array or CSR matrix; the training rows where there is a split
    y: np.ndarray                  # (n,)
    X_test: Any = None
    y_test: np.ndarray | None = None
    note: str = ""

    @property
    def has_split(self) -> bool:
        return self.y_test is not None


def available(name: str, folder: str | os.PathLike[str] | None = None) -> bool:
    """True if `load` would find the set without downloading anything; name and folder as there."""
    try:
        _local(name, folder)
    except DataNotFound:
        return False
    return True


def load(name: str, *, folder: str | os.PathLike[str] | None = None, dtype: Any = None, seed: int = 0,
         download: bool = False) -> DataSet:
    """One data set by name.

    Parameters
    ----------
    name : str
        One of ``BUNDLED`` or ``GENERATED``, or NAME for NAME.npz.
    folder : path, optional
        Where NAME.npz lies; by default the folder that the environment variable CMARGIN_DATA names.
    dtype : optional
        Of X; by default as stored.
    seed : int, default 0
        Of a generated set.
    download : bool, default False
        Let scikit-learn fetch what is not here; it is then kept in scikit-learn's data folder.

    Returns
    -------
    DataSet

    Raises
    ------
    DataNotFound
        Saying in one sentence how to get the set.
    """
    if name in GENERATED:
        data = GENERATED[name](seed)
    else:
        try:
            data = _local(name, folder)
        except DataNotFound:
            if not download or name not in FETCHERS:
                raise
            data = _fetched(name, True)
            _keep(data)
    if dtype is not None:
        data.X = data.X.astype(dtype, copy=False)
        data.X_test = None if data.X_test is None else data.X_test.astype(dtype, copy=False)
    return data


def _local(name, folder):
    """The set from this machine: bundled, generated, or NAME.npz in the folder or among what was fetched."""
    if name in GENERATED:
        return GENERATED[name](0)
    if name in BUNDLED:
        import sklearn.datasets
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        return DataSet(name, X, _codes(y))
    folder = os.environ.get("CMARGIN_DATA") if folder is None else folder
    for place in ([folder] if folder else []) + [_kept()]:
        path = Path(place) / f"{name}.npz"
        if path.is_file():
            return read_npz(path)
    if name == "covtype":              # the one fetcher that can be asked what it has without a network
        try:
            return _fetched(name, False)
        except OSError:
            pass
    raise DataNotFound(_how_to_get(name, folder))


def _how_to_get(name, folder):
    if name not in FETCHERS and name not in ELSEWHERE:
        known = sorted({*BUNDLED, *GENERATED, *FETCHERS, *ELSEWHERE})
        return (f"unknown data set {name!r}: neither {name}.npz in a folder that CMARGIN_DATA names nor one of "
                f"{', '.join(known)}.")
    where = "CMARGIN_DATA names no folder" if not folder else f"there is no {name}.npz in the folder CMARGIN_DATA names"
    if name in FETCHERS:
        function, _, source = FETCHERS[name]
        return (f"{name} is not here: {where}; put {name}.npz ({source}, arrays X and y) there, or fetch it once with "
                f"cmargin.datasets.load({name!r}, download=True), which calls sklearn.datasets.{function}.")
    return f"{name} is not here: {where}; put {name}.npz there, made from {ELSEWHERE[name]}."


def _kept():
    """Folder of what was fetched, inside scikit-learn's; not made by looking."""
    home = os.environ.get("SCIKIT_LEARN_DATA", os.path.join("~", "scikit_learn_data"))
    return Path(home).expanduser() / "cmargin"


def _keep(data):
    _kept().mkdir(parents=True, exist_ok=True)
    if data.has_split:
        arrays = {"X_train": data.X, "y_train": data.y, "X_test": data.X_test, "y_test": data.y_test}
    else:
        arrays = {"X": data.X, "y": data.y}
    np.savez_compressed(_kept() / f"{data.name}.npz", **arrays)


def _fetched(name, download):
    import sklearn.datasets
    function, arguments, _ = FETCHERS[name]
    if function == "fetch_covtype":
        arguments = {"download_if_missing": download}
    X, y = getattr(sklearn.datasets, function)(return_X_y=True, **arguments)
    y = _codes(y)
    if name == "mnist":
        return DataSet(name, X[:MNIST_TRAIN], y[:MNIST_TRAIN], X[MNIST_TRAIN:], y[MNIST_TRAIN:])
    return DataSet(name, X, y)


def read_npz(path):
    """One file: arrays X and y, or data, indices, indptr, shape and y for CSR; with a split all end in _train, _test.

    Returns a DataSet named as the file is. Raises ValueError for other contents, OSError where it cannot be read.
    """
    try:
        with np.load(path) as stored:
            suffixes = ("_train", "_test") if "y_train" in stored else ("",)
            arrays = [array for suffix in suffixes for array in (_matrix(stored, suffix), stored["y" + suffix])]
    except OSError:
        raise
    except Exception as error:             # zipfile, zlib, struct and NumPy each raise their own where bytes are wrong
        raise ValueError(f"{path} holds no data set, or is damaged: {error}") from error
    return DataSet(Path(path).stem, *arrays)


def _matrix(stored, suffix):
    if "X" + suffix in stored:
        return stored["X" + suffix]
    data, indices, indptr = (stored[part + suffix] for part in ("data", "indices", "indptr"))
    return sp.csr_matrix((data, indices.astype(np.int32), indptr), shape=tuple(stored["shape" + suffix]))


def _codes(y):
    """Labels as 0..K-1, or -1/+1 for two classes."""
    classes, codes = np.unique(y, return_inverse=True)
    return np.where(codes == 1, 1, -1) if len(classes) == 2 else codes.astype(np.int64)


# ---------------------------------------------------------------- the synthetic sets of the papers

CENTROID_SCALE = 1.0      # the paper scales its centroids by a factor it does not give; at 1 its accuracies come out


def two_centroids(n, m, seed):
    """SmSVM section 4.1.4: two centroids of N(0, 1) components, unit normal rows around each, classes of equal size.

    Returns X (n, m) float64 and y (n,) of -1 and 1; the same for the same ``seed``.
    """
    rng = np.random.default_rng([seed, n, m])
    centroids = CENTROID_SCALE * rng.standard_normal((2, m))
    y = np.where(np.arange(n) % 2, 1, -1)
    return centroids[(y + 1) // 2] + rng.standard_normal((n, m)), y


def tall(seed=0):
    """SmSVM's synthetic tall set, 10,000 x 50."""
    return DataSet("tall", *two_centroids(10_000, 50, seed))


def wide(seed=0):
    """SmSVM's synthetic wide set, 100 x 2,500."""
    return DataSet("wide", *two_centroids(100, 2500, seed))


def protein_stand_in(seed=0):
    """For PROTEIN of margin pursuit (KDD Cup 2004; 74 columns, 99 % not zero), which is not to be had freely.

    20 factors, half of them heavy-tailed (Student, 3 degrees of freedom), mixed into 74 correlated columns; the label
    is a noisy linear threshold of the factors.
    """
    rng = np.random.default_rng([seed, 74])
    n, m, factors = 6000, 74, 20
    F = rng.standard_normal((n, factors))
    F[:, ::2] = rng.standard_t(3, (n, factors // 2))
    X = F @ rng.standard_normal((factors, m)) + 0.5 * rng.standard_normal((n, m))
    X[rng.random((n, m)) < 0.01] = 0.0
    score = F @ rng.standard_normal(factors)
    y = _noisy_labels(score, 0.5, rng)
    return DataSet("protein-stand-in", X, y, note="generated, stands in for PROTEIN (KDD Cup 2004)")


def sido_stand_in(seed=0):
    """For SIDO of margin pursuit (NIPS 2008 causality challenge; 4,932 binary columns, 11 % ones), not free either.

    Each column is one with log-odds that 10 factors shift; the label is a noisy linear threshold of the factors.
    """
    rng = np.random.default_rng([seed, 4932])
    n, m, factors = 1500, 4932, 10
    F = rng.standard_normal((n, factors))
    odds = F @ rng.standard_normal((factors, m)) * 0.5 - 2.7      # about 11 % ones
    X = (rng.random((n, m)) < 1 / (1 + np.exp(-odds))).astype(np.float32)
    y = _noisy_labels(F @ rng.standard_normal(factors), 0.3, rng)
    return DataSet("sido-stand-in", X, y, note="generated, stands in for SIDO (NIPS 2008 causality challenge)")


def _noisy_labels(score, noise, rng):
    """-1/+1 by the sign of a score standardised and blurred by logistic noise."""
    return np.where(score / score.std() + rng.logistic(scale=noise, size=len(score)) > 0, 1, -1)


GENERATED = {"tall": tall, "wide": wide, "protein-stand-in": protein_stand_in, "sido-stand-in": sido_stand_in}
