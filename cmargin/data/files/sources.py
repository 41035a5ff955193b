"""What is given, opened as rows in files: a path, a memory map, or shards; and whether they fit into memory."""

import os
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from cmargin.data.containers import refuse_texts
from cmargin.data.files.arrays_in_files import ArrayInFile, array_of_npy
from cmargin.data.files.formats import ENDINGS, DenseRows, OtherSparseRows, Room, labels_within, open_one
from cmargin.data.files.memory_left import memory_left
from cmargin.data.files.npz import arrays_of_npz

FITS = 0.5                   # part of the memory left that rows may take and still be read whole
NEAR = 1 << 16               # bytes between two rows that are sooner read along than skipped
AT_ONCE = 1 << 23            # bytes read together where some rows are wanted
ASKED = 100                  # strings of a list that are looked up as paths, before it is taken for documents


class RowFiles:
    """The rows of one file after the other, as one matrix whose slices are read when they are asked for.

    Parameters
    ----------
    parts : list of what `open_one` gives
    check : callable, optional
        Of rows that are read, an array or CSR matrix: raises where their numbers are none to compute with.
    """

    ndim = 2

    def __init__(self, parts, check=None):
        self.parts, self.check, first = parts, check, parts[0]
        for part in parts:
            if part.dtype not in (np.float32, np.float64) or not part.dtype.isnative:
                raise ValueError("Rows in files must be float32 or float64 of this machine's byte order; "
                                 f"{part.name!r} holds {part.dtype}.")
            for what in ("n_features", "dtype", "sparse"):
                here, there = getattr(first, what), getattr(part, what)
                if here != there:
                    raise ValueError(f"Files of one data set must agree: {what} is {here} in {first.name!r} and "
                                     f"{there} in {part.name!r}.")
        self.n_features, self.dtype, self.sparse = first.n_features, first.dtype, first.sparse
        self.starts = [0, *np.cumsum([part.n_rows for part in parts]).tolist()]
        self.n_rows, self.entries = self.starts[-1], sum(part.entries for part in parts)
        self.shape, self.any_rows = (self.n_rows, self.n_features), all(part.any_rows for part in parts)
        each = self.dtype.itemsize + (first.index_size if self.sparse else 0)
        self.nbytes = self.entries * each + (8 * (self.n_rows + 1) if self.sparse else 0)

    def __len__(self):
        return self.n_rows

    def checked(self, check):
        """The same rows, of which ``check`` sees every part when it is first read."""
        return RowFiles(self.parts, check)

    @property
    def row_bytes(self):
        """Of one row, on average."""
        return max(1, self.nbytes // max(1, self.n_rows))

    @property
    def at_once(self):
        """Rows that are read together where any number would do."""
        return max(1, AT_ONCE // self.row_bytes)

    def given(self, in_memory=None):
        """These, or the rows in memory, as `open_files` has it."""
        converted = [part for part in self.parts if isinstance(part, OtherSparseRows)]
        if in_memory is None:
            copies = 2 if converted else 1                   # A conversion holds the matrix in both formats.
            in_memory = copies * self.nbytes <= FITS * memory_left()
        if in_memory:
            return self.read(0, self.n_rows)
        for part in converted:
            part.refuse_in_parts()
        return self

    def chunks(self, size):
        """(first row, last row + 1) of pieces of about ``size`` bytes, none of which lies in two files."""
        found = []
        for part, start in zip(self.parts, self.starts, strict=False):
            edges = part.edges(size)
            found += [(start + lo, start + hi) for lo, hi in pairwise(edges)]
        return found

    def read(self, lo, hi, room=None):
        """Rows ``lo`` .. ``hi`` - 1, an array or CSR matrix in memory that ``room`` lends."""
        room = Room() if room is None else room
        pieces = [part.read(max(lo - start, 0), min(hi - start, part.n_rows), room if len(self.parts) == 1 else Room())
                  for part, start in zip(self.parts, self.starts, strict=False)
                  if lo < hi and start < hi and start + part.n_rows > lo]
        if len(pieces) == 1:
            return pieces[0]
        if not pieces:
            empty = np.empty((0, self.n_features), self.dtype)
            return sp.csr_matrix(empty) if self.sparse else empty
        return sp.vstack(pieces, "csr") if self.sparse else np.concatenate(pieces)

    def read_chunk(self, lo, hi, room):
        """`read` of a piece that lies in one file."""
        k = int(np.searchsorted(self.starts, lo, "right")) - 1
        return self.parts[k].read(lo - self.starts[k], hi - self.starts[k], room)

    def runs(self, rows):
        """Pieces (lo, hi) to be read for ``rows``, ascending, and the places of those rows in each."""
        if not len(rows):
            return
        far = np.flatnonzero(np.diff(rows) * self.row_bytes > NEAR) + 1
        for near in np.split(rows, far):
            ends = np.arange(near[0] + self.at_once, near[-1] + 1, self.at_once)
            for cut in np.split(near, np.searchsorted(near, ends)):
                if len(cut):
                    yield int(cut[0]), int(cut[-1]) + 1, cut - cut[0]

    def __getitem__(self, rows):
        """The rows of a slice, in memory, checked."""
        if not isinstance(rows, slice):
            raise TypeError(f"Rows in files are taken by slices, files[lo:hi], got {rows!r}; "
                            "open_files(..., in_memory=True) reads them into memory.")
        lo, hi, step = rows.indices(self.n_rows)
        if step < 1:
            raise ValueError(f"Rows in files are read forwards: the step of a slice must be 1 or more, got {step}.")
        X = self.read(lo, max(lo, hi))[::step]
        if self.check is not None:
            self.check(X)
        return X


def open_files(source, in_memory=None, label=None):
    """Rows in files as what may be given to `fit` in place of X.

    Parameters
    ----------
    source : path, list of paths, or numpy.memmap
        .npy in C or F order; .npz, not compressed, of one array or a sparse matrix; a folder with data.npy,
        indices.npy, indptr.npy and shape.npy of a CSR matrix; .parquet whose columns are all features, by pyarrow.
        float32 or float64; dense whole numbers, booleans and half precision become these. Several files are shards of
        one data set, in this order. Sparse matrices of other formats than CSR are converted to it, and must fit into
        memory twice for that.
    in_memory : bool, optional
        Whether to read them whole, once. None: where they take at most half of the memory that is left now.

    label : str, optional
        Column of .parquet, or array of .npz, that has the labels. In `fit`, y may be this name in place of them:
        ``fit("trees.parquet", "tree")``.

    Returns
    -------
    array, CSR matrix or RowFiles; with ``label``, that and the labels, an array

    Raises
    ------
    ValueError
        For files of other dtypes or that do not fit together, for memory maps whose numbers are not those of their
        file, one row or one column after the other, and for sparse matrices of other formats than CSR that are not
        read whole.
    """
    if isinstance(source, np.memmap):
        return RowFiles([_rows_behind(source)]).given(in_memory)
    if label is None:
        return RowFiles(_opened(source)).given(in_memory)
    paths = [os.fspath(path) for path in ([source] if is_path(source) else source)]
    labels = np.concatenate([labels_within(path, label) for path in paths])      # or a sentence that there are none
    return RowFiles(_opened(paths, label)).given(in_memory), labels


def is_path(given):
    return isinstance(given, (str, os.PathLike))


def _looks_like_a_path(given):
    return not isinstance(given, str) or given.endswith(ENDINGS) or os.path.exists(given)


def are_paths(given):
    """Whether ``given`` names files: a path, or a list of them."""
    return is_path(given) or (isinstance(given, (list, tuple)) and len(given) > 0 and all(map(is_path, given)))


def _opened(source, label=None):
    if is_path(source):
        return [open_one(os.fspath(source), label)]
    if not any(map(_looks_like_a_path, source[:ASKED])):
        refuse_texts(source)
    parts = []
    for number, path in enumerate(source, 1):
        try:
            parts.append(open_one(os.fspath(path), label))
        except FileNotFoundError:
            raise FileNotFoundError(f"Shard {number} of {len(source)}, {os.fspath(path)!r}, is missing.") from None
    return parts


def _rows_behind(X):
    found = mapped_rows(X)
    if found is None:
        raise ValueError(
            "A memory map must have two dimensions, float32 or float64 of this machine's byte order, whole rows or "
            "columns that follow each other in its file, and a mode other than 'c' (what is written to such a map "
            f"never reaches the file); got shape {X.shape}, {X.dtype}, strides {X.strides}, mode {X.mode!r}.")
    return found


def mapped_rows(X):
    """The file behind a memory map; None where its rows do not lie there one after the other, as floats.

    Nor do they in a map that is copied when it is written to: the file never has what was written.
    """
    root = X
    while isinstance(root.base, np.memmap):
        root = root.base
    if X.ndim != 2 or not X.size or X.filename is None or X.mode == "c" or X.dtype not in (np.float32, np.float64) \
            or not X.dtype.isnative:
        return None
    offset = root.offset + X.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    item = X.dtype.itemsize
    if X.strides == (X.shape[1] * item, item):
        return DenseRows(ArrayInFile(str(X.filename), offset, X.shape, X.dtype))
    if X.strides[0] == item and X.strides[1] > 0:
        return DenseRows(ArrayInFile(str(X.filename), offset, X.shape, X.dtype, True), X.strides[1])
    return None


def too_large(X):
    """Whether the memory map ``X`` is to be read chunk by chunk."""
    return X.nbytes > FITS * memory_left() and mapped_rows(X) is not None


def of_files(X, y=None):
    """Rows that are named by paths, and memory maps that do not fit into memory, opened, and their labels; or as given.

    y is `labels_of` it where X is of files, or was and is read whole: then strings are not one a row. Labels in a list
    of strings are files where the strings end as their names do; a string that ends otherwise, beside rows in files,
    names the column or array of labels within these.
    """
    if are_paths(X) and isinstance(y, str) and not y.endswith((".npy", ".npz")):
        return open_files(X, label=y)
    rows = open_files(X) if are_paths(X) else open_files(X, False) if isinstance(X, np.memmap) and too_large(X) else X
    in_files = are_paths(X) or isinstance(X, (RowFiles, np.memmap)) or is_path(y)
    if not in_files and are_paths(y):
        n_rows = X.shape[0] if hasattr(X, "shape") else None
        in_files = isinstance(n_rows, int) and len(y) != n_rows          # Dask's frames have a number to be computed
    return rows, labels_of(y) if in_files else y


def labels_of(given):
    """Labels in files as an array in memory; what names no files, as it is."""
    if not are_paths(given) or not all(os.fspath(path).endswith((".npy", ".npz")) for path in
                                       ([given] if is_path(given) else given)):
        return given
    found = []
    for path in [given] if is_path(given) else given:
        path = os.fspath(path)
        arrays = list(arrays_of_npz(path).values()) if path.endswith(".npz") else [array_of_npy(path)]
        if len(arrays) != 1:
            raise ValueError(f"{path!r} must hold one array, the labels; it holds {len(arrays)}.")
        found.append(arrays[0].load())
    return found[0] if len(found) == 1 else np.concatenate(found)
