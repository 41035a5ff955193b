"""What users are told of a fit: lines while it runs, warnings at the line that called it, columns without digits."""

import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cmargin.solvers.explain import sentence


def say(estimator, text):
    """Print "<estimator's class> <text>" at once where ``estimator.verbose`` asks for it."""
    if estimator.verbose:
        print(f"{type(estimator).__name__} {text}", flush=True)


def note_of(estimator):
    """What prints a line for every `Stage` that begins, where ``verbose`` is 2 or more; else None."""
    return (lambda stage: say(estimator, sentence(stage))) if estimator.verbose >= 2 else None


def warn_at_caller(text, category=UserWarning):
    """A warning at the line that called this package, however deep the call is."""
    level, frame = 1, sys._getframe()                    # 1 is this function
    while frame is not None and frame.f_globals["__name__"].startswith("cmargin."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def warn_of(shortfall):
    """A ConvergenceWarning of this sentence, unless it is None."""
    if shortfall is not None:
        warn_at_caller(shortfall, ConvergenceWarning)


def said_of_columns(estimator, lost, far, dtype):
    """A sentence on columns without digits, or on one beside which steps of single rows see no other; else None.

    ``lost``: places of the first; ``far``: that of the second, or None; ``dtype``: of X.
    """
    if lost:
        what, there = ("columns", "have") if len(lost) > 1 else ("column", "has")
        names = ", ".join(named(estimator, j) for j in lost[:5]) + ", ..." * (len(lost) > 5)
        return (f"{what} {names} {there} a spread of a few spacings of {np.dtype(dtype).name} numbers so far from 0: "
                "the digits that tell rows apart are lost. Take the mean off in more precise numbers first, as "
                "sklearn.preprocessing.StandardScaler does on float64 rows.")
    if far is not None:
        return (f"column {named(estimator, far)} is so large beside others that steps of single rows hardly move "
                "their weights; scale the columns, for instance by sklearn.preprocessing.StandardScaler.")
    return None


def named(estimator, j):
    names = getattr(estimator, "feature_names_in_", None)
    return str(j) if names is None else f"{j} ({names[j]!r})"
