"""Rows in a file, or in the few files of a CSR matrix: their sizes, and a range of them read into memory.

Each has ``name``, ``n_rows``, ``n_features``, ``dtype``, ``sparse``, ``entries``, the numbers stored, and ``any_rows``:
whether some are read without their neighbours; and

    edges(size) -> places of rows between which there are at most ``size`` bytes, or one row, or what is read at once
    read(lo, hi, room) -> rows lo .. hi - 1, an array or CSR matrix, mapped or in memory that ``room`` lends
"""

import math
import os
import threading

import numpy as np
import scipy.sparse as sp

from cmargin.data.files.arrays_in_files import array_of_npy, opened, read_at
from cmargin.data.files.npz import CSR_ARRAYS, arrays_of_npz, read_sparse
from cmargin.data.files.parquet import ParquetRows, column_of_parquet

ENDINGS = (".npy", ".npz", ".parquet")       # of files; rows may be in a folder, too
MOST_COLUMNS = 1 << 44       # eight bytes for each are what processors address
PIECE = 1 << 20              # row pointers checked together


class Room:
    """Memory that one chunk after the other is read into, where it is not mapped; a new chunk overwrites the last.

    Once ``given_up`` is set, nobody waits for a chunk: whoever reads it stops soon.
    """

    def __init__(self, given_up=None):
        self.lent, self.given_up = {}, threading.Event() if given_up is None else given_up

    def array(self, name, shape, dtype):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if len(self.lent.get(name, ())) < size:
            self.lent[name] = None                           # give the old one back first
            self.lent[name] = np.empty(size, np.uint8)
        return self.lent[name][:size].view(dtype).reshape(shape)


def as_floats(dtype):
    """The floats that numbers of this type are read as: float32 where it holds them all, as of 16 bits and fewer."""
    becomes = dtype.isnative and (dtype.kind in "iub" or dtype == np.float16)
    return np.result_type(dtype, np.float32) if becomes else dtype


