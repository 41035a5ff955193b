"""Rows with several labels each: svmlight text as ``1,5,7 3:0.2 ...``, with or without a first line of three counts.

That line, "rows columns labels", is of the extreme classification repository; there columns and labels are numbered
from 0. A line may have no labels and begin with its columns, and in the repository's files no columns either.
"""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmargin.data.files.text import opened_text


@dataclass
class Tagged:
    """Rows and the labels of each."""

    X: Any                         # (n, m) CSR matrix of float64
    labels: list                   # texts, those of one row after the other
    starts: np.ndarray             # (n + 1,) where those of each row begin, and the end
    n_labels: int | None = None    # where the first line says so; labels are the numbers below

    @property
    def row_of(self):
        """(len(labels),) the row of every label."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def are_tagged(path):
    """Whether the first line of a text has the three counts, some row several labels, or no row a label."""
    with_label = without = False
    with opened_text(path) as file:
        for number, line in enumerate(file):
            words = line.partition(b"#")[0].split(None, 3)
            if (number == 0 and _counts(words) is not None) or (words and b"," in words[0]):
                return True
            if words:
                without, with_label = without or b":" in words[0], with_label or b":" not in words[0]
    return without and not with_label


def read_tagged(path, zero_based, n_features=None):
    """Return `Tagged` rows.

    ``zero_based`` says whether columns are numbered from 0 where the first line has no counts. ``n_features``: columns
    that there are, if they are known. ValueError names the line of what is wrong.
    """
    with opened_text(path) as file:
        lines = [line.partition(b"#")[0].strip() for line in file.read().split(b"\n")]
    counts = _counts(lines[0].split())
    numbers = _rows(path, lines, counts)
    rows = [_parted(lines[number - 1]) for number in numbers]
    labels, starts = _labels(path, numbers, rows, None if counts is None else counts[2])
    X = _features(path, numbers, rows, zero_based or counts is not None)
    whole, who = (n_features, "the model was trained on") if counts is None else (counts[1], "its first line says")
    if whole is not None:
        _refuse_column(path, numbers, X, whole, who, first=int(not zero_based and counts is None))
        X.resize(X.shape[0], whole)
    return Tagged(X, labels, starts, None if counts is None else counts[2])


def _counts(words):
    """(rows, columns, labels) of a first line that has these, or None."""
    are_counts = len(words) == 3 and all(word.isdigit() and len(word) < 10 for word in words)       # below 2^31
    return tuple(map(int, words)) if are_counts else None


def _rows(path, lines, counts):
    """The numbers, from 1, of the lines that are rows."""
    filled = [number for number, line in enumerate(lines, 1) if line]
    if counts is None:
        return filled
    if len(filled) - 1 == counts[0]:
        return filled[1:]
    end = len(lines) if lines[-1] else len(lines) - 1        # the last line ends where the file does
    if end - 1 == counts[0]:                                 # some have neither labels nor columns
        return list(range(2, end + 1))
    raise ValueError(f"{path}, line 1: it says that there are {counts[0]} rows, and {len(filled) - 1} follow.")


def _parted(line):
    """The text of the labels of a row, and that of its columns."""
    words = line.split(None, 1)
    if not words or b":" in words[0]:
        return b"", line
    return words[0], words[1] if len(words) > 1 else b""


def _labels(path, numbers, rows, n_labels):
    """All labels as texts, and where those of each row begin."""
    labels, starts = [], np.zeros(len(rows) + 1, np.int64)
    for i, (number, (text, _)) in enumerate(zip(numbers, rows, strict=True)):
        try:
            found = text.decode().split(",") if text else []
        except UnicodeDecodeError:
            raise ValueError(f"{path}, line {number}: its labels are no text in UTF-8.") from None
        if "" in found:
            raise ValueError(f"{path}, line {number}: between two commas, or at an end, a label is missing.")
        if n_labels is not None:
            wrong = next((label for label in found if not _is_below(label, n_labels)), None)
            if wrong is not None:
                raise ValueError(f"{path}, line {number}: the label {wrong}; by the first line there are {n_labels}, "
                                 f"numbered from 0 to {n_labels - 1}.")
        labels += found
        starts[i + 1] = len(labels)
    return labels, starts


def _is_below(label, n_labels):
    return label.isdecimal() and len(label) < 10 and int(label) < n_labels


def _features(path, numbers, rows, zero_based):
    from sklearn.datasets import load_svmlight_file

    def parsed(some):
        return load_svmlight_file(io.BytesIO(b"".join(b"0 %b\n" % text for _, text in some)), zero_based=zero_based)[0]

    try:
        return parsed(rows)
    except (ValueError, OverflowError) as error:
        said = "a column's number is beyond 2**31 - 1" if isinstance(error, OverflowError) else error
    for number, row in zip(numbers, rows, strict=True):
        try:
            parsed([row])
        except (ValueError, OverflowError):
            raise ValueError(f"{path}, line {number}: {said}") from None
    raise ValueError(f"{path}: {said}")


def _refuse_column(path, numbers, X, n_features, who, first):
    """Raise ValueError where a column is beyond the last; ``first``: the number of the first one in the text."""
    beyond = np.flatnonzero(X.indices >= n_features)
    if len(beyond):
        row = int(np.searchsorted(X.indptr, beyond[0], "right")) - 1
        raise ValueError(f"{path}, line {numbers[row]}: column {X.indices[beyond[0]] + first}; {who} {n_features}, "
                         f"numbered from {first} to {n_features - 1 + first}.")
