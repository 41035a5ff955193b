"""What users are told of columns that their numbers, or the method asked for, cannot cope with."""

import numpy as np


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
