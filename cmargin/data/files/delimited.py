"""Cells of text tables (CSV, TSV) in UTF-8, compressed or not, read by pandas where it is installed."""

import codecs
import csv
import io
import re
import warnings
from contextlib import contextmanager

import numpy as np

from cmargin.data.files.text import opened_text

DELIMITERS = ",;\t "             # The delimiter is the first of these that the first line has.
UTF_16 = {codecs.BOM_UTF16_LE: "FF FE", codecs.BOM_UTF16_BE: "FE FF"}       # by the byte order mark


class NotANumber(ValueError):
    """A cell in a column of numbers that holds none."""


def first_row(path, delimiter=""):
    """Return (the cells of the first line, the delimiter, which is taken from that line if not given)."""
    with _decoded(path) as file:
        first = file.readline()
        if not first.strip():
            raise ValueError(f"{path} begins with an empty line, or is empty.")
        delimiter = delimiter or _delimiter(path, first)
        cells = next(csv.reader([first.strip("\r\n")], delimiter=delimiter, skipinitialspace=True))
    return [cell.strip() for cell in cells], delimiter


def read_cells(path, delimiter, n_columns, numbers, text, skip):
    """Return (the columns at the positions ``numbers`` as a float64 array, the column at ``text`` as texts or None).

    ``n_columns`` is the length of the first line, which all rows must have, and ``skip`` how many lines come before
    the first row. Empty cells and "NA" among numbers are NaN; other cells that are no numbers raise `NotANumber`.
    """
    found = _by_pandas(path, delimiter, n_columns, numbers, text, skip)
    return _by_csv(path, delimiter, n_columns, numbers, text, skip) if found is None else found


def read_texts(path, delimiter, n_columns, skip):
    """The cells of all columns as an (n, n_columns) array of texts; parameters as of `read_cells`."""
    with _decoded(path) as file:
        rows = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
        for _ in range(skip):
            next(rows)
        found = []
        for number, row in enumerate(filter(None, rows), 1):
            _refuse_length(path, number, row, n_columns, n_columns - 1)
            found.append(row[:n_columns])
    return np.array(found, str).reshape(len(found), n_columns)


@contextmanager
def _decoded(path):
    """The open text of a file; ValueError, with the line, where it is no UTF-8, and for what `csv` does not read."""
    try:
        with opened_text(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
            yield text
    except UnicodeDecodeError:
        raise ValueError(_other_encoding(path)) from None
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as a table of text: {error}.") from None


def _other_encoding(path):
    """Return a message that names the first line which is no UTF-8, or UTF-16 where the file is in it."""
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
    return f"{path} is not UTF-8 text."                      # The file was changed in the meantime.


def _delimiter(path, first):
    """Return the first of `DELIMITERS` that the first line has outside quotes."""
    bare = re.sub(r'"[^"]*"', "", first.strip())
    if "," in bare and ";" in bare:
        raise ValueError(f"{path} has commas and semicolons in its first line, and cells end at one of them: write "
                         "numbers with a decimal point, texts that hold such characters in quotes.")
    return next((d for d in DELIMITERS if d in bare), ",")


def _by_pandas(path, delimiter, n_columns, numbers, text, skip):
    """`read_cells`; None where pandas is not installed or rows differ in length, which `_by_csv` explains."""
    try:
        import pandas
    except ImportError:
        return None
    found = _all_numbers(pandas, path, delimiter, n_columns, numbers, text, skip)
    if found is not None:
        return found
    try:
        with _decoded(path) as file:
            frame = pandas.read_csv(file, sep=delimiter, header=None, skiprows=skip, dtype=str, na_filter=False,
                                    skipinitialspace=True)
    except pandas.errors.EmptyDataError:
        return np.empty((0, len(numbers))), None
    except pandas.errors.ParserError:
        return None
    if frame.shape[1] != n_columns:
        return None
    found = np.empty((len(frame), len(numbers)))
    for k, j in enumerate(numbers):
        column = frame.iloc[:, j].to_numpy(object)
        try:
            found[:, k] = column                 # as Python reads them; pandas before 3 is off in the last digit
        except (ValueError, TypeError):
            found[:, k] = [_number(path, number, j, str(cell)) for number, cell in enumerate(column, 1)]
    return found, None if text is None else frame.iloc[:, text].to_numpy(str)


def _all_numbers(pandas, path, delimiter, n_columns, numbers, text, skip):
    """`read_cells` of a table without gaps, parsed as it is read; None for any other, which takes its texts apart."""
    kinds = {**dict.fromkeys(range(n_columns), str), **dict.fromkeys(numbers, float)}
    try:
        with _decoded(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")      # pandas 3.1 reads every digit, and warns of being asked to
            frame = pandas.read_csv(file, sep=delimiter, header=None, skiprows=skip, dtype=kinds, na_filter=False,
                                    skipinitialspace=True, float_precision="round_trip")
    except (ValueError, OverflowError):          # those of pandas are among these
        return None
    if frame.shape[1] != n_columns:
        return None
    found = np.ascontiguousarray(frame[list(numbers)].to_numpy(float))
    return None if np.isnan(found).any() else (found, None if text is None else frame[text].to_numpy(str))


def _by_csv(path, delimiter, n_columns, numbers, text, skip):
    """`read_cells` without pandas."""
    found, texts, last = [], [], max([*numbers, text or 0])
    with _decoded(path) as file:
        rows = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
        for _ in range(skip):
            next(rows)
        for number, row in enumerate(filter(None, rows), 1):
            _refuse_length(path, number, row, n_columns, last)
            found.append([_number(path, number, j, row[j]) for j in numbers])
            texts.append("" if text is None else row[text])
    return np.array(found, float).reshape(len(found), len(numbers)), None if text is None else np.array(texts, str)


def _refuse_length(path, number, row, n_columns, last):
    """Raise where a row has no cell at ``last``, or too many: an empty one may be, behind a delimiter at its end."""
    if len(row) <= last or any(map(str.strip, row[n_columns:])):
        more = "more" if len(row) < n_columns else "fewer"
        raise ValueError(f"{path}, row {number}, has {len(row)} cells where the first line has {more}.")


def _number(path, number, j, cell):
    try:
        return float(cell) if cell.strip() else np.nan
    except ValueError:
        if cell.strip().lower() == "na":
            return np.nan
        raise _not_a_number(path, number, j, cell) from None


def _not_a_number(path, number, j, cell):
    return NotANumber(f"{path}, row {number}, column {j + 1}: {cell.strip()[:40]!r} is no number.")
