"""Tables with a column of labels: CSV, by pandas where it is installed and by NumPy otherwise, and Parquet."""

import codecs
import csv
import io
import re
import warnings
from collections import Counter
from contextlib import contextmanager
from decimal import Decimal

import numpy as np

from cmargin.convert import opened_text
from cmargin.data.files.formats import index_of_rows, refuse_lists
from cmargin.data.label_arrays import missing

DELIMITERS = ",;\t "             # the first of them that the first line has
NO_LABEL = object()              # in place of the column of labels: they are in a file of their own
NO_NAMES = ("", "Unnamed: 0")    # of the numbers of rows, as pandas and R write them before the columns
UTF_16 = {codecs.BOM_UTF16_LE: "FF FE", codecs.BOM_UTF16_BE: "FE FF"}       # byte order marks


class Table:
    """Columns of numbers, and one of labels.

    Attributes
    ----------
    X : (n, m) array
    y : (n,) array or None
    columns : list of str or None
    label : str or int or None
    """

    def __init__(self, X, y, columns, label):
        self.X, self.y, self.columns, self.label = X, y, columns, label


def read_csv(path, *, header, label, known=None, delimiter=""):
    """A table of text, compressed or not.

    ``label``: name or number of the column of labels, None for the last, `NO_LABEL`; ``known``: the `Model`;
    ``delimiter``: none for the one that the first line has.
    """
    try:
        return _read_csv(path, header, label, known, delimiter)
    except UnicodeDecodeError:
        raise ValueError(_other_encoding(path)) from None


def _other_encoding(path):
    """What is to be said of text that is not UTF-8: its first such line, or that it is UTF-16."""
    with opened_text(path) as file:
        mark = UTF_16.get(file.peek(2)[:2])
        if mark:
            return f"{path} is UTF-16 text (it begins with the byte order mark {mark}); store it as UTF-8."
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return f"{path}, line {number}, is not UTF-8 text (byte 0x{byte:02X}); store it as UTF-8."
    return f"{path} is not UTF-8 text."                      # the line has been mended in between


