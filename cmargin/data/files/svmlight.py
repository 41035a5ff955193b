"""Rows and labels of svmlight text, whole or in pieces, by scikit-learn's parser."""

import io
import os

import numpy as np

from cmargin.data.files.text import opened_text

PIECE = 1 << 24              # Bytes of text that are parsed together where a file is read in pieces.
EXACT = 2**53                # The parser makes float64 of labels; from here on they may merge neighbouring integers.


def read_svmlight(path, zero_based, n_features=None, labels=True):
    """Return (X, y): a CSR matrix of float64 and labels, of int64 where all of them are integers.

    ``zero_based`` and ``n_features`` are those of scikit-learn's `load_svmlight_file`. ValueError for text in another
    format names its first such line. ``labels`` False: they are targets of a regression, float64 of any size.
    """
    from sklearn.datasets import load_svmlight_file

    with opened_text(path) as file:
        try:
            X, y = load_svmlight_file(file, zero_based=zero_based, n_features=n_features)
        except OverflowError:
            raise ValueError(f"{path} has a column of a number beyond 2**31 - 1; number its columns anew.") from None
        except ValueError as error:
            raise ValueError(f"{path}{_first_wrong_line(path)}: {error}") from None
    if not labels:
        return X, y
    refuse_long_labels(path, y)
    return X, y.astype(np.int64) if (y == np.rint(y)).all() else y


def svmlight_pieces(path, dtype):
    """Yield (number of the first line, CSR matrix of ``dtype``, labels) of pieces of the text.

    Columns keep their numbers, whether the text counts them from 0 or from 1.
    """
    from sklearn.datasets import load_svmlight_file

    line = 1
    with opened_text(path) as file:
        while piece := file.read(PIECE):
            piece += file.readline()                         # A piece ends with a whole line.
            try:
                X, y = load_svmlight_file(io.BytesIO(piece), dtype=dtype, zero_based=True)
            except (ValueError, OverflowError) as error:     # OverflowError: a column number of more than 64 bits.
                raise ValueError(f"{path!r}, somewhere from line {line} on: {error}") from None
            refuse_long_labels(path, y)
            yield line, X, y
            line += piece.count(b"\n")


def refuse_long_labels(path, y):
    """Raise ValueError for labels of 2**53 and more, which are no longer exact as float64."""
    if (np.abs(y) >= EXACT).any():
        raise ValueError(f"{path!r} has labels of 2**53 and more, not all of which can be told apart in svmlight text; "
                         "number the classes from 0 on.")


def _first_wrong_line(path):
    """Return ", line N" of the first line that is no svmlight text, or "" where the file cannot be read twice."""
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
