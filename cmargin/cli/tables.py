"""Tables with a column of labels, CSV or Parquet: which of the columns are features, and which is the label."""

import warnings
from collections import Counter
from dataclasses import dataclass

import numpy as np

from cmargin.cli.labels import labels_from
from cmargin.data.containers import missing
from cmargin.data.files.delimited import NotANumber, first_row, read_cells
from cmargin.data.files.parquet import open_parquet, refuse_lists

NO_LABEL = object()              # Given as the label's column where labels are in a file of their own.
NO_NAMES = ("", "Unnamed: 0")    # The first column has these names where pandas or R wrote row numbers.


@dataclass
class Table:
    """Rows, their labels, and the names of the columns."""

    X: object                      # (n, m) array, CSR matrix or `RowFiles`
    y: object = None               # (n,) array
    columns: list | None = None    # Names of the features.
    label: object = None           # Name or number of the column of labels.


def read_csv(path, *, header, label, known=None, delimiter=""):
    """Return the `Table` of a text file.

    ``header`` ("yes", "no" or "auto") says whether the first line holds names, ``label`` is the name or number of the
    column of labels (None for the last, or `NO_LABEL`), ``known`` the `Model` that is to predict the rows, and
    ``delimiter`` "" for the one that the first line has.
    """
    names, delimiter = first_row(path, delimiter)
    has_names = header == "yes" or (header == "auto" and _are_names(names, label, known))
    place, features = _columns(path, names if has_names else None, len(names), label, known)
    if known is None and has_names and features[:1] == [0] and names[0] in NO_NAMES:
        warnings.warn(f"{path}: the first column has no name, as the numbers that pandas and R give to rows; it is "
                      "left out.", stacklevel=2)
        features = features[1:]
    try:
        X, texts = read_cells(path, delimiter, len(names), features, place, int(has_names))
    except NotANumber as error:
        raise ValueError(f"{error} Features must be numbers; --label names the column of labels, --header says whether "
                         "names come first.") from None
    if not len(X):
        raise ValueError(f"{path} has no rows.")
    if header == "auto" and not has_names and known is None and _were_names(names, features, place, texts):
        # The label is named, as its number could be the name of another column.
        return read_csv(path, header="yes", label=names[place], delimiter=delimiter)
    _refuse_gaps(path, X, names if has_names else None, features)
    columns = [names[j] for j in features] if has_names else None
    if place is None:
        return Table(X, None, columns)
    _refuse_lines(path, texts)
    return Table(X, labels_from(texts, known), columns, names[place] if has_names else place)


def read_parquet(path, *, label, known=None):
    """Return the `Table` of a Parquet file, with X of float32 where all features are; parameters as of `read_csv`."""
    file, columns = open_parquet(path)
    table = file.read().select(columns)
    names = list(map(str, table.column_names))
    place, features = _columns(path, names, len(names), label, known)
    refuse_lists(path, [table.schema.field(j) for j in features])
    columns = []
    for j in features:
        column = table.column(j).to_numpy()
        if column.dtype.kind not in "fiub":
            raise ValueError(f"{path}, column {names[j]!r} holds {table.schema.types[j]}, not numbers; --label names "
                             "the column of labels.")
        columns.append(column)
    single = all(column.dtype == np.float32 for column in columns)
    X = np.column_stack([column.astype(np.float32 if single else float) for column in columns])
    _refuse_gaps(path, X, names, features)
    columns = [names[j] for j in features]
    if place is None:
        return Table(X, None, columns)
    y = np.asarray(table.column(place))                      # An array of objects where some are missing.
    y = y if y.dtype.kind in "iub" or missing(y).any() else labels_from(y, known)
    return Table(X, y, columns, names[place])


def _are_names(cells, label, known):
    """Return whether the first line holds names: no cell is a number, or they are those that are asked for."""
    if not any(map(_is_number, cells)):
        return True
    if known is not None and cells == known.columns:
        return True
    name = known.label if known is not None and label is None else label
    return isinstance(name, str) and name in cells and not _is_number(name)


def _were_names(cells, features, place, texts):
    """Return whether a first line that was read as a row holds names, as pandas writes those of unnamed columns.

    That is ``0,1,2,target``. A row of numbers and a class looks like it, but its class has other rows, a name has none.
    """
    if place is None or _is_number(cells[place]) or [cells[j] for j in features] != [*map(str, range(len(features)))]:
        return False
    others = np.char.strip(texts[1:])
    return len(others) > 0 and cells[place] not in others


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _columns(path, names, n_columns, label, known):
    """Return (position of the labels or None, positions of the features in the order of the model)."""
    twice = [name for name, times in Counter(names or ()).items() if times > 1]
    if twice:
        raise ValueError(f"{path} has more than one column {', '.join(map(repr, twice))}: columns are known by their "
                         "names.")
    if known is not None and known.columns and names:
        absent = [name for name in known.columns if name not in names]
        if absent:
            raise ValueError(f"{path} has no column {absent[0]!r}, which the model was trained on.")
        place = _label_column(path, names, n_columns, known.label if label is None else label, known)
        return place, [names.index(name) for name in known.columns]
    place = _label_column(path, names, n_columns, label, known)
    return place, [j for j in range(n_columns) if j != place]


def _label_column(path, names, n_columns, label, known):
    if label is NO_LABEL:
        return None
    if label is None and known is not None:
        if n_columns == known.n_features:                        # These are rows without labels.
            return None
        label = known.label
    if label is None:
        return n_columns - 1
    if names and str(label) in names:
        return names.index(str(label))
    if str(label).lstrip("-").isdecimal() and -n_columns <= int(label) < n_columns:
        return int(label) % n_columns
    if known is not None and names:
        return None
    raise ValueError(f"{path} has no column {label!r}; it has {', '.join(names) if names else f'{n_columns} columns'}.")


def _refuse_gaps(path, X, names, features):
    gaps = ~np.isfinite(X)
    if gaps.any():
        i, k = np.argwhere(gaps)[0]
        where = repr(names[features[k]]) if names else features[k] + 1
        raise ValueError(f"{path}, row {i + 1}, column {where}: empty, NaN or infinite ({gaps.sum()} such cells); "
                         "fill them or leave such rows out.")


def _refuse_lines(path, texts):
    long = np.flatnonzero(np.char.find(np.asarray(texts, str), "\n") >= 0)
    if len(long):
        raise ValueError(f"{path}, row {long[0] + 1}: the label goes over several lines; a quotation mark may be "
                         "missing.")
