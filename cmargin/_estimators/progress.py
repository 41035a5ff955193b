"""Lines of progress: whether they are asked for, and how they are printed. One a pass, look, or fold and penalty."""

import numbers

import numpy as np

from cmargin._estimators.validation import InvalidParameterError


def check_verbose(estimator):
    """Raise unless ``estimator.verbose`` is a bool or a whole number of at least 0."""
    value = estimator.verbose
    if not (isinstance(value, (bool, np.bool_)) or (isinstance(value, numbers.Integral) and value >= 0)):
        raise InvalidParameterError(
            f"The 'verbose' parameter of {type(estimator).__name__} must be an int in the range [0, inf) or an "
            f"instance of 'bool'. Got {value!r} instead.")


def say(estimator, text):
    """Print "<estimator's class> <text>" at once where ``estimator.verbose`` asks for it."""
    if estimator.verbose:
        print(f"{type(estimator).__name__} {text}", flush=True)
