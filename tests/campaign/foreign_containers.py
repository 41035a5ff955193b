"""Containers of other libraries, those that are installed, as more entries of the tables in `hostile_input`."""

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

REFUSE, SAME, EITHER = "refuse", "same", "either"
WORDS = np.array(["ash", "beech", "elm", "oak"])


class Lazy:
    """What has no rows until somebody calls `collect`."""

    def collect(self):
        return None


class Sparse:
    """An array of a library whose arrays NumPy must not make dense."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not to be made dense")

    def to_scipy_sparse(self):
        return None


class OfItsOwn:
    """A container with `__array__` and nothing else."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array.astype(dtype or self.array.dtype)


def of(library, name):
    return getattr(import_module(library), name)


def columns(X):
    return {f"x{j}": column for j, column in enumerate(X.T)}


def dates(X):
    days = np.datetime64("2026-01-01", "us") + np.arange(len(X)).astype("timedelta64[s]")
    return {"day": days, **columns(X)}


def pandas_column(y, dtype, hole=False):
    column = of("pandas", "Series")(y).astype(dtype)
    if hole:
        column[len(y) // 2] = None
    return column


def hidden(a, hide=True):
    mask = np.zeros(np.shape(a), bool)
    mask[len(mask) // 2] = hide
    return np.ma.masked_array(a, mask=mask)


def with_hole(labels, hole):
    return [*labels[:1], hole, *labels[2:]]


FRAMES = {"pandas": "DataFrame", "pyarrow": "table", "polars": "DataFrame"}
COLUMNS = {"pandas": "Series", "pyarrow": "array", "polars": "Series"}
THERE = [library for library in FRAMES if find_spec(library)]
NULLABLE = [*(["Int64"] if "pandas" in THERE else []),
            *(["int64[pyarrow]"] if {"pandas", "pyarrow"} <= set(THERE) else [])]


def column_with_hole(library, values):
    return of(library, COLUMNS[library])(with_hole(values, None))


MATRICES = {
    "masked": (lambda X, rng: hidden(X), REFUSE),
    "masked, nothing hidden": (lambda X, rng: hidden(X, False), SAME),
    "dates": (lambda X, rng: X.astype("datetime64[s]"), REFUSE),
    "durations": (lambda X, rng: X.astype("timedelta64[s]"), REFUSE),
    "documents": (lambda X, rng: ["the cat sat"] * len(X), REFUSE),
    "array of documents": (lambda X, rng: np.array(["the cat sat"] * len(X)), REFUSE),
    "lazy": (lambda X, rng: Lazy(), REFUSE),
    "sparse of another library": (lambda X, rng: Sparse(), REFUSE),
    "with __array__": (lambda X, rng: OfItsOwn(X), SAME),
    "dok": (lambda X, rng: sp.dok_array(X), SAME),
    "lil": (lambda X, rng: sp.lil_matrix(X), SAME),
    **{f"frame of {library}": (lambda X, rng, library=library: of(library, FRAMES[library])(columns(X)), SAME)
       for library in THERE},
    **{f"dates of {library}": (lambda X, rng, library=library: of(library, FRAMES[library])(dates(X)), REFUSE)
       for library in THERE},
    **{f"lists of {library}": (lambda X, rng, library=library: of(library, COLUMNS[library])(X.tolist()), REFUSE)
       for library in THERE},
    **({"nullable frame": (lambda X, rng: of("pandas", "DataFrame")(X.astype(float)).astype("Float64"), SAME)}
       if "pandas" in THERE else {}),
}
LABELS = {
    "masked": (lambda y, rng: hidden(y), REFUSE),
    "masked, nothing hidden": (lambda y, rng: hidden(y, False), SAME),
    "lazy": (lambda y, rng: Lazy(), REFUSE),
    "texts with None": (lambda y, rng: with_hole(WORDS[y].tolist(), None), REFUSE),
    "texts with NaN": (lambda y, rng: with_hole(WORDS[y].tolist(), np.nan), REFUSE),
    "numbers and texts": (lambda y, rng: with_hole(y.tolist(), "elm"), REFUSE),
    "objects": (lambda y, rng: y.astype(object), SAME),
    "with __array__": (lambda y, rng: OfItsOwn(y), SAME),
    "dok indicator": (lambda y, rng: sp.dok_array(rng.integers(0, 2, (len(y), 3))), EITHER),
    "lil indicator": (lambda y, rng: sp.lil_matrix(rng.integers(0, 2, (len(y), 3))), EITHER),
    **{f"column of {library}": (lambda y, rng, library=library: of(library, COLUMNS[library])(y), SAME)
       for library in THERE},
    **{f"hole of {library}": (lambda y, rng, library=library: column_with_hole(library, y.tolist()), REFUSE)
       for library in THERE},
    **{dtype: (lambda y, rng, dtype=dtype: pandas_column(y, dtype), SAME) for dtype in NULLABLE},
    **{f"{dtype} with a hole": (lambda y, rng, dtype=dtype: pandas_column(y, dtype, True), REFUSE)
       for dtype in NULLABLE},
    **{f"texts of {dtype} with a hole": (lambda y, rng, dtype=dtype: pandas_column(WORDS[y], dtype, True), REFUSE)
       for dtype in (["object", "string", "category"] if "pandas" in THERE else [])},
}
WEIGHTS = {
    "masked": (lambda n, rng: hidden(np.ones(n)), REFUSE),
    "masked, nothing hidden": (lambda n, rng: hidden(np.ones(n), False), EITHER),
    "lazy": (lambda n, rng: Lazy(), REFUSE),
    **{f"hole of {library}": (lambda n, rng, library=library: column_with_hole(library, [1.0] * n), REFUSE)
       for library in THERE},
}
