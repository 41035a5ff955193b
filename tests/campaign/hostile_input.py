"""Input that no estimator asked for. Each table: name -> (what to make of the good input, what must come of it).

REFUSE: ValueError or TypeError. SAME: the answer that the plain input has. EITHER: a refusal, or an answer without NaN.
"""

from types import NoneType

import numpy as np
import scipy.sparse as sp

from . import foreign_containers
from .foreign_containers import EITHER, REFUSE, SAME


def put(array, rng, value):
    """A copy with ``value`` in one random place."""
    array = np.array(array)
    array[tuple(rng.integers(size) for size in array.shape)] = value
    return array


def swapped(X):
    return X.astype(X.dtype.newbyteorder())


def every_other(X):
    wide = np.full((2 * X.shape[0], 2 * X.shape[1]), np.nan, X.dtype)
    wide[::2, ::2] = X
    return wide[::2, ::2]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def with_none(X):
    X = X.astype(object)
    X[0, 0] = None
    return X


def one_column(X, value):
    X = X.astype(float)
    X[:, 0] *= value
    return X


def long_indices(X):
    X = sp.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def unsorted(X):
    X = sp.csr_matrix(X)
    for lo, hi in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[lo:hi], X.data[lo:hi] = X.indices[lo:hi][::-1].copy(), X.data[lo:hi][::-1].copy()
    X.has_sorted_indices = False
    return X


