"""Labels that are written as text: integers or names; one a row, or several."""

import re
from decimal import Decimal

import numpy as np
import scipy.sparse as sp

MISSING = ("", "nan", "na")      # in small letters
# Integers are written as 1, +1, 1.0 or as np.savetxt does; 00501 and 1e3 are names.
INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]*(e[+-]?[0-9]+)?)?", re.IGNORECASE)


def labels_from(texts, known=None):
    """Return int64 labels where all texts are integers, and the texts, without blanks at their ends, otherwise.

    For a `Model` ``known``, the type of its classes decides. Beside integers, NaN and NA stand for a missing label, as
    an empty cell does: they become "" among the texts returned.
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
        numbers = [_integer(text) for text in distinct[given].tolist()]
    except (ValueError, ArithmeticError):
        return texts
    return np.array(numbers, np.int64)[place] if given.all() else np.where(given[place], texts, "")


def _integer(text):
    """Return the integer that a text stands for, with every digit; an error for fractions and more than 64 bits."""
    number = Decimal(text)
    if not -2**63 <= number < 2**63 or number != number.to_integral_value():
        raise ValueError(text)
    return int(number)


def indicator_of(path, tagged, known=None):
    """Return (CSR indicator, names) of `Tagged` rows; (None, None) where no row has a label.

    The names are those of the `Model` ``known``, and labels that it does not know have columns behind theirs.
    """
    if not tagged.labels:
        return None, None
    texts, place = np.unique(np.array(tagged.labels), return_inverse=True)
    found = labels_from(texts).tolist()
    if "" in found:
        raise ValueError(f"{path} has a label {str(texts[found.index('')])!r}, which stands for a missing one.")
    if known is not None:
        names = known.labels
    else:
        names = np.unique(found) if tagged.n_labels is None else np.arange(tagged.n_labels)
    column = {str(name): j for j, name in enumerate(names.tolist())}
    for name in found:
        column.setdefault(str(name), len(column))
    columns = np.array([column[str(name)] for name in found])[place]
    shape = len(tagged.starts) - 1, len(column)
    indicator = sp.csr_matrix((np.ones(len(place), np.int8), columns, tagged.starts), shape=shape)
    indicator.sum_duplicates()
    indicator.data[:] = 1                                # a label may be named twice
    return indicator, names


def indicator_of_array(path, y, known=None):
    """Return (CSR indicator, names) of an array with a column for each label, which holds 0 and 1, or -1 and 1.

    The names are those of the `Model` ``known``, or the numbers of the columns from 0.
    """
    if y.dtype.kind not in "iubf" or not (((y == 0) | (y == 1)).all() or (abs(y) == 1).all()):
        raise ValueError(f"{path} has labels of {y.shape[1]} columns, which must then hold 0 and 1, or -1 and 1: an "
                         "indicator of the labels of every row.")
    if known is not None and len(known.labels) != y.shape[1]:
        raise ValueError(f"{path} has an indicator of {y.shape[1]} labels; the model was trained on "
                         f"{len(known.labels)}.")
    return sp.csr_matrix(y > 0, dtype=np.int8), np.arange(y.shape[1]) if known is None else known.labels
