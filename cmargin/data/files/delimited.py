"""Cells of text tables (CSV, TSV) in UTF-8, compressed or not, read in blocks: by pyarrow or pandas if installed."""

import codecs
import csv
import io
import re
import warnings
from contextlib import contextmanager

import numpy as np

from cmargin.data.files.text import opened_text

BLOCK = 1 << 19                  # bytes of text that pyarrow parses together; it holds some forty such
PIECE = 9 << 22                  # bytes of rows that lie together while there is no telling how many there are
CELLS = 1 << 19                  # cells that pandas, or Python, parses together
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
    given = path, delimiter, n_columns, numbers, text, skip
    for way in (_by_arrow, _by_pandas):
        found = way(*given)
        if found is not None:
            return found
    return _by_csv(*given)


def read_columns(path, delimiter, n_columns, skip, columns, texts, numbers_of):
    """Return {position: array} of the positions ``columns``: texts of those in ``texts``, and what ``numbers_of`` makes
    of the texts of the others, an array of numbers or of texts.

    Other parameters are as of `read_cells`. A column that has numbers in one block and texts in another is of texts,
    and the file is read again for it.
    """
    blocks, texts = {j: [] for j in columns}, set(texts)
    for rows in _blocks(path, delimiter, n_columns, skip, n_columns - 1):
        for j in columns:
            cells = [row[j] for row in rows]
            blocks[j].append(np.array(cells, str) if j in texts else numbers_of(cells))
    mixed = {j for j in columns if len({block.dtype.kind for block in blocks[j]}) > 1}
    if mixed:
        del blocks
        return read_columns(path, delimiter, n_columns, skip, columns, texts | mixed, numbers_of)
    return {j: np.concatenate(blocks.pop(j) or [np.empty(0)]) for j in columns}


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


def _by_arrow(path, delimiter, n_columns, numbers, text, skip):
    """`read_cells` of a table that has neither gaps nor quotation marks; None for any other, and without pyarrow."""
    try:
        import pyarrow
        from pyarrow import csv as arrow
    except ImportError:
        return None
    names = [*map(str, range(n_columns))]
    kinds = {names[j]: pyarrow.float64() for j in numbers}
    if text is not None:
        kinds[names[text]] = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    rows, texts = _Rows(len(numbers)), []
    try:
        with opened_text(path) as file, arrow.open_csv(
                file, arrow.ReadOptions(use_threads=False, block_size=BLOCK, skip_rows=skip, column_names=names),
                arrow.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                arrow.ConvertOptions(column_types=kinds, include_columns=list(kinds), null_values=[])) as batches:
            for batch in batches:
                block = np.empty((batch.num_rows, len(numbers)))
                for k in range(len(numbers)):
                    block[:, k] = batch.column(k).to_numpy()
                if np.isnan(block).any():
                    return None
                rows.add(block)
                if text is not None:
                    cells = batch.column(len(numbers))
                    distinct = np.array(cells.dictionary.to_pylist(), str)
                    if (np.char.find(distinct, '"') >= 0).any():     # blanks before it make it another's text
                        return None
                    texts.append(distinct[cells.indices.to_numpy()])
    except (pyarrow.ArrowException, ValueError, KeyError):
        return None
    return rows.whole(), None if text is None else _together(texts)


def _together(texts):
    return np.concatenate([np.empty(0, str), *texts])


