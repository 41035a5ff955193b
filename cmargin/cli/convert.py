"""``cmargin convert``: svmlight text as a folder of arrays, a CSR matrix and its labels, that can be trained from.

The text may be larger than memory, and compressed by gzip, bzip2 or xz: it is parsed in pieces, each of which is
written to the ends of the files. `cmargin.data.files.open_files` opens the folder by its name.
"""

import os
from contextlib import ExitStack

import numpy as np

from cmargin._runtime.output import output_file
from cmargin.data.files.svmlight import svmlight_pieces

HEADER = 128                 # Bytes of a .npy header in which any length fits.


def run(options):
    """Convert the text, print a summary; return the exit status."""
    (n, m), entries = convert(options.text, options.folder, dtype=options.dtype, n_features=options.features,
                              zero_based=options.zero_based)
    print(f"{options.folder}: {n} x {m}, {entries} numbers. To train on it: fit({options.folder!r}, "
          f"{os.path.join(options.folder, 'labels.npy')!r})")
    return 0


def convert(text, folder, *, dtype=np.float32, n_features=None, zero_based=False):
    """Write data.npy, indices.npy, indptr.npy, shape.npy and labels.npy; return ((n_rows, n_features), stored numbers).

    Parameters
    ----------
    text, folder : path
        svmlight lines, compressed or not; and where the arrays are written, which is created if it is not there.
    dtype : float32 or float64
    n_features : int, optional
        Number of columns; the largest number in the text if None.
    zero_based : bool
        Whether columns are numbered from 0, not from 1.

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
        files = {name: GrowingArray(at_end.enter_context(output_file(os.path.join(folder, f"{name}.npy"), "wb")), kind)
                 for name, kind in names.items()}
        files["indptr"].add([0])
        for first, X, y in svmlight_pieces(text, dtype):
            low, high = (int(X.indices.min()), int(X.indices.max())) if X.nnz else (1, 0)
            if low < (not zero_based) or (n_features is not None and high + zero_based > n_features):
                raise ValueError(f"{text!r} has columns {low} to {high} from line {first} on; the first is "
                                 f"{0 if zero_based else 1} (--zero-based says which)"
                                 f"{'' if n_features is None else f', and there are {n_features}'}.")
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
            file.finish()
    shape = n_rows, most if n_features is None else n_features
    np.save(os.path.join(folder, "shape.npy"), np.array(shape, np.int64))
    if whole:
        labels = os.path.join(folder, "labels.npy")
        np.save(labels, np.load(labels).astype(np.int64))
    return shape, files["data"].n


class GrowingArray:
    """A .npy file of one dimension that numbers are appended to; `finish` writes their number into its header."""

    def __init__(self, file, dtype):
        self.file, self.dtype, self.n = file, np.dtype(dtype), 0
        file.write(b"\0" * HEADER)

    def add(self, numbers):
        self.file.write(np.ascontiguousarray(numbers, self.dtype))
        self.n += len(numbers)

    def finish(self):
        text = f"{{'descr': {self.dtype.str!r}, 'fortran_order': False, 'shape': ({self.n},), }}"
        self.file.seek(0)
        self.file.write(np.lib.format.magic(1, 0) + (HEADER - 10).to_bytes(2, "little"))
        self.file.write(text.ljust(HEADER - 11).encode() + b"\n")