class DenseRows:
    """Rows of an `ArrayInFile`, C or F order; ``column_stride``: bytes from one column to the next in F order, where
    rows were cut off. Whole numbers, booleans and half precision become floats that hold them, when they are read."""

    sparse, any_rows = False, True

    def __init__(self, array, column_stride=None):
        if len(array.shape) != 2:
            raise ValueError(f"Expected 2D array, got {len(array.shape)}D array in {array.path!r} instead.")
        self.array, self.name = array, array.path
        (self.n_rows, self.n_features), self.dtype = array.shape, as_floats(array.dtype)
        self.entries = self.n_rows * self.n_features
        self.column_stride = self.n_rows * array.dtype.itemsize if column_stride is None else column_stride

    def edges(self, size):
        step = max(1, size // max(1, self.n_features * self.dtype.itemsize))
        return [*range(0, self.n_rows, step), self.n_rows]

    def read(self, lo, hi, room):
        n, m, array = hi - lo, self.n_features, self.array
        if not array.fortran:
            return array.part(lo * m, n * m, room.given_up).reshape(n, m).astype(self.dtype, copy=False)
        columns = room.array("rows", (m, n), array.dtype)
        with open(array.path, "rb", buffering=0) as file:
            for j in range(m):
                read_at(file, array.path, array.offset + j * self.column_stride + lo * array.dtype.itemsize, columns[j])
        return columns.T.astype(self.dtype, copy=False)


class CSRRows:
    """Rows of a CSR matrix whose three arrays are in files."""

    sparse, any_rows = True, True

    def __init__(self, name, arrays):
        _require(name, arrays, CSR_ARRAYS)
        self.name = name
        self.data, self.indices, self.indptr = (arrays[part] for part in CSR_ARRAYS[:3])
        if not self.indices.dtype.kind == self.indptr.dtype.kind == "i":
            raise ValueError(f"{name!r} holds no CSR matrix: its indices and shape must be whole numbers.")
        self.n_rows, self.n_features = shape = _shape(name, arrays["shape"])
        self.dtype, self.entries, self.index_size = self.data.dtype, self.data.shape[0], self.indices.dtype.itemsize
        if self.indptr.shape != (self.n_rows + 1,) or self.indices.shape != self.data.shape:
            raise ValueError(f"{name!r} holds no CSR matrix of shape {shape}: its arrays have lengths "
                             f"{self.data.shape[0]}, {self.indices.shape[0]} and {self.indptr.shape[0]}.")

    def edges(self, size):
        most = max(1, size // (self.dtype.itemsize + self.index_size))
        found, begin, last = [0], 0, 0
        for lo in range(1, self.n_rows + 1, PIECE):          # ends of rows lo - 1 ..
            ends = np.empty(min(PIECE, self.n_rows + 1 - lo) + 1, self.indptr.dtype)
            ends[0] = last                                   # that of the piece before may be the edge
            self.indptr.read(lo, ends[1:])
            self._check_pointers(ends)
            last = ends[-1]
            while last - begin > most:
                row = max(lo - 2 + int(np.searchsorted(ends, begin + most, "right")), found[-1] + 1)
                begin = int(ends[row - lo + 1])
                found.append(row)
        if self.n_rows and last != self.entries:
            raise ValueError(f"{self.name!r} holds no CSR matrix: its row pointers end at {last} of {self.entries}.")
        return [*found, self.n_rows] if found[-1] < self.n_rows else found

    def _check_pointers(self, ends):
        if (np.diff(ends) < 0).any():
            raise ValueError(f"{self.name!r} holds no CSR matrix: its row pointers are not ascending.")

    def read(self, lo, hi, room):
        starts = np.array(self.indptr.part(lo, hi - lo + 1, room.given_up))
        first, n = int(starts[0]), int(starts[-1] - starts[0])
        if n < 0 or first < 0 or first + n > self.entries:
            raise ValueError(f"{self.name!r} was changed while it was read.")
        data, indices = (array.part(first, n, room.given_up) for array in (self.data, self.indices))
        starts -= starts[0]
        return sp.csr_matrix((data, indices, starts), shape=(hi - lo, self.n_features))


class OtherSparseRows:
    """A sparse matrix in another format than CSR, of an archive of `scipy.sparse.save_npz`.

    Its rows cannot be read one after the other, so that it is always read whole, and converted to CSR.
    """

    sparse, any_rows, index_size = True, False, 8

    def __init__(self, path, format_, arrays):
        _require(path, arrays, ("data", "shape"), format_)
        self.name, self.format, data = path, format_, arrays["data"]
        self.n_rows, self.n_features = _shape(path, arrays["shape"], format_)
        self.dtype, self.entries = data.dtype, math.prod(data.shape)

    def edges(self, size):
        return [0, self.n_rows]

    def read(self, lo, hi, room):
        X = read_sparse(self.name)
        return X if (lo, hi) == (0, self.n_rows) else X[lo:hi]

    def refuse_in_parts(self):
        raise ValueError(f"{self.name!r} holds a matrix in {self.format} format, whose rows cannot be read one after "
                         "the other; save it by scipy.sparse.save_npz(path, X.tocsr(), compressed=False).")


def _require(name, arrays, parts, format_="CSR"):
    missing = [part for part in parts if part not in arrays]
    if missing:
        raise ValueError(f"{name!r} holds no {format_} matrix: {', '.join(missing)} is missing.")


def _shape(name, array, format_="CSR"):
    """Return (rows, columns) of a sparse matrix whose shape is stored in ``array``."""
    shape = array.load()
    if array.dtype.kind != "i" or shape.shape != (2,):
        raise ValueError(f"{name!r} holds no {format_} matrix: its indices and shape must be whole numbers.")
    if shape[1] > MOST_COLUMNS:
        raise ValueError(f"{name!r} is said to have {shape[1]} columns, whose weights no memory holds.")
    return tuple(map(int, shape))


def _format_of(member):
    """Return the name of a sparse format, in capitals, that `scipy.sparse.save_npz` stored as text or bytes."""
    name = member.load().tolist()
    return (name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)).upper()


def open_one(path, label=None):
    """Return the rows of one file, or of one folder with the arrays of a CSR matrix; but for its labels, if it has them
    in a column or array called ``label``."""
    if os.path.isdir(path):
        names = [part for part in CSR_ARRAYS if os.path.exists(os.path.join(path, f"{part}.npy"))]
        return CSRRows(path, {part: array_of_npy(os.path.join(path, f"{part}.npy")) for part in names})
    if path.endswith(".npy"):
        return DenseRows(array_of_npy(path))
    if path.endswith(".npz"):
        arrays = arrays_of_npz(path)
        arrays.pop(label, None)
        if "format" in arrays and (format_ := _format_of(arrays.pop("format"))) != "CSR":
            return OtherSparseRows(path, format_, arrays)
        if "indptr" in arrays:
            return CSRRows(path, arrays)
        if label is not None and "X" in arrays:
            return DenseRows(arrays["X"])
        if len(arrays) != 1:
            beside = "" if label is not None or "y" not in arrays else '; fit(path, "y") takes y for the labels'
            raise ValueError(f"{path!r} must hold one array or a CSR matrix; it holds {len(arrays)} arrays{beside}.")
        return DenseRows(*arrays.values())
    if path.endswith(".parquet"):
        return ParquetRows(path, label)
    opened(path).close()
    raise ValueError(f"{path!r} is of no kind that rows are read from: .npy, .npz (not compressed), .parquet, or a "
                     "folder with data.npy, indices.npy, indptr.npy and shape.npy of a CSR matrix.")


def labels_within(path, label):
    """The labels of the rows of a file that are in its column or array called ``label``."""
    if path.endswith(".parquet"):
        return column_of_parquet(path, label)
    arrays = arrays_of_npz(path) if path.endswith(".npz") else {}
    if label not in arrays:
        there = f"it holds {', '.join(sorted(arrays))}" if arrays else "such a name is of a column of .parquet or an " \
            "array of .npz; labels in a file of their own are .npy or .npz"
        raise ValueError(f"{path!r} has no labels {label!r}; {there}.")
    return arrays[label].load()
