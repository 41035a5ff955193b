"""Rows and labels of the file that is named on the command line."""

import os

import numpy as np

from cmargin._estimators.validation import InvalidParameterError
from cmargin.cli.tables import NO_LABEL, Table, read_csv, read_parquet
from cmargin.data.containers import missing
from cmargin.data.files import open_files
from cmargin.data.files.arrays_in_files import array_of_npy
from cmargin.data.files.npz import read_npz
from cmargin.data.files.sources import labels_of
from cmargin.data.files.svmlight import read_svmlight

SVMLIGHT = (".svm", ".svmlight", ".libsvm", ".txt")
TABLES = (".csv", ".tsv", ".parquet")
COMPRESSED = (".gz", ".bz2", ".xz")      # These may follow the endings of text formats.


def read(path, options, known=None):
    """Return the `Table` of a file, with y=None where it has no labels.

    ``known`` is the `Model` that is to predict the rows; the file must have its features.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file or folder", path)
    if options.label is not None and _ending(path) not in TABLES:
        raise InvalidParameterError(f"--label names a column of a table ({', '.join(TABLES)}); {path} is none.")
    labels = None if options.labels is None else _read_labels(options.labels)
    try:
        table = _read(path, options, known)
    except ValueError as error:                              # Messages of libraries may lack the name of the file.
        raise ValueError(str(error) if path in str(error) else f"{path}: {error}") from None
    for number, what in zip(table.X.shape, ("rows", "columns of features"), strict=True):
        if not number:
            raise ValueError(f"{path} has no {what}.")
    if labels is not None:
        table.y = labels
    if known is not None and table.X.shape[1] != known.n_features:
        raise ValueError(f"{path} has rows of {table.X.shape[1]} features; the model was trained on "
                         f"{known.n_features}.")
    if table.y is not None and len(table.y) != table.X.shape[0]:
        raise ValueError(f"{path} has {table.X.shape[0]} rows and {len(table.y)} labels.")
    return table


def read_labelled(path, options, known=None):
    """Return the `Table` as `read` does; ValueError where labels are missing or are no classes."""
    table = read(path, options, known)
    if table.y is None:
        raise ValueError(f"{path} holds no labels; --labels names a file of them, --label a column of a table.")
    absent = table.y == "" if table.y.dtype.kind == "U" else missing(table.y)
    empty = np.flatnonzero(absent.reshape(len(absent), -1).any(axis=1))
    if len(empty):
        raise ValueError(f"{path}, row {empty[0] + 1}: the label is empty ({len(empty)} such rows); leave such rows "
                         "out.")
    if known is None:
        _refuse_fractions(path, table.y)
    return table


def _ending(path):
    """Return the ending that tells the format, in small letters and without that of a compression."""
    stem, ending = os.path.splitext(path.lower())
    if ending in COMPRESSED and stem.endswith((*SVMLIGHT, ".csv", ".tsv")):
        ending = os.path.splitext(stem)[1]
    return ending


def _read(path, options, known):
    ending = _ending(path)
    label = NO_LABEL if options.labels is not None and options.label is None else options.label
    if ending in (".csv", ".tsv"):
        return read_csv(path, header=options.header, label=label, known=known, delimiter="\t" * (ending == ".tsv"))
    if ending == ".parquet":
        return read_parquet(path, label=label, known=known)
    if ending in SVMLIGHT:
        return Table(*read_svmlight(path, options.zero_based, None if known is None else known.n_features))
    if ending == ".npz":
        return Table(*read_npz(path))
    if ending == ".npy" or os.path.isdir(path):
        return _read_arrays(path)
    raise ValueError(f"{path} is of no kind that is read: {', '.join((*TABLES, *SVMLIGHT))} (text compressed by gzip, "
                     "bzip2 or xz or not), .npz, .npy, or a folder from `cmargin convert`.")


def _read_arrays(path):
    """Return the `Table` of .npy or a folder, whose X is a `RowFiles` where it does not fit into memory."""
    beside = os.path.join(path, "labels.npy")
    y = np.load(beside, allow_pickle=False) if os.path.exists(beside) else None
    if path.endswith(".npy"):
        array = array_of_npy(path)
        if array.dtype.kind in "iub":                        # Only floats can be read in parts.
            return Table(array.load().astype(float), y)
    return Table(open_files(path), y)


def _read_labels(path):
    if not path.endswith((".npy", ".npz")):
        raise ValueError(f"{path}: labels in a file of their own must be .npy.")
    return np.asarray(labels_of(path))


def _refuse_fractions(path, y):
    """Raise ValueError for numbers with fractions: the labels of a table are then in another column."""
    if y.dtype.kind not in "Uf":
        return
    try:
        numbers = y.astype(float)
    except ValueError:
        return
    fractions = np.flatnonzero(np.isfinite(numbers) & (numbers != np.rint(numbers)))
    if len(fractions):
        there = "--label names the column of labels" if _ending(path) in TABLES else "a regression has them"
        raise ValueError(f"{path}: what is taken for labels are numbers, {y.flat[fractions[0]]} among them, not "
                         f"classes; {there}.")
