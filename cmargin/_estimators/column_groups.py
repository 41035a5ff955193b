"""``groups=``: which columns a penalty holds at zero together, as users say it."""

import numbers

import numpy as np

from cmargin._estimators.validation import InvalidParameterError
from cmargin.solvers.penalty import ColumnGroups, GroupNorms


def check_groups(estimator):
    """Raise unless ``groups`` is None or an array-like; `numbers_of_groups` checks the rest, once X is known."""
    groups = getattr(estimator, "groups", None)
    if groups is not None and not isinstance(groups, (list, tuple)) and np.ndim(groups) == 0:
        raise InvalidParameterError(f"The 'groups' parameter of {type(estimator).__name__} must be an array-like or "
                                    f"None. Got {groups!r} instead.")


def numbers_of_groups(groups, n_features):
    """(n_features,) the number of every column's group, from 0 up; ``groups`` as `SmSVMClassifier` takes them.

    ValueError where it has another length, or where lists of columns overlap, are empty or leave columns out.
    """
    lists = isinstance(groups, (list, tuple))
    if all(np.ndim(group) == 0 for group in groups) if lists else np.ndim(groups) == 1:
        return _of_labels(np.asarray(groups), n_features)
    of = np.full(n_features, -1)
    for number, group in enumerate(groups):
        columns = np.asarray(group)
        if columns.ndim != 1 or not columns.size:
            raise ValueError(f"groups must have one label for each column, or be lists of columns that are not empty; "
                             f"groups[{number}] is {group!r}.")
        if columns.dtype.kind not in "iu" or columns.min() < 0 or columns.max() >= n_features:
            raise ValueError(f"groups must be integer indices in [0, {n_features - 1}]; groups[{number}] is {group!r}.")
        if len(np.unique(columns)) < len(columns) or (of[columns] >= 0).any():
            twice = next(j for j in columns.tolist() if of[j] >= 0 or (columns == j).sum() > 1)
            raise ValueError(f"groups must not overlap; column {twice} is in more than one.")
        of[columns] = number
    if (of < 0).any():
        raise ValueError(f"groups must have every column; column {int(np.flatnonzero(of < 0)[0])} is in none.")
    return of


def _of_labels(labels, n_features):
    if labels.shape != (n_features,):
        raise ValueError(f"groups has shape {labels.shape} but the input data X has {n_features} features.")
    if labels.dtype.kind == "O" and not all(isinstance(label, (str, numbers.Integral)) for label in labels):
        raise ValueError("groups must be labels of columns: integers or texts.")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("groups contains NaN or infinity.")
    return np.unique(labels.astype(str) if labels.dtype.kind == "O" else labels, return_inverse=True)[1].ravel()


def grouped(penalty, groups, n_features, intercept):
    """``penalty`` with norms of groups of columns in place of absolute values, where there are ``groups`` and an l1.

    ``intercept``: there is one that is penalised; it is a group of its own.
    """
    if groups is None:
        return penalty
    of = numbers_of_groups(groups, n_features)
    if not penalty.l1 > 0:
        return penalty
    return GroupNorms(penalty.l2, penalty.l1, ColumnGroups(np.append(of, of.max() + 1) if intercept else of))