class _Rows:
    """Rows of numbers to which blocks of rows are added.

    They lie in large pieces (above the 32 MiB from which glibc maps every array by itself), whose memory goes back to
    the system when they are given up; that of many small arrays would not.
    """

    def __init__(self, n_columns):
        self.pieces, self.n, self.n_columns = [], 0, n_columns
        self.size = max(1, PIECE // (8 * max(1, n_columns)))

    def add(self, block):
        while len(block):
            free = len(self.pieces) * self.size - self.n
            if not free:
                self.pieces.append(np.empty((self.size, self.n_columns)))
                free = self.size
            at = self.size - free
            part, block = block[:free], block[free:]
            self.pieces[-1][at:at + len(part)] = part
            self.n += len(part)

    def whole(self):
        """The array of them all; the pieces are given up while it is made."""
        if len(self.pieces) == 1 and 2 * self.n > self.size:
            return self.pieces.pop()[:self.n]
        found, end = np.empty((self.n, self.n_columns)), self.n
        while self.pieces:
            lo = (len(self.pieces) - 1) * self.size
            found[lo:end] = self.pieces.pop()[:end - lo]
            end = lo
        return found


def _by_pandas(path, delimiter, n_columns, numbers, text, skip):
    """`read_cells`; None where pandas is not installed or rows differ in length, which `_by_csv` explains."""
    try:
        import pandas
    except ImportError:
        return None
    given = pandas, path, delimiter, n_columns, skip
    kinds = {**dict.fromkeys(range(n_columns), str), **dict.fromkeys(numbers, float)}
    rows, texts = _Rows(len(numbers)), []
    try:
        for frame in _frames(*given, kinds, float_precision="round_trip"):
            if frame.shape[1] != n_columns:
                break
            block = frame[list(numbers)].to_numpy(float)
            if np.isnan(block).any():
                break
            rows.add(block)
            texts += [] if text is None else [frame[text].to_numpy(str)]
        else:
            return rows.whole(), None if text is None else _together(texts)
    except (ValueError, OverflowError):          # those of pandas are among these; a cell that is no number, or a gap
        pass
    rows, texts = _Rows(len(numbers)), []
    try:
        for frame in _frames(*given, str):
            if frame.shape[1] != n_columns:
                return None
            block = np.empty((len(frame), len(numbers)))
            for k, j in enumerate(numbers):
                block[:, k] = _numbers(path, rows.n, j, frame.iloc[:, j].to_numpy(object))
            rows.add(block)
            texts += [] if text is None else [frame.iloc[:, text].to_numpy(str)]
    except pandas.errors.EmptyDataError:
        return np.empty((0, len(numbers))), None
    except pandas.errors.ParserError:
        return None
    return rows.whole(), None if text is None else _together(texts)


def _frames(pandas, path, delimiter, n_columns, skip, dtype, **more):
    """Frames of the rows, one block after the other."""
    with _decoded(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")          # pandas 3.1 reads every digit, and warns of being asked to
        with pandas.read_csv(file, sep=delimiter, header=None, skiprows=skip, dtype=dtype, na_filter=False,
                             skipinitialspace=True, chunksize=max(1, CELLS // n_columns), **more) as frames:
            yield from frames


def _numbers(path, done, j, column):
    """The cells of a column as floats; ``done`` rows come before them."""
    try:
        return column.astype(float)              # as Python reads them; pandas before 3 is off in the last digit
    except (ValueError, TypeError):
        return [_number(path, number, j, str(cell)) for number, cell in enumerate(column, done + 1)]


def _by_csv(path, delimiter, n_columns, numbers, text, skip):
    """`read_cells` without pandas."""
    found, texts = _Rows(len(numbers)), []
    for rows in _blocks(path, delimiter, n_columns, skip, max([*numbers, text or 0])):
        found.add(np.array([[_number(path, number, j, row[j]) for j in numbers]
                            for number, row in enumerate(rows, found.n + 1)], float).reshape(len(rows), len(numbers)))
        texts += [] if text is None else [np.array([row[text] for row in rows], str)]
    return found.whole(), None if text is None else _together(texts)


def _blocks(path, delimiter, n_columns, skip, last):
    """Lists of rows, each of which has a cell at ``last``; lines of nothing but blanks are none, as pandas has it."""
    with _decoded(path) as file:
        rows = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
        for _ in range(skip):
            next(rows)
        found, size = [], max(1, CELLS // n_columns)
        rows = (row for row in rows if row[1:] or any(map(str.strip, row)) or (row and n_columns == 1))
        for number, row in enumerate(rows, 1):
            _refuse_length(path, number, row, n_columns, last)
            found.append(row)
            if len(found) == size:
                yield found
                found = []
        if found:
            yield found


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
