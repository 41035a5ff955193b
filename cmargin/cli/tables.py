"""Tables with a column of labels, of text, Parquet, Feather or ARFF: their rows, labels and names."""

import warnings
from dataclasses import dataclass

import numpy as np

from cmargin.cli.columns import (
    chosen,
    features_of,
    is_numeric,
    numbers_of,
    place_and_features,
    refuse_gaps,
)
from cmargin.cli.targets import are_targets, beside_rows
from cmargin.data.containers import missing
from cmargin.data.files.arrays_in_files import opened
from cmargin.data.files.delimited import NotANumber, first_row, read_cells, read_columns
from cmargin.data.files.matrices import library
from cmargin.data.files.parquet import open_parquet, refuse_lists
from cmargin.data.files.text import opened_text

NO_NAMES = ("", "Unnamed: 0")    # The first column has these names where pandas or R wrote row numbers.


@dataclass
class Table:
    """Rows, their labels, and the names of the columns."""

    X: object                      # (n, m) array, CSR matrix or `RowFiles`
    y: object = None               # (n,) array
    columns: list | None = None    # Names of the columns that the features are made of.
    label: object = None           # Name or number of the column of labels.
    encoder: object = None         # `ColumnEncoder`, where features are not the columns themselves.
    names: object = None           # (n_labels,) names of the labels, where y is an indicator of several for each row.


def read_csv(path, *, options, label, known=None, delimiter="", header=None):
    """Return the `Table` of a text file.

    ``options.header`` ("yes", "no" or "auto") says whether the first line holds names, ``label`` is the name or number
    of the column of labels (None for the last, or `NO_LABEL`), ``known`` the `Model` that is to predict the rows, and
    ``delimiter`` "" for the one that the first line has.
    """
    header = options.header if header is None else header
    names, delimiter = first_row(path, delimiter)
    has_names = header == "yes" or (header == "auto" and _are_names(names, label, known))
    numbered = [*map(str, range(len(names)))]    # what columns are called that have no names
    called = names if has_names else numbered if _by_number(options, known) else None
    place, features = place_and_features(path, called, len(names), label, known)
    if known is None and has_names and features[:1] == [0] and names[0] in NO_NAMES:
        warnings.warn(f"{path}: the first column has no name, as the numbers that pandas and R give to rows; it is "
                      "left out.", stacklevel=2)
        features = features[1:]
    features = chosen(path, called or numbered, features, options, known)
    encoder = None
    if called is not None and (options.encode or options.impute if known is None else known.encoder):
        label_there = [] if place is None else [place]
        columns = read_columns(path, delimiter, len(names), int(has_names), [*features, *label_there], label_there,
                               numbers_of)
        if not len(next(iter(columns.values()), "rows")):
            raise ValueError(f"{path} has no rows.")
        texts = None if place is None else columns.pop(place)
        X, encoder = features_of(path, {called[j]: columns[j] for j in features}, options, known)
    else:
        X, texts = _numbers(path, delimiter, names, features, place, has_names)
    if not len(X):
        raise ValueError(f"{path} has no rows.")
    if header == "auto" and not has_names and known is None and _were_names(names, features, place, texts):
        # The label is named, as its number could be the name of another column.
        return read_csv(path, options=options, label=names[place], delimiter=delimiter, header="yes")
    refuse_gaps(path, X, called and encoder is None and [called[j] for j in features], features)
    columns = None if called is None else [called[j] for j in features]
    if place is None:
        return Table(X, None, columns, encoder=encoder)
    _refuse_lines(path, texts)
    return Table(X, beside_rows(texts, options, known), columns, names[place] if has_names else place, encoder)


def _by_number(options, known):
    """Whether columns without names are known by their numbers: some may be left out, or made into several."""
    if known is not None:
        return bool(known.columns) and all(str(name).isdecimal() for name in known.columns)
    return any((options.keep, options.drop, options.encode, options.impute))


def _numbers(path, delimiter, names, features, place, has_names):
    """Return (X, texts of the labels) of a table all of whose features are numbers."""
    try:
        return read_cells(path, delimiter, len(names), features, place, int(has_names))
    except NotANumber as error:
        raise ValueError(f"{error} Features must be numbers; --encode onehot makes features of texts, --drop leaves "
                         "columns out, --label names the column of labels, --header says whether names come first.") \
            from None


def read_parquet(path, *, options, label, known=None):
    """Return the `Table` of a Parquet file, with X of float32 where all features are; parameters as of `read_csv`."""
    file, columns = open_parquet(path)
    return _of_arrow(path, file.read().select(columns), options, label, known)


