"""Labels of an indicator that no row has, or every row: nothing can be learned, and their prediction is constant.

A fold of cross-validation often lacks the positives of a rare label. As `sklearn.multiclass.OneVsRestClassifier` does,
such a label is predicted as it was met, and one warning names it.
"""

import numpy as np

from cmargin._estimators.at_caller import warn_at_caller


def signs_of(n_positives, n_rows):
    """(n_labels,) of -1 where no row has the label, 1 where every row has it, 0 where there are rows of both signs."""
    n_positives = np.asarray(n_positives)
    return np.where(n_positives == 0, -1, np.where(n_positives == n_rows, 1, 0)).astype(np.int8)


def signs_met(Y, weight):
    """`signs_of` the columns of the sparse indicator ``Y``, by the rows of positive weight; None: all."""
    counted = np.ones(Y.shape[0]) if weight is None else (weight > 0).astype(float)
    return signs_of(counted @ Y, counted.sum())


def without_full_columns(Y, signs):
    """The sparse indicator ``Y`` without positives where ``signs`` is 1: such a problem has no rows to visit then."""
    if not (signs > 0).any():
        return Y
    Y = Y.multiply(signs < 1).tocsc()
    Y.eliminate_zeros()
    return Y


def told_constant(W, bias, signs, scores):
    """Weights and intercepts of which those with a sign other than 0 are zero, and (n_labels,) ``scores``."""
    constant = signs != 0
    if not constant.any():
        return W, bias
    return np.where(constant[:, None], 0, W).astype(W.dtype), np.where(constant, scores, bias)


def warn_of_constant(signs):
    """One warning that names the labels whose prediction is constant, if there are any."""
    parts = [f"{_named(np.flatnonzero(signs == sign))} {where} training examples"
             for sign, where in ((-1, "absent from all"), (1, "present in all")) if (signs == sign).any()]
    if parts:
        warn_at_caller(f"{' and '.join(parts)}: there is nothing to learn.")


def warn_of_folds(Y, folds):
    """One warning of labels of the sparse indicator ``Y`` that are constant in training rows of a fold, but not in all.

    ``folds``: pairs of training and test rows.
    """
    whole = signs_met(Y, None)
    constant = {number: found for number, (train, _) in enumerate(folds, 1)
                if len(found := np.flatnonzero(signs_met(Y[train], None) != whole))}
    if constant:
        labels = np.unique(np.concatenate(list(constant.values())))
        warn_at_caller(f"{_named(labels)} absent from, or present in, all training examples of some folds, numbers "
                       f"{', '.join(map(str, constant))} of {len(folds)}: there is nothing to learn.")


def _named(labels):
    several = len(labels) > 1
    return (f"Label{'s' * several} {', '.join(map(str, labels[:5]))}{', ...' * (len(labels) > 5)} "
            f"{'are' if several else 'is'}")
