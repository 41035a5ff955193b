"""svmlight text made, once, into files that rows are trained from: a CSR matrix and its labels, row by row.

    python -m cmargin convert TEXT FOLDER

The text may be larger than memory, and compressed by gzip, bzip2 or xz: a few megabytes of it are parsed at a time and
written at the end of each file. What ``FOLDER`` then holds is opened by its name (`cmargin.data.files.open_files`),
and the labels lie beside it.
"""

import bz2
import codecs
import gzip
import io
import lzma
import os
import zlib
from contextlib import ExitStack, contextmanager

import numpy as np
from sklearn.datasets import load_svmlight_file

TEXT = 1 << 24               # bytes of text parsed together
EXACT = 2**53                # from here on neighbouring whole numbers are one float64
HEADER = 128                 # bytes of a .npy header in which any length fits
COMPRESSED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}      # by their first bytes
DAMAGED = EOFError, OSError, lzma.LZMAError, zlib.error      # bzip2's is an OSError that no system call made


@contextmanager
def opened_text(path):
    """A file of text in bytes, compressed by gzip, bzip2 or xz or not, after its byte order mark; a pipe too.

    ValueError, while it is read, where what is compressed is damaged.
    """
    with ExitStack() as at_end:
        file = at_end.enter_context(open(path, "rb"))
        for begins, unpacked in COMPRESSED.items():
            if file.peek(len(begins)).startswith(begins):
                file = at_end.enter_context(unpacked(file))
                break
        try:
            if file.peek(len(codecs.BOM_UTF8)).startswith(codecs.BOM_UTF8):
                file.read(len(codecs.BOM_UTF8))
            yield file
        except DAMAGED as error:
            if getattr(error, "errno", None) is not None:
                raise
            raise ValueError(f"{str(path)!r} is compressed, and damaged: {error}") from None


class GrowingFile:
    """A .npy file of one dimension that numbers are written to the end of; its header says how many when it is closed.

    It has its name only then, so that what an interrupt leaves is not taken for a whole file.
    """

    def __init__(self, path, dtype):
        self.path, self.dtype, self.n = path, np.dtype(dtype), 0
        self.file = open(f"{path}.part", "wb")
        self.file.write(b"\0" * HEADER)

    def add(self, numbers):
        self.file.write(np.ascontiguousarray(numbers, self.dtype))
        self.n += len(numbers)

    def close(self):
        text = f"{{'descr': {self.dtype.str!r}, 'fortran_order': False, 'shape': ({self.n},), }}"
        head = np.lib.format.magic(1, 0) + (HEADER - 10).to_bytes(2, "little")
        self.file.seek(0)
        self.file.write(head + text.ljust(HEADER - 11).encode() + b"\n")
        self.file.close()
        os.replace(f"{self.path}.part", self.path)

    def discard(self):
        self.file.close()
        if os.path.exists(f"{self.path}.part"):
            os.remove(f"{self.path}.part")


def convert(text, folder, *, dtype=np.float32, n_features=None, zero_based=False):
    """``text``, a path of svmlight lines, compressed or not, as ``folder``: data.npy, indices.npy, indptr.npy,
    shape.npy and labels.npy.

    Parameters
    ----------
    dtype : float32 or float64, of the numbers
    n_features : int, optional
        Columns; as many as there are if None.
    zero_based : bool
        Whether the first column is called 0, not 1.

    Returns
    -------
    (n_rows, n_features), and how many numbers are stored

    Raises
    ------
    ValueError
        For text that is no svmlight or damaged, columns out of range, and no rows.
    """
    os.makedirs(folder, exist_ok=True)
    columns = np.int32 if n_features is None or n_features <= np.iinfo(np.int32).max else np.int64
    names = {"data": dtype, "indices": columns, "indptr": np.int64, "labels": np.float64}
    most, whole = 0, True
    with ExitStack() as at_end:
        files = {name: GrowingFile(os.path.join(folder, f"{name}.npy"), kind) for name, kind in names.items()}
        for file in files.values():
            at_end.callback(file.discard)
        files["indptr"].add([0])
        for first, X, y in _parsed(text, dtype):
            low, high = (int(X.indices.min()), int(X.indices.max())) if X.nnz else (1, 0)
            if low < (not zero_based) or (n_features is not None and high + zero_based > n_features):
                raise ValueError(f"{text!r} has columns {low} to {high} from line {first} on; the first is "
                                 f"{0 if zero_based else 1} (--zero-based says which)"
                                 f"{'' if n_features is None else f', and there are {n_features}'}.")
            refuse_long_labels(text, y)
            most, whole = max(most, high + zero_based), whole and bool((y == np.rint(y)).all())
            X.sum_duplicates()
            files["data"].add(X.data)
            files["indices"].add(X.indices - (not zero_based))
            files["indptr"].add(files["data"].n - X.nnz + X.indptr[1:].astype(np.int64))
            files["labels"].add(y)
        n_rows = files["labels"].n
        if n_rows == 0:
            raise ValueError(f"{text!r} holds no rows.")
        for file in files.values():
            file.close()
    shape = n_rows, most if n_features is None else n_features
    np.save(os.path.join(folder, "shape.npy"), np.array(shape, np.int64))
    if whole:
        labels = os.path.join(folder, "labels.npy")
        np.save(labels, np.load(labels).astype(np.int64))
    return shape, files["data"].n


def refuse_long_labels(text, y):
    """Raise ValueError for labels so large that scikit-learn's reader, which makes floats of them, may merge two."""
    if (np.abs(y) >= EXACT).any():
        raise ValueError(f"{text!r} has labels of 2**53 and more, not all of which can be told apart in svmlight text; "
                         "number the classes from 0 on.")


def _parsed(text, dtype):
    """Yield (number of the first line, CSR matrix, labels) of pieces of the text."""
    line = 1
    with opened_text(text) as file:
        while piece := file.read(TEXT):
            piece += file.readline()                         # to the end of a line
            try:
                X, y = load_svmlight_file(io.BytesIO(piece), dtype=dtype, zero_based=True)
            except (ValueError, OverflowError) as error:             # the latter of a column beyond 64 bits
                raise ValueError(f"{text!r}, somewhere from line {line} on: {error}") from None
            yield line, X, y
            line += piece.count(b"\n")


def command(arguments):
    """What `python -m cmargin convert` does; its exit status."""
    (n, m), entries = convert(arguments.text, arguments.folder, dtype=arguments.dtype, n_features=arguments.features,
                              zero_based=arguments.zero_based)
    print(f"{arguments.folder}: {n} x {m}, {entries} numbers. To train on it: fit({arguments.folder!r}, "
          f"{os.path.join(arguments.folder, 'labels.npy')!r})")
    return 0
