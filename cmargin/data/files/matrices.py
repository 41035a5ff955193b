"""Files that hold a matrix of features beside other arrays: MATLAB, HDF5, AnnData, 10x and Matrix Market."""

import os
from importlib import import_module

import numpy as np
import scipy.io
import scipy.sparse as sp

from cmargin._core.rows._structure import check_structure
from cmargin.data.files.text import opened_text

FEATURES, LABELS = ("X", "data", "features"), ("y", "Y", "labels", "label", "target", "gnd")      # the usual names
PARTS = {"data", "indices", "indptr"}    # of a CSR matrix that is a group of HDF5
REFERRED = "#refs#"      # the group in which MATLAB keeps what is in cells


def library(name, path, wanted):
    """The module ``name``; ImportError, with the file and what to install, where it is not there."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"{path} is read by {wanted}, which is not installed (python -m pip install {wanted}).") \
            from None


def read_mat(path, options):
    """Return (X, y) of a MATLAB file, of version 7.3 too, which is HDF5 with its arrays turned over."""
    try:
        arrays = {name: value for name, value in scipy.io.loadmat(path).items() if not name.startswith("__")}
    except NotImplementedError:
        return read_hdf5(path, options, of_matlab=True)
    except FileNotFoundError:
        raise
    except Exception as error:                   # of a damaged file, whatever SciPy meets
        raise ValueError(f"{path} cannot be read as a MATLAB file: {error}") from None
    return _chosen(path, {name: _of_cells(value) for name, value in arrays.items()}, options)


def read_mtx(path, options):
    """Return (X, None) of Matrix Market text."""
    with opened_text(path) as file:
        quiet = _Quiet(file)
        try:
            X = scipy.io.mmread(quiet)
            quiet.tell_error()
        except (ValueError, OverflowError, TypeError, MemoryError) as error:
            quiet.tell_error()
            raise ValueError(f"{path} cannot be read as Matrix Market: {error}") from None
    return _rows(path, X), None


class _Quiet:
    """A file that ends where it cannot be read, with the reason in ``error``: the parser, of another language, ends the
    process where a read or seek of its last moments raises."""

    def __init__(self, file):
        self.file, self.error = file, None

    def tell_error(self):
        """Raise what happened, an interrupt too; nothing where all could be read."""
        if self.error is not None:
            raise self.error from None

    def read(self, n=-1):
        return self._tried(b"", self.file.read, n)

    def seek(self, at, whence=0):
        return self._tried(0, self.file.seek, at, whence)

    def tell(self):
        return self._tried(0, self.file.tell)

    def _tried(self, otherwise, method, *arguments):
        try:
            return method(*arguments)
        except BaseException as error:
            self.error = self.error or error
            return otherwise


def read_10x(path):
    """Return the CSR matrix of a folder of 10x, barcodes as rows, or None where it is none."""
    for name in ("matrix.mtx.gz", "matrix.mtx"):
        if os.path.exists(file := os.path.join(path, name)):
            return sp.csr_matrix(read_mtx(file, None)[0].T)
    return None


def read_h5ad(path, label):
    """Return (X, y, names of the columns) of an AnnData file; ``label`` is a column of its ``obs``, or None."""
    anndata = library("anndata", path, "anndata")
    try:
        data = anndata.read_h5ad(path)
    except Exception as error:                   # of another or a damaged file, whatever anndata meets
        raise ValueError(f"{path} cannot be read as AnnData: {error}") from None
    if data.X is None:
        raise ValueError(f"{path} holds no matrix X.")
    y = None
    if label is not None:
        if label not in data.obs:
            raise ValueError(f"{path} has no column {label!r} in obs; it has {', '.join(map(str, data.obs.columns))}.")
        column = data.obs[label]
        y = np.asarray(column.astype(object).where(column.notna(), ""))
    return _rows(path, data.X), y, list(map(str, data.var_names))


def read_hdf5(path, options, of_matlab=False):
    """Return (X, y) of HDF5; ``of_matlab``: of MATLAB 7.3, with its arrays turned over."""
    h5py = library("h5py", path, "h5py")
    arrays = {}

    def take(name, node):
        if isinstance(node, h5py.Group) and set(node) >= PARTS:
            arrays[name] = node
        elif isinstance(node, h5py.Group) and of_matlab and "jc" in node and "MATLAB_sparse" in node.attrs:
            arrays[name] = node
        elif isinstance(node, h5py.Dataset) and not any(name.startswith(f"{group}/") for group in (*arrays, REFERRED)):
            arrays[name] = node

    try:
        with h5py.File(path, "r") as file:
            file.visititems(take)
            loaded = {name: _loaded(h5py, node, of_matlab) for name, node in arrays.items()}
    except (OSError, KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        raise ValueError(f"{path} cannot be read as HDF5: {error}") from None
    return _chosen(path, {name: value for name, value in loaded.items() if value is not None}, options)


def _loaded(h5py, node, of_matlab):
    """A matrix or an array of a dataset or group; None for what is neither numbers nor texts."""
    if isinstance(node, h5py.Group):
        if of_matlab:
            pointers = node["jc"][()]
            shape = (int(node.attrs["MATLAB_sparse"]), len(pointers) - 1)
            data, rows = (node[name][()] if name in node else np.zeros(0) for name in ("data", "ir"))
            return sp.csc_matrix((data, rows.astype(np.int64), pointers.astype(np.int64)), shape=shape)
        data, pointers = node["data"][()], node["indptr"][()]
        # that of 10x is features x barcodes by columns: barcodes x features by rows
        shape = node["shape"][()] if "shape" in node else node.attrs.get("shape")
        columns = int(shape[0] if len(pointers) == shape[1] + 1 and "barcodes" in node else shape[1])
        return sp.csr_matrix((data, node["indices"][()], pointers), shape=(len(pointers) - 1, columns))
    if node.dtype.kind == "O" and h5py.check_string_dtype(node.dtype):
        return node.asstr()[()]
    if of_matlab and h5py.check_ref_dtype(node.dtype):
        cells = [node.file[reference][()] for reference in node[()].ravel()]
        return np.array([*map(_of_letters, cells)]) if all(cell.dtype == np.uint16 for cell in cells) else None
    if of_matlab and node.attrs.get("MATLAB_class") == b"char" and node.dtype == np.uint16:
        return np.array([*map(_of_letters, node[()].T)])
    if node.dtype.kind not in "fiubSU" or not node.shape:
        return None
    value = node[()]
    return value.T if of_matlab else value


def _of_letters(codes):
    """The text of MATLAB's characters, without the blanks that make the rows of an array of them alike."""
    return "".join(map(chr, np.ravel(codes).tolist())).rstrip()