@contextmanager
def _text(path):
    with opened_text(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
        yield text


def _read_csv(path, header, label, known, delimiter):
    with _text(path) as file:
        first = file.readline()
    if not first.strip():
        raise ValueError(f"{path} begins with an empty line, or is empty.")
    delimiter = delimiter or _delimiter(path, first)
    cells = next(csv.reader([first.strip("\r\n")], delimiter=delimiter, skipinitialspace=True))
    names = [cell.strip() for cell in cells]
    has_names = header == "yes" or (header == "auto" and _are_names(names, label, known))
    place, wanted = _places(path, names if has_names else None, len(names), label, known)
    if known is None and has_names and wanted[:1] == [0] and names[0] in NO_NAMES:
        warnings.warn(f"{path}: the first column has no name, as the numbers that pandas and R give to rows; it is "
                      "left out.", stacklevel=2)
        wanted = wanted[1:]
    numbers, labels = _cells(path, delimiter, has_names, len(names), wanted, place)
    if not len(numbers):
        raise ValueError(f"{path} has no rows.")
    if header == "auto" and not has_names and known is None and _were_names(names, wanted, place, labels):
        return _read_csv(path, "yes", names[place], known, delimiter)    # by its number it could be another's name
    _refuse_gaps(path, numbers, names if has_names else None, wanted)
    if labels is not None:
        _refuse_lines(path, labels)
    columns = [names[j] for j in wanted] if has_names else None
    return Table(numbers, None if place is None else labels_from(labels, known), columns,
                 place if place is None or not has_names else names[place])


def _refuse_lines(path, labels):
    long = np.flatnonzero(np.char.find(np.asarray(labels, str), "\n") >= 0)
    if len(long):
        raise ValueError(f"{path}, row {long[0] + 1}: the label goes over several lines; a quotation mark may be "
                         "missing.")


def _delimiter(path, first):
    """What parts the cells of the first line: the first of `DELIMITERS` that is there outside quotes."""
    bare = re.sub(r'"[^"]*"', "", first.strip())
    if "," in bare and ";" in bare:
        raise ValueError(f"{path} has commas and semicolons in its first line, and cells end at one of them: write "
                         "numbers with a decimal point, texts that hold such characters in quotes.")
    return next((d for d in DELIMITERS if d in bare), ",")


def _are_names(cells, label, known):
    """Whether the first line holds names: no numbers, or those that the caller or the model has for its columns."""
    if not any(map(_is_number, cells)):
        return True
    if known is not None and cells == known.columns:
        return True
    name = known.label if known is not None and label is None else label
    return isinstance(name, str) and name in cells and not _is_number(name)


def _were_names(cells, wanted, place, labels):
    """Whether a first line read as a row is one of names after all, as pandas writes those of unnamed columns.

    That is ``0,1,2,target``. A row of numbers and a class looks like it: a class has other rows, a name has none.
    """
    if place is None or _is_number(cells[place]) or [cells[j] for j in wanted] != [*map(str, range(len(wanted)))]:
        return False
    others = np.char.strip(labels[1:])
    return len(others) > 0 and cells[place] not in others


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _places(path, names, n_columns, label, known):
    """Place of the labels or None, and those of the features in their order."""
    _refuse_repeated(path, names or ())
    if known is not None and known.columns and names:            # by their names, whatever their order
        missing = [name for name in known.columns if name not in names]
        if missing:
            raise ValueError(f"{path} has no column {missing[0]!r}, which the model was trained on.")
        place = _place(path, names, n_columns, known.label if label is None else label, known)
        return place, [names.index(name) for name in known.columns]
    place = _place(path, names, n_columns, label, known)
    return place, [j for j in range(n_columns) if j != place]


def _refuse_repeated(path, names):
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(f"{path} has more than one column {', '.join(map(repr, twice))}: columns are known by their "
                         "names.")


def _place(path, names, n_columns, label, known):
    if label is NO_LABEL:
        return None
    if label is None and known is not None:
        if n_columns == known.n_features:                        # rows without labels
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


def _cells(path, delimiter, has_names, n_columns, wanted, place):
    """(n, m) floats with NaN in empty cells, and the texts of the labels."""
    try:
        import pandas
    except ImportError:
        return _by_numpy(path, delimiter, has_names, n_columns, wanted, place)
    try:
        with _text(path) as file:
            frame = pandas.read_csv(file, sep=delimiter, header=None, skiprows=int(has_names), dtype=str,
                                    na_filter=False, skipinitialspace=True)
    except pandas.errors.EmptyDataError:
        return np.empty((0, len(wanted))), None
    except pandas.errors.ParserError:
        frame = None
    if frame is None or frame.shape[1] != n_columns:             # rows of unequal length: the other reader says which
        return _by_numpy(path, delimiter, has_names, n_columns, wanted, place)
    numbers = np.empty((len(frame), len(wanted)))
    for k, j in enumerate(wanted):
        column = frame.iloc[:, j]
        numbers[:, k] = pandas.to_numeric(column.where(column.str.strip() != ""), errors="coerce")
        wrong = np.flatnonzero(np.isnan(numbers[:, k]) & (column.str.strip() != ""))
        if len(wrong) and column.iloc[wrong[0]].strip().lower() not in ("nan", "na"):
            raise _no_number(path, wrong[0] + 1, j, column.iloc[wrong[0]])
    return numbers, None if place is None else frame.iloc[:, place].to_numpy(str)


def _by_numpy(path, delimiter, has_names, n_columns, wanted, place):
    numbers, labels = [], []
    with _text(path) as file:
        rows = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
        if has_names:
            next(rows)
        for number, row in enumerate(filter(None, rows), 1):
            # an empty cell too many is no more than a delimiter at the end
            if len(row) <= max([*wanted, place or 0]) or any(map(str.strip, row[n_columns:])):
                more = "more" if len(row) < n_columns else "fewer"
                raise ValueError(f"{path}, row {number}, has {len(row)} cells where the first line has {more}.")
            numbers.append([_number(path, number, j, row[j]) for j in wanted])
            labels.append("" if place is None else row[place])
    return np.array(numbers, float).reshape(len(numbers), len(wanted)), None if place is None else np.array(labels, str)


def _number(path, number, j, cell):
    try:
        return float(cell) if cell.strip() else np.nan
    except ValueError:
        if cell.strip().lower() == "na":
            return np.nan
        raise _no_number(path, number, j, cell) from None


def _no_number(path, number, j, cell):
    return ValueError(f"{path}, row {number}, column {j + 1}: {cell.strip()[:40]!r} is no number. Features must be "
                      "numbers; --label names the column of labels, --header says whether names come first.")


def _refuse_gaps(path, numbers, names, wanted):
    gaps = ~np.isfinite(numbers)
    if gaps.any():
        i, k = np.argwhere(gaps)[0]
        where = repr(names[wanted[k]]) if names else wanted[k] + 1
        raise ValueError(f"{path}, row {i + 1}, column {where}: empty, NaN or infinite ({gaps.sum()} such cells); "
                         "fill them or leave such rows out.")


# 1, +1, 1.0 and what np.savetxt makes of it; 00501 and 1e3 are names
MISSING = ("", "nan", "na")      # in small letters
INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]*(e[+-]?[0-9]+)?)?", re.IGNORECASE)


