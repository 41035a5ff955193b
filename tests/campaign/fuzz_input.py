"""Arrays of every shape, type, layout and content, from draws: a random number generator's, or hypothesis's."""

from random import Random

import numpy as np
import scipy.sparse as sp

LENGTHS = (0, 1, 1, 2, 2, 3, 3, 5, 5, 8, 13)
SPECIAL = (np.nan, np.inf, -np.inf, 5e-324, -1e-310, 1.7976931348623157e308, -1.7e308, 1e155, 1e-155, 3.4e38, 1e-45,
           -0.0, 0.0, 1.0, -1.0, 0.5, 1 + 2**-52, -2.0**-1074, 2.0**63, 1e16)
FLOATS = ("f8", "f8", "f8", "f4", "f4", ">f8", ">f4")
OTHERS = ("i8", "i4", "u1", "i1", "u8", "?", "f2", "g", "c16", "O", "U3", "S2", "M8[D]")
CONTENTS = ("normal", "normal", "normal", "unit", "unit", "whole", "zeros", "one number", "huge", "tiny", "ratios")
LAYOUTS = ("C", "C", "C", "F", "reversed", "strided", "read-only", "unaligned", "repeated")
NUMBERS = (0, 1, -1, 2, 0.5, 1.0, 0.05, 5e-324, 1e-300, 1e-8, 1e8, 1e300, 1.7e308, np.nan, np.inf, -np.inf, 2.5,
           10**400, -10**400, True, False, np.float32(0.5), np.float64(1), np.int8(3), np.int64(2), 2**62)
OBJECTS = (None, "no such", "", b"x", [], [1.0], {}, (), 1j, object(), np.ones(2), np.array(1.0), np.array("a"), str,
           np.datetime64("2020-01-01"), range(3), "1")


class Draw:
    """Choices by numbers below a bound; whoever shrinks a failure makes them smaller."""

    def __init__(self, below):
        self.below = below

    @classmethod
    def of_seed(cls, seed):
        return cls(Random(seed).randrange)

    def pick(self, choices):
        return choices[self.below(len(choices))]

    def once_in(self, n):
        return self.below(n) == n - 1

    def generator(self):
        """NumPy's, for what is drawn by the array."""
        return np.random.default_rng(self.below(1 << 20))


def number(draw):
    """What a parameter that is a number may be given."""
    return draw.pick(OBJECTS) if draw.once_in(6) else draw.pick(NUMBERS)


def likely(draw, good):
    """One of ``good``, mostly, else a number or an object."""
    return draw.pick(good) if draw.below(8) else number(draw)


def put(array, rng, value):
    """A copy with ``value`` in one random place."""
    array = np.array(array)
    array[tuple(rng.integers(size) for size in array.shape)] = value
    return array


def values(draw, shape, contents=CONTENTS):
    """float64 numbers of a kind, with a few special ones among them in every fourth array."""
    rng, kind = draw.generator(), draw.pick(contents)
    if kind == "unit":
        out = rng.random(shape)
    elif kind == "whole":
        out = rng.integers(-3, 4, shape).astype(float)
    elif kind in ("zeros", "one number"):
        out = np.full(shape, 0.0 if kind == "zeros" else draw.pick(SPECIAL))
    else:
        out = rng.standard_normal(shape)
        out *= {"huge": 1e307, "tiny": 1e-310}.get(kind, 1.0)
        if kind == "ratios":
            out *= 10.0 ** rng.integers(-300, 300, shape)
    for _ in range(1 + draw.below(2) if draw.once_in(4) and out.size else 0):
        out = put(out, rng, draw.pick(SPECIAL))
    return out


def layout(draw, array):
    """The same numbers at other addresses."""
    array = np.asarray(array)
    kind = draw.pick(LAYOUTS)
    if kind == "F":
        return np.asfortranarray(array)
    if kind == "reversed" and array.ndim:
        return np.flip(np.flip(array).copy())
    if kind == "strided" and array.ndim:
        wide = np.repeat(array, 2, axis=-1)
        return wide[..., ::2]
    if kind == "unaligned" and array.size and array.dtype.kind in "fiu":
        place = np.empty(array.nbytes + 1, np.uint8)
        out = np.ndarray(array.shape, array.dtype, place, offset=1)
        out[...] = array
        return out
    if kind == "repeated" and array.ndim and len(array):
        return np.broadcast_to(array[:1], array.shape)
    if kind == "read-only":
        array = array.copy()
        array.flags.writeable = False
    return array


def array(draw, shape, contents=CONTENTS):
    """An array, or what NumPy would make one of."""
    numbers = values(draw, shape, contents)
    with np.errstate(all="ignore"):
        if draw.once_in(12):
            kind = draw.pick(OTHERS)
            if kind in "i8i4u1i1u8M8[D]":
                numbers = np.nan_to_num(numbers, posinf=9, neginf=-9).clip(-9 if kind[0] != "u" else 0, 9).astype("i8")
            numbers = numbers.astype(kind)
        else:
            numbers = numbers.astype(draw.pick(FLOATS))
    if draw.once_in(25):
        return numbers.tolist()
    return layout(draw, numbers)


def shape(draw, n_dims=(1, 1, 2, 2, 0, 3)):
    return tuple(draw.pick(LENGTHS) for _ in range(draw.pick(n_dims)))


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
    """CSR whose structure is not what it says; flags that spare it a check are set now and then."""
    X = sp.csr_matrix(X, copy=True)
    if rng.random() < 0.5:
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    if rng.random() < 0.5:
        X.has_canonical_format = True
    LIES[name](X, rng)
    return X


# ------------------------------------------------------------ rows and labels

def rows(draw, n, p):
    """(n, p) rows as an estimator may be given them: dense, sparse of any format, or sparse rows that lie."""
    if draw.below(3):
        return array(draw, (n, p))
    dense = values(draw, (n, p))
    dense[draw.generator().random((n, p)) < 0.5] = 0.0
    with np.errstate(all="ignore"):
        dense = dense.astype(draw.pick(("f8", "f4")))
    if draw.once_in(2) and n > 1 and np.count_nonzero(dense) > 4:
        return lying_csr(dense, draw.pick(tuple(LIES)), draw.generator())
    return sp.coo_array(dense).asformat(draw.pick(("csr", "csr", "csr", "csc", "coo", "lil", "bsr")))


def labels(draw, n, n_classes=3):
    """Labels of n rows: class indices mostly, else signs, an indicator, words or numbers of any kind."""
    rng = draw.generator()
    kind = "index" if draw.once_in(2) else draw.pick(("sign", "indicator", "words", "any", "too many", "sparse"))
    if kind == "any":
        return array(draw, shape(draw))
    if kind in ("indicator", "sparse"):
        out = rng.integers(0, 2, (n, n_classes))
        return sp.csr_array(out) if kind == "sparse" else out
    y = rng.integers(0, n_classes, n + (kind == "too many"))
    if kind == "sign":
        return np.where(y > 0, 1, -1).astype(draw.pick(("f8", "i1", ">i4")))
    if kind == "words":
        return np.array(["a", "b", "c", "d", "e"])[y % 5]
    return y


def stream(draw, X, y=None):
    """X in batches, now and then one with something wrong in it."""
    X = np.asarray(X)
    if X.ndim == 0:
        return iter([X])
    cut = draw.below(len(X) + 1)
    parts = [X[:cut], X[cut:]]
    if draw.once_in(4):
        parts.insert(draw.below(3), array(draw, shape(draw)))
    return iter(parts)
