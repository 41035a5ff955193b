"""Sparse matrices whose arrays do not fit together, shown to every method of every estimator.

`main` is for a process of its own, as what is not refused may crash it. It prints one line for every case that was
not answered by a ValueError with a sentence.
"""

import warnings

import numpy as np
import scipy.sparse as sp
from estimators import quick_estimators
from sklearn.exceptions import ConvergenceWarning

N_ROWS, N_FEATURES = 24, 6
METHODS = ("fit", "partial_fit", "predict", "decision_function", "scores", "predict_proba", "predict_log_proba",
           "posterior", "predict_top_k", "score")


def _put(name, entry, value):
    def change(X):
        array = getattr(X, name).copy()
        array[entry] = value
        setattr(X, name, array)
    return change


def _become(name, function):
    return lambda X: setattr(X, name, function(getattr(X, name)))


COMPRESSED = {
    "an index of one too many": lambda X: _put("indices", 5, {"csr": N_FEATURES, "csc": N_ROWS, "bsr": 2}[X.format])(X),
    "an index of -1": _put("indices", 5, -1),
    "a huge index": _put("indices", 0, 2**31 - 1),
    "the lowest index": _put("indices", -1, -2**31),
    "indptr from 1": _put("indptr", 0, 1),
    "indptr from -1": _put("indptr", 0, -1),
    "indptr beyond the data": _put("indptr", -1, 10**6),
    "a huge inner indptr": _put("indptr", 3, 2**31 - 1),
    "a negative inner indptr": _put("indptr", 3, -2**31),
    "a descent": _put("indptr", 4, 0),
    "a short indptr": _become("indptr", lambda a: a[:-1]),
    "a long indptr": _become("indptr", lambda a: np.append(a, a[-1])),
    "no indptr": _become("indptr", lambda a: a[:0]),
    "fewer indices": _become("indices", lambda a: a[:-1]),
    "fewer values": _become("data", lambda a: a[:-1]),
    "more values": _become("data", lambda a: np.concatenate([a, a])),
    "float indices": _become("indices", lambda a: a.astype(float)),
    "float indptr": _become("indptr", lambda a: a.astype(float)),
    "short indices": _become("indices", lambda a: a.astype(np.int16)),
    "unsigned indices": _become("indices", lambda a: a.astype(np.uint64)),
    "foreign byte order": _become("indptr", lambda a: a.astype(a.dtype.newbyteorder())),
    "indices of two dimensions": _become("indices", lambda a: a[None]),
    "a list for indices": _become("indices", lambda a: a.tolist()),
    "a list for data": _become("data", lambda a: a.tolist()),
    "None for indptr": _become("indptr", lambda a: None),
}
COORDINATES = {
    "a row of one too many": lambda X: X.coords[0].__setitem__(2, X.shape[0]),
    "a column of one too many": lambda X: X.coords[1].__setitem__(2, X.shape[1]),
    "a row of -1": lambda X: X.coords[0].__setitem__(2, -1),
    "a column of -1": lambda X: X.coords[1].__setitem__(2, -1),
    "fewer rows": lambda X: setattr(X, "coords", (X.coords[0][:-1], X.coords[1])),
    "three coordinates": lambda X: setattr(X, "coords", (*X.coords, X.coords[1])),
    "fewer values": _become("data", lambda a: a[:-1]),
    "float columns": lambda X: setattr(X, "coords", (X.coords[0], X.coords[1].astype(float))),
}
DIAGONALS = {
    "fewer offsets": _become("offsets", lambda a: a[:-1]),
    "more offsets": _become("offsets", lambda a: np.append(a, 10**9)),
    "an offset twice": _put("offsets", 1, 0),
    "float offsets": _become("offsets", lambda a: a.astype(float)),
    "data of one dimension": _become("data", lambda a: a.ravel()),
}
LISTS = {
    "a column of one too many": lambda X: X.rows[2].__setitem__(0, X.shape[1]),
    "a column of -1": lambda X: X.rows[2].__setitem__(0, -1),
    "a column beyond 64 bits": lambda X: X.rows[2].__setitem__(0, 2**70),
    "a column that is a word": lambda X: X.rows[2].__setitem__(0, "a"),
    "more values than columns": lambda X: X.data[2].append(1.0),
    "more columns than values": lambda X: X.rows[2].append(1),
    "None for a row": lambda X: X.rows.__setitem__(2, None),
    "fewer rows": _become("rows", lambda a: a[:-1]),
}
DICTIONARY = {
    "a row of one too many": lambda X: X._dict.__setitem__((X.shape[0], 0), 1.0),
    "a column of -1": lambda X: X._dict.__setitem__((0, -1), 1.0),
    "a key of one number": lambda X: X._dict.__setitem__(3, 1.0),
    "a key of words": lambda X: X._dict.__setitem__(("a", "b"), 1.0),
}
FAULTS = {"csr": COMPRESSED, "csc": COMPRESSED, "bsr": COMPRESSED, "coo": COORDINATES, "dia": DIAGONALS, "lil": LISTS,
          "dok": DICTIONARY}


def sound_rows(seed=0):
    """Rows of two classes and their labels."""
    rng = np.random.default_rng(seed)
    dense = rng.standard_normal((N_ROWS, N_FEATURES)) * (rng.random((N_ROWS, N_FEATURES)) < 0.7)
    dense[0] = 1.0
    return dense, np.arange(N_ROWS) % 2


def in_format(dense, name):
    """A sparse matrix of a format; BSR in blocks of 2 x 3, whose indices the faults of CSR then break too."""
    return sp.bsr_array(dense, blocksize=(2, 3)) if name == "bsr" else sp.coo_array(dense).asformat(name)


def broken(dense, name, fault):
    X = in_format(dense, name)
    FAULTS[name][fault](X)
    return X


def cases():
    """Format and name of every fault."""
    return [(name, fault) for name, faults in FAULTS.items() for fault in faults]


def answer(call):
    """None where ``call`` ends as it must, else what it did instead."""
    try:
        call()
    except ValueError as error:
        return None if len(str(error).split()) > 4 else f"ValueError without a sentence: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    dense, y = sound_rows()
    for estimator in quick_estimators():
        estimator.fit(dense, y)
        for name, fault in cases():
            for method in METHODS:
                if not hasattr(estimator, method):
                    continue
                X = broken(dense, name, fault)
                rest = {"fit": (y,), "partial_fit": (y,), "score": (y,), "predict_top_k": (1,)}.get(method, ())
                got = answer(lambda: getattr(estimator, method)(X, *rest))  # noqa: B023
                if got is not None:
                    print(f"{type(estimator).__name__}.{method}, {fault} ({name}): {got}")
        labels = broken(np.column_stack([y, 1 - y, y]), "csr", "a huge inner indptr")
        if (got := answer(lambda: estimator.fit(dense, labels))) is not None:  # noqa: B023
            print(f"{type(estimator).__name__}.fit, broken labels: {got}")
        print(type(estimator).__name__, "done", flush=True)
