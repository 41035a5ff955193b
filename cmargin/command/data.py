"""Rows and labels by the name of a file."""

import os
from zipfile import BadZipFile, is_zipfile

import numpy as np
import scipy.sparse as sp

from cmargin._estimators.validation import InvalidParameterError
from cmargin.command.tables import NO_LABEL, Table, read_csv, read_parquet
from cmargin.convert import opened_text, refuse_long_labels
from cmargin.data.files import open_files
from cmargin.data.files.arrays_in_files import array_of_npy
from cmargin.data.files.sources import labels_of
from cmargin.data.label_arrays import missing

SVMLIGHT = (".svm", ".svmlight", ".libsvm", ".txt")
TABLES = (".csv", ".tsv", ".parquet")
COMPRESSED = (".gz", ".bz2", ".xz")      # after one of those that are text


def read(path, options, known=None):
    """The `Table` of a file; ``known``: the `Model` that its rows are for. ``y`` is None where there are no labels."""
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file or folder", path)
    if options.label is not None and _kind(path) not in TABLES:
        raise InvalidParameterError(f"--label names a column of a table ({', '.join(TABLES)}); {path} is none.")
    apart = None if options.labels is None else np.asarray(labels_of(_labels_path(options.labels)))
    try:
        table = _read(path, options, known)
    except (ValueError, BadZipFile) as error:                # what libraries say may lack the name of the file
        raise ValueError(str(error) if path in str(error) else f"{path}: {error}") from None
    for number, what in zip(table.X.shape, ("rows", "columns of features"), strict=True):
        if not number:
            raise ValueError(f"{path} has no {what}.")
    if apart is not None:
        table.y = apart
    if known is not None and table.X.shape[1] != known.n_features:
        raise ValueError(f"{path} has rows of {table.X.shape[1]} features; the model was trained on "
                         f"{known.n_features}.")
    if table.y is not None and len(table.y) != table.X.shape[0]:
        raise ValueError(f"{path} has {table.X.shape[0]} rows and {len(table.y)} labels.")
    return table


def _kind(path):
    """The ending that says how a file is read."""
    stem, ending = os.path.splitext(path.lower())
    if ending in COMPRESSED and stem.endswith((*SVMLIGHT, ".csv", ".tsv")):
        ending = os.path.splitext(stem)[1]
    return ending


def _read(path, options, known):
    ending = _kind(path)
    label = NO_LABEL if options.labels is not None and options.label is None else options.label
    if ending in (".csv", ".tsv"):
        return read_csv(path, header=options.header, label=label, known=known, delimiter="\t" * (ending == ".tsv"))
    if ending == ".parquet":
        return read_parquet(path, label=label, known=known)
    if ending in SVMLIGHT:
        return _svmlight(path, options.zero_based, known)
    if ending == ".npz":
        return _npz(path)
    if ending == ".npy" or os.path.isdir(path):
        return _rows(path)
    raise ValueError(f"{path} is of no kind that is read: {', '.join((*TABLES, *SVMLIGHT))} (text compressed by gzip, "
                     "bzip2 or xz or not), .npz, .npy, or a folder from `cmargin convert`.")


def with_labels(path, options, known=None):
    table = read(path, options, known)
    if table.y is None:
        raise ValueError(f"{path} holds no labels; --labels names a file of them, --label a column of a table.")
    gone = table.y == "" if table.y.dtype.kind == "U" else missing(table.y)
    empty = np.flatnonzero(gone.reshape(len(gone), -1).any(axis=1))
    if len(empty):
        raise ValueError(f"{path}, row {empty[0] + 1}: the label is empty ({len(empty)} such rows); leave such rows "
                         "out.")
    if known is None:
        _refuse_fractions(path, table.y)
    return table


def _refuse_fractions(path, y):
    """Raise for numbers, or texts that are, with fractions among them: of a table, the labels are in another column."""
    if y.dtype.kind not in "Uf":
        return
    try:
        numbers = y.astype(float)
    except ValueError:
        return
    fractions = np.flatnonzero(np.isfinite(numbers) & (numbers != np.rint(numbers)))
    if len(fractions):
        there = "--label names the column of labels" if _kind(path) in TABLES else "a regression has them"
        raise ValueError(f"{path}: what is taken for labels are numbers, {y.flat[fractions[0]]} among them, not "
                         f"classes; {there}.")


def _labels_path(path):
    if not path.endswith((".npy", ".npz")):
        raise ValueError(f"{path}: labels in a file of their own must be .npy.")
    return path


def _rows(path):
    """Of .npy or a folder; what does not fit into memory stays where it is."""
    beside = os.path.join(path, "labels.npy")
    y = np.load(beside, allow_pickle=False) if os.path.exists(beside) else None
    if path.endswith(".npy"):
        array = array_of_npy(path)
        if array.dtype.kind in "iub":                        # the estimators read floats where they lie
            return Table(array.load().astype(float), y, None, None)
    return Table(open_files(path), y, None, None)


def _svmlight(path, zero_based, known):
    from sklearn.datasets import load_svmlight_file

    with opened_text(path) as file:
        try:
            X, y = load_svmlight_file(file, zero_based=zero_based,
                                      n_features=None if known is None else known.n_features)
        except OverflowError:
            raise ValueError(f"{path} has a column of a number beyond 2**31 - 1; number its columns anew.") from None
        except ValueError as error:
            raise ValueError(f"{path}{_line_that_is_wrong(path)}: {error}") from None
    refuse_long_labels(path, y)
    return Table(X, y.astype(np.int64) if (y == np.rint(y)).all() else y, None, None)


def _line_that_is_wrong(path):
    """", line N" of the first that is no svmlight text, which scikit-learn does not say; "" of a pipe, that is gone."""
    if not os.path.isfile(path):
        return ""
    with opened_text(path) as file:
        for number, line in enumerate(file, 1):
            label, *entries = line.split(b"#")[0].split() or [b"0"]
            try:
                numbers = [label]
                for entry in entries:
                    column, value = entry.split(b":")
                    numbers += [value] if column == b"qid" else [int(column), value]
                list(map(float, numbers))
            except ValueError:
                return f", line {number}"
    return ""


def _npz(path):
    if not is_zipfile(path):
        raise ValueError(f"{path}: this is no .npz archive, or one that is cut short.")
    try:
        X, y = _arrays_of(path)
    except (ValueError, OSError, MemoryError):
        raise
    except Exception as error:               # zipfile, zlib and struct each raise their own where bytes are wrong
        raise ValueError(f"{path} is damaged: {error}") from None
    if X.dtype.kind not in "iubf":
        raise ValueError(f"{path}: X holds {X.dtype}, not numbers.")
    if X.ndim != 2:
        raise ValueError(f"{path}: X must have rows and columns; its shape is {X.shape}.")
    return Table(X if X.dtype in (np.float32, np.float64) else X.astype(float), y, None, None)


def _arrays_of(path):
    with np.load(path, allow_pickle=False) as arrays:
        names = set(arrays.files)
        y = next((arrays[name] for name in ("y", "labels") if name in names), None)
        if {"data", "shape", "format"} <= names:             # as scipy.sparse.save_npz names CSR, CSC and all others
            X = sp.load_npz(path).tocsr()
        elif {"data", "indices", "indptr", "shape"} <= names:
            X = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
        elif "X" in names or len(names) == 1:
            X = arrays["X" if "X" in names else arrays.files[0]]
        else:
            raise ValueError(f"{path} must hold X and y, or the arrays of a CSR matrix and y; it holds "
                             f"{', '.join(sorted(names))}.")
        return X, y
