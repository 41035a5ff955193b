"""Bad numbers named in one sentence."""

import sys
from numbers import Integral, Real

import numpy as np

from cmargin.margins._batches import as_real


def positive_number(value, name):
    """``value`` as a float, positive and finite."""
    if not isinstance(value, Real) or not sys.float_info.min <= value <= sys.float_info.max:
        raise ValueError(f"{name} must be a positive finite number, got {value!r}")
    return float(value)


def positive_array(values, name):
    """``values`` as a float64 array of positive finite numbers."""
    values = as_real(values, name).astype(np.float64)
    bad = values[~((values >= sys.float_info.min) & (values < np.inf))]
    if bad.size:
        raise ValueError(f"{name} must be positive and finite, got {bad.flat[0]:g}")
    return values


def nonnegative_number(value, name):
    if not isinstance(value, Real) or not 0 <= value <= sys.float_info.max:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def confidence(delta):
    """``delta`` as a float, strictly between 0 and 1."""
    if not isinstance(delta, Real) or not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta!r}")
    return float(delta)


def count(value, name):
    if not isinstance(value, Integral) or not 1 <= value <= sys.float_info.max:
        raise ValueError(f"{name} must be a whole number of at least 1 in the range of doubles, got {value!r}")
    return int(value)
