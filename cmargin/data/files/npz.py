""".npz archives: where their arrays lie in the file, or what they hold, in memory."""

import os
import struct
import zipfile
from contextlib import contextmanager

import numpy as np
import scipy.sparse as sp

from cmargin._core.rows._structure import check_structure
from cmargin.data.files.arrays_in_files import array_at, opened

CSR_ARRAYS = ("data", "indices", "indptr", "shape")
LOCAL_HEADER = struct.Struct("<26xHH")       # The header of a member: lengths of its name and of the extra field.


@contextmanager
def _opened_archive(path):
    """The open file; ValueError where it is no archive, or is damaged."""
    with opened(path) as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(f"{path}: this is no .npz archive, or one that is cut short.")
        file.seek(0)
        try:
            yield file
        except (ValueError, OSError, MemoryError):
            raise
        except Exception as error:           # zipfile, zlib and struct raise errors of their own for damaged bytes.
            raise ValueError(f"{path} is damaged: {error}") from None


def arrays_of_npz(path):
    """Return {name: ArrayInFile} of an archive that is not compressed, so that its arrays can be read in parts."""
    found = {}
    with _opened_archive(path) as file:
        for member in zipfile.ZipFile(file).infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{path!r} is compressed and cannot be read in parts; save it by numpy.savez, or by "
                                 "scipy.sparse.save_npz with compressed=False.")
            file.seek(member.header_offset)
            local = file.read(LOCAL_HEADER.size)
            if len(local) < LOCAL_HEADER.size:
                raise ValueError(f"{path!r} is cut short within {member.filename!r}.")
            file.seek(sum(LOCAL_HEADER.unpack(local)), os.SEEK_CUR)
            end = file.tell() + member.file_size
            found[member.filename.removesuffix(".npy")] = array_at(path, file).check_length(end)
    return found


def read_sparse(path):
    """Return the matrix that `scipy.sparse.save_npz` wrote, of any format, as CSR in memory."""
    with _opened_archive(path) as file:
        X = sp.load_npz(file)
    check_structure(X)                       # The conversion follows the indices wherever they point.
    return X.tocsr()


def read_npz(path):
    """Return (X, y) of an archive with arrays X and y (or labels), or with the arrays of a sparse matrix and y.

    X is an array or CSR matrix in memory, of float32 or float64; y is None where there is none.
    """
    with _opened_archive(path) as file, np.load(file, allow_pickle=False) as arrays:
        names = set(arrays.files)
        y = next((arrays[name] for name in ("y", "labels") if name in names), None)
        if {"data", "shape", "format"} <= names:
            X = read_sparse(path)
        elif set(CSR_ARRAYS) <= names:
            X = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
        elif "X" in names or len(names) == 1:
            X = arrays["X" if "X" in names else arrays.files[0]]
        else:
            raise ValueError(f"{path} must hold X and y, or the arrays of a CSR matrix and y; it holds "
                             f"{', '.join(sorted(names))}.")
    if X.dtype.kind not in "iubf":
        raise ValueError(f"{path}: X holds {X.dtype}, not numbers.")
    if X.ndim != 2:
        raise ValueError(f"{path}: X must have rows and columns; its shape is {X.shape}.")
    return X if X.dtype in (np.float32, np.float64) else X.astype(float), y
