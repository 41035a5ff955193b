"""Labels that are written as text: integers or names."""

import re
from decimal import Decimal

import numpy as np

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
