"""Data of the races: scikit-learn's bundled sets, made ones, and NAME.npz in a folder.

A file holds dense `X`, `y` or CSR `data`, `indices`, `indptr`, `shape`, `y`, every key with the suffixes `_train` and
`_test` where a split exists.
"""

import os
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np
import scipy.sparse as sp

from cmargin.datasets import GENERATED
from race.peer import ELASTIC_NET, LASSO, RIDGE

BUNDLED = ("breast_cancer", "digits", "iris", "wine")


class LeftOut(Exception):
    """A data set, or a class of one, with which there can be no race: the others go on without it."""


class Split(NamedTuple):
    X: object
    y: np.ndarray
    X_test: object = None
    y_test: np.ndarray | None = None


class Problem(NamedTuple):
    """Minimise (l2/2) |w|^2 + l1 |w|_1 + mean loss; an intercept is the last column of X, penalised like the rest."""
    X: object
    y: np.ndarray              # -1 or +1
    l2: float
    l1: float = 0.0
    loss: str = "hinge"        # or "squared_hinge", "logistic"
    seed: int = 0              # of whatever a solver draws

    @property
    def C(self):
        """What LIBLINEAR's relatives multiply the sum of the losses by."""
        return 1 / ((self.l1 + self.l2) * len(self.y))

    @property
    def l1_ratio(self):
        """The part of the penalty that is l1, as elastic nets have it."""
        return self.l1 / (self.l1 + self.l2)

    @property
    def penalty(self):
        """Which of `race.peer`'s."""
        return ELASTIC_NET if self.l1 and self.l2 else LASSO if self.l1 else RIDGE


def sparse_rows(seed=0):
    """50,000 x 300 rows of 0/1 with 12 entries or a few less, 3 % of them positive by a noisy plane."""
    n, m, entries = 50_000, 300, 12
    rng = np.random.default_rng([seed, n, m])
    X = sp.coo_matrix((np.ones(n * entries), (np.repeat(np.arange(n), entries), rng.integers(0, m, n * entries))),
                      shape=(n, m)).tocsr()
    X.data[:] = 1.0                            # a column that was drawn twice is there once
    score = X @ rng.standard_normal(m) + rng.logistic(size=n)
    return Split(X, np.where(score > np.quantile(score, 0.97), 1, -1))


SYNTHETIC = {"tall": GENERATED["tall"], "wide": GENERATED["wide"], "sparse": sparse_rows}


def read(name, folder=None, seed=0):
    """The set as stored, X a fresh array or CSR matrix; test rows where there is a split. ``seed``: of a made set."""
    if name in SYNTHETIC:
        made = SYNTHETIC[name](seed)
        return Split(made.X, made.y)
    if name in BUNDLED:
        import sklearn.datasets
        return Split(*getattr(sklearn.datasets, f"load_{name}")(return_X_y=True))
    if folder is None:
        raise LeftOut(f"{name!r} is not bundled; set CMARGIN_DATA to the folder that holds {name}.npz")
    path = os.path.join(folder, f"{name}.npz")
    if not os.path.isfile(path):
        raise LeftOut(f"there is no {name}.npz in CMARGIN_DATA, and {name!r} is not bundled")
    try:
        with np.load(path) as stored:
            suffixes = ("_train", "_test") if "y_train" in stored else ("",)
            return Split(*(part for s in suffixes for part in (_matrix(stored, s), stored["y" + s])))
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise LeftOut(f"{name}.npz cannot be read: {error}") from error


def _matrix(stored, suffix):
    if "X" + suffix in stored:
        return stored["X" + suffix]
    parts = (stored["data" + suffix], stored["indices" + suffix].astype(np.int32), stored["indptr" + suffix])
    return sp.csr_matrix(parts, shape=tuple(stored["shape" + suffix]))


def prepare(X, intercept=True):
    """float64 for an objective's race: dense columns standardised, sparse ones as stored, a column of ones appended.

    Sparse columns are not centred, which would fill them, nor scaled: text comes with its weights, and a word that
    occurs in one row only would weigh as much as any other.
    """
    if sp.issparse(X):
        X = X.astype(float)
        return sp.csr_matrix(sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")) if intercept else X.tocsr()
    prepared = np.ones((X.shape[0], X.shape[1] + intercept))
    scaled = prepared[:, : X.shape[1]]
    scaled[:] = X
    scaled -= scaled.mean(axis=0)
    deviation = scaled.std(axis=0)
    scaled /= np.where(deviation > 0, deviation, 1.0)
    return prepared


def codes(y, only=None):
    """(class, y in -1, +1) of every binary problem: one for two classes, else each class against the rest."""
    classes = np.unique(y)
    names = [str(c) for c in classes]
    if only is not None and only not in names:
        raise LeftOut(f"there is no class {only!r}; the classes are {', '.join(names[:12])}"
                      + (", ..." if len(names) > 12 else ""))
    for c, name in zip(classes, names, strict=True):
        if name == only or (only is None and (len(classes) > 2 or c == classes[-1])):
            yield name, np.where(y == c, 1.0, -1.0)
