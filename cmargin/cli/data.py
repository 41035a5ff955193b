"""Rows and labels of the file that is named on the command line."""

import os
from argparse import Namespace

import numpy as np

from cmargin._estimators.validation import InvalidParameterError
from cmargin.cli.columns import NO_LABEL, place_and_features
from cmargin.cli.kinds import TABLES, kind_of
from cmargin.cli.labels import indicator_of, indicator_of_array
from cmargin.cli.tables import Table, read_arff, read_csv, read_feather, read_parquet
from cmargin.cli.targets import are_targets, beside_rows, checked_targets
from cmargin.data.containers import missing
from cmargin.data.files import open_files
from cmargin.data.files.arrays_in_files import array_of_npy
from cmargin.data.files.matrices import read_10x, read_h5ad, read_hdf5, read_mat, read_mtx, refuse_not_finite
from cmargin.data.files.npz import read_npz
from cmargin.data.files.sources import labels_of
from cmargin.data.files.svmlight import read_svmlight
from cmargin.data.files.tagged import are_tagged, read_tagged
from cmargin.data.files.text import opened_text


def read(path, options, known=None):
    """Return the `Table` of a file, with y=None where it has no labels.

    ``known`` is the `Model` that is to predict the rows; the file must have its features.
    """
    file, _, inside = path.partition(":/")
    if inside and not os.path.exists(path):                  # a dataset of HDF5
        path, options = file, replaced(options, features_key=inside)
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file or folder", path)
    kind = kind_of(path, options.data_format)
    if options.label is not None and kind not in TABLES:
        raise InvalidParameterError(f"--label names a column of a table ({', '.join(TABLES)}); {path} is none.")
    asked = [name for name in ("keep", "drop", "encode", "impute") if getattr(options, name)]
    if asked and kind not in READ_TABLE:
        raise InvalidParameterError(f"--{asked[0]} is for columns of tables; {path} is none.")
    labels = None if options.labels is None else _read_labels(options.labels, options, known)
    try:
        table = _read(path, kind, options, known)
    except ValueError as error:                              # Messages of libraries may lack the name of the file.
        raise ValueError(str(error) if path in str(error) else f"{path}: {error}") from None
    for number, what in zip(table.X.shape, ("rows", "columns of features"), strict=True):
        if not number:
            raise ValueError(f"{path} has no {what}.")
    refuse_not_finite(path, table.X)
    if labels is not None:
        table.y = labels
    if table.names is None and np.ndim(table.y) == 2 and not are_targets(options, known):
        if table.y.shape[1] == 1:
            table.y = table.y.ravel()
        elif known is None or known.labels is not None:
            table.y, table.names = indicator_of_array(path if labels is None else options.labels, table.y, known)
    if known is not None and table.X.shape[1] != known.n_features:
        raise ValueError(f"{path} has rows of {table.X.shape[1]} features; the model was trained on "
                         f"{known.n_features}.")
    if table.y is not None and table.y.shape[0] != table.X.shape[0]:
        raise ValueError(f"{path} has {table.X.shape[0]} rows and {table.y.shape[0]} labels.")
    return table


def read_labelled(path, options, known=None):
    """Return the `Table` as `read` does; ValueError where labels are missing or no classes, or targets no numbers."""
    table = read(path, options, known)
    if table.y is None:
        raise ValueError(f"{path} holds no labels; --labels names a file of them, --label a column of a table.")
    if are_targets(options, known):
        table.y = checked_targets(path if options.labels is None else options.labels, table.y)
        return table
    if table.names is not None:                              # whose labels the reader has looked at
        return table
    absent = table.y == "" if table.y.dtype.kind == "U" else missing(table.y)
    empty = np.flatnonzero(absent.reshape(len(absent), -1).any(axis=1))
    if len(empty):
        raise ValueError(f"{path}, row {empty[0] + 1}: the label is empty ({len(empty)} such rows); leave such rows "
                         "out.")
    if known is None:
        _refuse_fractions(path, table.y)
    return table


def replaced(options, **values):
    """The options with other values of some."""
    return Namespace(**{**vars(options), **values})


def _read(path, kind, options, known):
    label = NO_LABEL if options.labels is not None and options.label is None else options.label
    if kind in READ_TABLE:
        more = {"delimiter": "\t"} if kind == "tsv" else {}
        return READ_TABLE[kind](path, options=options, label=label, known=known, **more)
    if kind == "h5ad":
        X, y, columns = read_h5ad(path, None if label is NO_LABEL else label or getattr(known, "label", None))
        if known is not None and known.columns and known.columns != columns:
            places = place_and_features(path, [*columns, known.label], len(columns) + 1, known.label, known)[1]
            X, columns = X[:, places], known.columns
        y = None if y is None else beside_rows(y, options, known)
        return Table(X, y, columns, None if label is NO_LABEL else label)
    if kind == "svmlight":
        return _read_svmlight(path, options, known)
    if kind == "npz":
        return Table(*read_npz(path))
    if kind in READ_MATRIX:
        return Table(*READ_MATRIX[kind](path, options))
    return _read_arrays(path)


READ_TABLE = {"csv": read_csv, "tsv": read_csv, "parquet": read_parquet, "feather": read_feather, "arff": read_arff}
READ_MATRIX = {"mat": read_mat, "hdf5": read_hdf5, "mtx": read_mtx}


def _read_svmlight(path, options, known):
    """Return the `Table` of svmlight text with one label a row, or with several."""
    numbers = are_targets(options, known)
    given = path, options.zero_based, None if known is None else known.n_features
    try:
        if numbers:
            return Table(*read_svmlight(*given, labels=False))
        if known is None or known.labels is None:
            try:
                return Table(*read_svmlight(*given))
            except ValueError:
                if not os.path.isfile(path) or not are_tagged(path):
                    raise
        tagged = read_tagged(*given)
    except ValueError as error:
        hint = " Its columns are numbered from 0: --zero-based." if "Invalid index 0" in str(error) else ""
        raise ValueError(f"{error}{hint}") from None
    y, names = indicator_of(path, tagged, None if known is None or known.labels is None else known)
    return Table(tagged.X, y, names=names)


def _read_arrays(path):
    """Return the `Table` of .npy or a folder, whose X is a `RowFiles` where it does not fit into memory."""
    found = read_10x(path) if os.path.isdir(path) else None
    if found is not None:
        return Table(found)
    beside = os.path.join(path, "labels.npy")
    y = np.load(beside, allow_pickle=False) if os.path.exists(beside) else None
    if path.endswith(".npy"):
        array = array_of_npy(path)
        if array.dtype.kind in "iub" or array.dtype == np.float16:       # Only wider floats can be read in parts.
            return Table(array.load().astype(float), y)
    return Table(open_files(path), y)


def _read_labels(path, options, known):
    """Labels of .npy or .npz, or of text with one a line."""
    if path.endswith((".npy", ".npz")):
        return np.asarray(labels_of(path))
    with opened_text(path) as file:
        try:
            lines = file.read().decode().splitlines()
        except UnicodeDecodeError:
            raise ValueError(f"{path}: labels in a file of their own must be .npy, or text with one a line.") from None
    return beside_rows(lines, options, known)


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
        there = "--label names the column of labels, and " if path.endswith(TABLES) else ""
        raise ValueError(f"{path}: what is taken for labels are numbers, {y.flat[fractions[0]]} among them, not "
                         f"classes; {there}--method smsvm-regressor fits numbers.")