def labels_from(texts, known=None):
    """Labels as they were meant, integers or texts: what the classes of the `Model` are, or as they are written.

    Beside integers, NaN and NA stand for a label that is missing, as an empty cell does: "" among the texts returned.
    """
    texts = np.char.strip(np.asarray(texts, str))
    distinct, place = np.unique(texts, return_inverse=True)
    given = ~np.isin(np.char.lower(distinct), MISSING)
    if known is None:
        are_numbers = all(map(INTEGER.fullmatch, distinct[given].tolist()))
    else:
        are_numbers = known.classifier.classes_.dtype.kind in "iubf"
    if not are_numbers:
        return texts
    try:
        numbers = [_whole(text) for text in distinct[given].tolist()]
    except (ValueError, ArithmeticError):
        return texts
    return np.array(numbers, np.int64)[place] if given.all() else np.where(given[place], texts, "")


def _whole(text):
    """The integer of 64 bits that a text stands for, every digit of it; an error where it stands for none."""
    number = Decimal(text)
    if not -2**63 <= number < 2**63 or number != number.to_integral_value():
        raise ValueError(text)
    return int(number)


def read_parquet(path, *, label, known=None):
    """As `read_csv`, of a Parquet file, by pyarrow."""
    with open(path, "rb"):
        pass
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise ImportError(f"{path} is read by pyarrow, which is not installed.") from None
    table = parquet.read_table(path)
    index = index_of_rows(table.schema)
    table = table.select([j for j, name in enumerate(table.column_names) if name not in index])
    names = list(map(str, table.column_names))
    place, wanted = _places(path, names, len(names), label, known)
    refuse_lists(path, table.schema, wanted)
    columns = []
    for j in wanted:
        column = table.column(j).to_numpy()
        if column.dtype.kind not in "fiub":
            raise ValueError(f"{path}, column {names[j]!r} holds {table.schema.types[j]}, not numbers; --label names "
                             "the column of labels.")
        columns.append(column)
    single = all(column.dtype == np.float32 for column in columns)
    X = np.column_stack([column.astype(np.float32 if single else float) for column in columns])
    _refuse_gaps(path, X, names, wanted)
    return Table(X, None if place is None else _labels_of(table.column(place), known), [names[j] for j in wanted],
                 None if place is None else names[place])


def _labels_of(column, known):
    """Labels of an Arrow column: its whole numbers and booleans, or what its texts stand for; objects where some are
    missing."""
    y = np.asarray(column)
    if y.dtype.kind in "iub" or missing(y).any():
        return y
    return labels_from(y, known)