def read_feather(path, *, options, label, known=None):
    """Return the `Table` of a Feather or Arrow IPC file; parameters as of `read_csv`."""
    with opened(path) as file:
        begin = file.read(6)
    if begin.startswith(b"FEA1"):                # pyarrow ends the process where such a file is damaged
        raise ValueError(f"{path} is Feather of version 1, of before 2020, which is not read; "
                         "pyarrow.feather.read_table and write_feather make version 2 of it.")
    library("pyarrow", path, "pyarrow")
    import pyarrow

    try:
        with (pyarrow.ipc.open_file if begin == b"ARROW1" else pyarrow.ipc.open_stream)(path) as batches:
            table = batches.read_all()
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as Feather or Arrow IPC: {error}") from None
    return _of_arrow(path, table, options, label, known)


def read_arff(path, *, options, label, known=None):
    """Return the `Table` of ARFF text, dense or sparse, whose column of labels is the last or called class."""
    arff = library("arff", path, "liac-arff")
    with opened_text(path) as file:
        text = file.read()
    try:
        text = text.decode()
        try:
            found = arff.loads(text, return_type=arff.DENSE)
        except arff.BadLayout:
            found = arff.loads(text, return_type=arff.LOD)
    except (arff.ArffException, ValueError, LookupError) as error:
        raise ValueError(f"{path} cannot be read as ARFF: {error}") from None
    names = [str(name) for name, _ in found["attributes"]]
    place, features = place_and_features(path, names, len(names), _class_of(names, label, known), known)
    features = chosen(path, names, features, options, known)
    columns = [_arff_column(found, j) for j in range(len(names))]
    X, encoder = features_of(path, {names[j]: columns[j] for j in features}, options, known)
    used = [names[j] for j in features]
    y = None if place is None else beside_rows(_texts_of(columns[place]), options, known)
    return Table(X, y, used, None if place is None else names[place], encoder)


def _class_of(names, label, known):
    """The column that ARFF files call the class, where no other is asked for."""
    called = [name for name in names if name.lower() == "class"]
    return called[0] if label is None and known is None and called else label


def _arff_column(found, j):
    """The numbers of an attribute, NaN where one is missing, or its texts, "" where one is."""
    kind, data = found["attributes"][j][1], found["data"]
    if isinstance(kind, str) and kind.upper() in ("NUMERIC", "REAL", "INTEGER"):
        default, convert = 0.0, lambda value: np.nan if value is None else float(value)
    else:                                        # an entry that a sparse row leaves out is the first value
        default = "" if isinstance(kind, str) else next(iter(kind), "")
        convert = lambda value: "" if value is None else str(value)      # noqa: E731
    cells = (row.get(j, default) if isinstance(row, dict) else row[j] for row in data)
    return np.array([*map(convert, cells)])


def _texts_of(column):
    """A column of labels as texts; numbers without a fraction as integers."""
    if not is_numeric(column):
        return column
    whole = np.isfinite(column) & (column == np.rint(column))
    return np.array([str(int(v)) if w else "" if np.isnan(v) else str(v)
                     for v, w in zip(column.tolist(), whole.tolist(), strict=True)])


def _of_arrow(path, table, options, label, known):
    """Return the `Table` of one of pyarrow."""
    from pyarrow import ArrowException

    try:
        table.validate(full=True)                # reading trusts the offsets of texts wherever they point
    except ArrowException as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    names = list(map(str, table.column_names))
    place, features = place_and_features(path, names, len(names), label, known)
    features = chosen(path, names, features, options, known)
    refuse_lists(path, [table.schema.field(j) for j in features])
    X, encoder = features_of(path, {names[j]: _arrow_column(table, j) for j in features}, options, known)
    columns = [names[j] for j in features]
    if place is None:
        return Table(X, None, columns, encoder=encoder)
    if are_targets(options, known):
        return Table(X, _arrow_column(table, place), columns, names[place], encoder)
    y = np.asarray(table.column(place))                      # An array of objects where some are missing.
    y = y if y.dtype.kind in "iub" or missing(y).any() else beside_rows(y, options, known)
    return Table(X, y, columns, names[place], encoder)


def _arrow_column(table, j):
    column = table.column(j)
    if str(column.type).startswith("dictionary"):
        column = column.cast(column.type.value_type)
    kind = str(column.type)
    numbers = column.to_numpy() if not kind.startswith(("string", "large_string")) else None
    if numbers is not None and numbers.dtype.kind == "O" and kind.startswith(("bool", "null", "decimal")):
        numbers = np.array([np.nan if value is None else float(value) for value in numbers])
    if numbers is not None and is_numeric(numbers):
        return numbers
    return np.array(["" if value is None else str(value) for value in column.to_pylist()])


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


def _refuse_lines(path, texts):
    long = np.flatnonzero(np.char.find(np.asarray(texts, str), "\n") >= 0)
    if len(long):
        raise ValueError(f"{path}, row {long[0] + 1}: the label goes over several lines; a quotation mark may be "
                         "missing.")