def halves(X):
    """Every entry as two halves in the same place."""
    X = sp.csr_matrix(X)
    out = sp.csr_matrix((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    out.has_canonical_format = False
    return out


# name -> (function of good dense X and rng, expectation)
MATRICES = {
    "nan": (lambda X, rng: put(X, rng, np.nan), REFUSE),
    "inf": (lambda X, rng: put(X, rng, np.inf), REFUSE),
    "-inf": (lambda X, rng: put(X, rng, -np.inf), REFUSE),
    "all nan": (lambda X, rng: X * np.nan, REFUSE),
    "csr nan": (lambda X, rng: sp.csr_matrix(put(X, rng, np.nan)), REFUSE),
    "csr inf": (lambda X, rng: sp.csr_matrix(put(X, rng, np.inf)), REFUSE),
    "no rows": (lambda X, rng: X[:0], REFUSE),
    "no columns": (lambda X, rng: X[:, :0], REFUSE),
    "csr no rows": (lambda X, rng: sp.csr_matrix(X[:0]), REFUSE),
    "csr no columns": (lambda X, rng: sp.csr_matrix(X[:, :0]), REFUSE),
    "vector": (lambda X, rng: X[:, 0], REFUSE),
    "cube": (lambda X, rng: X[:, :, None], REFUSE),
    "number": (lambda X, rng: 3.0, REFUSE),
    "none": (lambda X, rng: None, REFUSE),
    "words": (lambda X, rng: np.full(X.shape, "word"), REFUSE),
    "complex": (lambda X, rng: X + 1j, REFUSE),
    "object with none": (lambda X, rng: with_none(X), REFUSE),
    "object with a dict": (lambda X, rng: put(X.astype(object), rng, {}), REFUSE),
    "ragged": (lambda X, rng: [[1.0], *X[1:].tolist()], REFUSE),
    "dict": (lambda X, rng: {"a": 1}, REFUSE),
    "one row less": (lambda X, rng: X[1:], REFUSE),
    "one row": (lambda X, rng: X[:1], REFUSE),
    "3e38 single": (lambda X, rng: np.full(X.shape, 3e38, np.float32) * np.sign(X).astype("f"), EITHER),
    "1e-40 single": (lambda X, rng: (X * 1e-40).astype("f"), EITHER),
    "1e20 single": (lambda X, rng: (X * 1e20).astype("f"), EITHER),
    "1e155": (lambda X, rng: X.astype(float) * 1e155, EITHER),
    "1e200": (lambda X, rng: X.astype(float) * 1e200, EITHER),
    "1e307": (lambda X, rng: X.astype(float) * 1e307, EITHER),
    "1e-310": (lambda X, rng: X.astype(float) * 1e-310, EITHER),
    "one column 1e155": (lambda X, rng: one_column(X, 1e155), EITHER),
    "one column 1e300": (lambda X, rng: one_column(X, 1e300), EITHER),
    "one entry 1e308": (lambda X, rng: put(X.astype(float), rng, 1e308), EITHER),
    "one entry -1e308": (lambda X, rng: put(X.astype(float), rng, -1e308), EITHER),
    "csr 1e155": (lambda X, rng: sp.csr_matrix(X.astype(float) * 1e155), EITHER),
    "1e-320": (lambda X, rng: np.full(X.shape, 1e-320), EITHER),
    "zeros": (lambda X, rng: X * 0, EITHER),
    "csr zeros": (lambda X, rng: sp.csr_matrix(X.shape, dtype=X.dtype), EITHER),
    "broadcast": (lambda X, rng: np.broadcast_to(X[0], X.shape), EITHER),
    "broadcast number": (lambda X, rng: np.broadcast_to(X[0, 0], X.shape), EITHER),
    "truth values": (lambda X, rng: X > 0, EITHER),
    "small integers": (lambda X, rng: np.clip(X * 10, -100, 100).astype(np.int8), EITHER),
    "other byte order": (lambda X, rng: swapped(X), SAME),
    "negative strides": (lambda X, rng: X[::-1, ::-1].copy()[::-1, ::-1], SAME),
    "strided": (lambda X, rng: every_other(X), SAME),
    "fortran": (lambda X, rng: np.asfortranarray(X), SAME),
    "read-only": (lambda X, rng: read_only(X), SAME),
    "objects": (lambda X, rng: X.astype(object), SAME),
    "list": (lambda X, rng: X.tolist(), SAME),
    "csr": (lambda X, rng: sp.csr_matrix(X), SAME),
    "csr array": (lambda X, rng: sp.csr_array(X), SAME),
    "csr long indices": (lambda X, rng: long_indices(X), SAME),
    "csr unsorted": (lambda X, rng: unsorted(X), SAME),
    "csr halves": (lambda X, rng: halves(X), SAME),
    "csc": (lambda X, rng: sp.csc_matrix(X), SAME),
    "coo": (lambda X, rng: sp.coo_matrix(X), SAME),
    **foreign_containers.MATRICES,
}


# ------------------------------------------------------------ CSR that lies about itself

def set_index(value):
    def change(X, rng):
        X.indices[rng.integers(len(X.indices))] = value
    return change


def set_start(place, value):
    def change(X, rng):
        X.indptr[{"first": 0, "inner": rng.integers(1, len(X.indptr) - 1), "last": -1}[place]] = value
    return change


def descending(X, rng):
    X.indptr[1:-1] = X.indptr[1:-1][::-1].copy() + 1


def cut(name, rows):
    def change(X, rng):
        setattr(X, name, getattr(X, name)[:rows])
    return change


def float_indices(X, rng):
    X.indices = X.indices.astype(float)


def more_rows(X, rng):
    X._shape = (X.shape[0] + 5, X.shape[1])


def fewer_columns(X, rng):
    X._shape = (X.shape[0], X.shape[1] - 1)


LIES = {
    "index p": lambda X, rng: set_index(X.shape[1])(X, rng), "index -1": set_index(-1),
    "index 2^31-1": set_index(2**31 - 1), "index -2^31": set_index(-2**31),
    "index p + 1000": lambda X, rng: set_index(X.shape[1] + 1000)(X, rng),
    "first start 3": set_start("first", 3), "first start -5": set_start("first", -5),
    "inner start huge": set_start("inner", 2**31 - 1), "inner start negative": set_start("inner", -7),
    "last start too large": lambda X, rng: set_start("last", X.nnz + 1000)(X, rng),
    "last start 0": set_start("last", 0), "last start negative": set_start("last", -1),
    "descending starts": descending, "indices cut": cut("indices", 3), "data cut": cut("data", 3),
    "starts cut": cut("indptr", -1), "indices of floats": float_indices, "more rows": more_rows,
    "a column less": fewer_columns,
}


def lying_csr(X, name, rng):
    """CSR whose structure is not what it says; flags that spare it a look are set now and then."""
    X = sp.csr_matrix(X, copy=True)
    if rng.random() < 0.5:
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    if rng.random() < 0.5:
        X.has_canonical_format = True
    LIES[name](X, rng)
    return X


# ------------------------------------------------------------ labels, weights, parameters

LABELS = {
    "continuous": (lambda y, rng: y + rng.random(len(y)), REFUSE),
    "one class": (lambda y, rng: np.zeros_like(y), REFUSE),
    "nan": (lambda y, rng: put(y.astype(float), rng, np.nan), REFUSE),
    "inf": (lambda y, rng: put(y.astype(float), rng, np.inf), REFUSE),
    "none": (lambda y, rng: None, REFUSE),
    "objects with none": (lambda y, rng: put(y.astype(object), rng, None), REFUSE),
    "mixed objects": (lambda y, rng: put(y.astype(object), rng, "word"), REFUSE),
    "too short": (lambda y, rng: y[1:], REFUSE),
    "too long": (lambda y, rng: np.append(y, y[0]), REFUSE),
    "empty": (lambda y, rng: y[:0], REFUSE),
    "number": (lambda y, rng: 1, REFUSE),
    "complex": (lambda y, rng: y + 1j, REFUSE),
    "several outputs": (lambda y, rng: np.column_stack([y + 2, y + 5]), REFUSE),
    "cube": (lambda y, rng: y[:, None, None], REFUSE),
    "indicator without columns": (lambda y, rng: np.zeros((len(y), 0), int), REFUSE),
    "indicator of zeros": (lambda y, rng: np.zeros((len(y), 3), int), EITHER),
    "indicator": (lambda y, rng: rng.integers(0, 2, (len(y), 3)), EITHER),
    "sparse indicator": (lambda y, rng: sp.csr_matrix(rng.integers(0, 2, (len(y), 3))), EITHER),
    "column": (lambda y, rng: y[:, None], EITHER),
    "every row its own": (lambda y, rng: np.arange(len(y)), EITHER),
    "truth values": (lambda y, rng: y > 0, EITHER),
    "huge": (lambda y, rng: y.astype(np.uint64) + np.uint64(2**63), EITHER),
    "dates": (lambda y, rng: y.astype("datetime64[D]"), EITHER),
    "bytes": (lambda y, rng: np.where(y > 0, b"a", b"b"), EITHER),
    "words": (lambda y, rng: np.array(["a", "b", "c", "d"])[y], EITHER),
    "list": (lambda y, rng: y.tolist(), SAME),
    "read-only": (lambda y, rng: read_only(y), SAME),
    "negative strides": (lambda y, rng: y[::-1].copy()[::-1], SAME),
    "other byte order": (lambda y, rng: swapped(y), SAME),
    **foreign_containers.LABELS,
}
WEIGHTS = {
    "nan": (lambda n, rng: put(np.ones(n), rng, np.nan), REFUSE),
    "inf": (lambda n, rng: put(np.ones(n), rng, np.inf), REFUSE),
    "negative": (lambda n, rng: put(np.ones(n), rng, -1.0), REFUSE),
    "all negative": (lambda n, rng: -np.ones(n), REFUSE),
    "zeros": (lambda n, rng: np.zeros(n), REFUSE),
    "too short": (lambda n, rng: np.ones(n - 1), REFUSE),
    "two columns": (lambda n, rng: np.ones((n, 2)), REFUSE),
    "words": (lambda n, rng: np.full(n, "word"), REFUSE),
    "objects": (lambda n, rng: np.array([None] * n), REFUSE),
    "complex": (lambda n, rng: np.ones(n) + 1j, REFUSE),
    "5e-324": (lambda n, rng: np.full(n, 5e-324), EITHER),
    "one 5e-324": (lambda n, rng: put(np.ones(n), rng, 5e-324), EITHER),
    "1e308": (lambda n, rng: np.full(n, 1e308), EITHER),
    "1e308 and 1e-308": (lambda n, rng: np.where(rng.random(n) < 0.5, 1e308, 1e-308), EITHER),
    "one row": (lambda n, rng: put(np.zeros(n), rng, 1.0), EITHER),
    "number": (lambda n, rng: 2.0, EITHER),
    "ones": (lambda n, rng: np.ones(n), EITHER),
    "integers": (lambda n, rng: rng.integers(1, 3, n), EITHER),
    "ratio 1e16": (lambda n, rng: 10**rng.uniform(-8, 8, n), EITHER),
    **foreign_containers.WEIGHTS,
}
NUMBERS = [0, -1, -1.5, 5e-324, 1e-300, 1e300, 1.7e308, np.nan, np.inf, -np.inf, 2.5, 10**400, True, np.float32(0.5)]
OBJECTS = ["no such", "", b"x", [], [1.0], {}, object(), 1j, np.ones(2), np.nan, None, str, lambda *_: False]
NEVER = ("no such", "", b"x", 1j)      # no parameter takes these, but for names of files


def parameter_value(rng, name, default):
    """A value, and what must come of it."""
    some = NUMBERS if isinstance(default, (int, float, NoneType)) and rng.random() < 0.7 else OBJECTS
    value = some[rng.integers(len(some))]
    wrong = any(type(value) is type(no) and value == no for no in NEVER)
    not_a_number = isinstance(default, (int, float, NoneType)) and isinstance(value, float) and np.isnan(value)
    a_file = name == "checkpoint" and isinstance(value, str)
    return value, REFUSE if (wrong and not a_file) or not_a_number else EITHER