def _of_cells(value):
    """What single texts or numbers in MATLAB's cells are; anything else as it is."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "O":
        return value
    cells = value.ravel().tolist()
    if not all(np.size(cell) == 1 for cell in cells):
        return value
    found = np.array([np.asarray(cell).item() for cell in cells])
    return found.reshape(value.shape) if found.dtype.kind in "fiubU" and found.size == value.size else value


def _chosen(path, arrays, options):
    """Return (X, y): those that are named, or that have the usual names, or that are the only ones they can be."""
    key = options.features_key
    matrices = {name: value for name, value in arrays.items() if _is_matrix(value, 1 if key is None else 0)}
    X = _one(path, matrices, key, FEATURES, "features", "--features-key")
    if X is None:
        raise ValueError(f"{path} holds no matrix of numbers; it holds {', '.join(arrays) or 'nothing'}.")
    X = _rows(path, X)
    lists = {name: np.ravel(value) for name, value in arrays.items() if not sp.issparse(value)
             and np.size(value) == X.shape[0] and np.asarray(value).dtype.kind in "fiubSUO"}
    y = None
    if options.labels is None:
        y = _one(path, lists, options.labels_key, LABELS, "labels", "--labels-key")
    if y is not None and y.dtype.kind == "f" and (y == np.rint(y)).all():            # MATLAB has no other numbers
        y = y.astype(np.int64)
    return X, y.astype(str) if y is not None and y.dtype.kind in "SO" else y


def _one(path, found, key, usual, what, option):
    """What ``key`` names of ``found``, or what has a usual name, or the only one; None where there is none."""
    if key is not None:
        if key.strip("/") not in found:
            raise ValueError(f"{path} has no {what} {key!r}; what they can be is {', '.join(found) or 'nothing'}.")
        return found[key.strip("/")]
    named = [name for last in usual for name in found if name.rpartition("/")[2] == last]
    if len(found) > 1 and not named:
        raise ValueError(f"{path}: the {what} can be {', '.join(found)}; {option} says which.")
    return found[named[0] if named else next(iter(found))] if found else None


def _is_matrix(value, least):
    """Whether it can be features; of more than ``least`` rows and columns, as lists of labels are not in MATLAB."""
    return sp.issparse(value) or (np.ndim(value) == 2 and value.dtype.kind in "fiub" and min(value.shape) > least)


def _rows(path, X):
    """X as rows are trained from: CSR, or an array of floats."""
    if X.dtype.kind not in "fiub":
        raise ValueError(f"{path}: X holds {X.dtype}, not numbers.")
    check_structure(X)                           # the conversion follows the indices wherever they point
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(float)


def refuse_not_finite(path, X):
    """Raise ValueError, with the row, for rows in memory that are not all finite; a table has named its columns."""
    numbers = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):           # of a sum, which needs no array of its own
        if not isinstance(numbers, np.ndarray) or np.isfinite(np.sum(numbers)) or np.isfinite(numbers).all():
            return
    wrong = np.flatnonzero(~np.isfinite(numbers.reshape(len(numbers), -1)).all(axis=1))
    row = np.searchsorted(X.indptr, wrong[0], "right") if sp.issparse(X) else wrong[0] + 1
    raise ValueError(f"{path}, row {row}: NaN or an infinite number; leave such rows out.")
