"""Targets of a regression on the command line: numbers beside the rows, where other methods have labels."""

import numpy as np

from cmargin.cli.columns import is_numeric, numbers_of
from cmargin.cli.labels import labels_from
from cmargin.cli.options import REGRESSORS
from cmargin.data.arrays import is_sparse
from cmargin.data.containers import missing

SHOWN = 40                     # characters of a text in a message


def are_targets(options, known=None):
    """Whether what stands beside the rows are targets, by the `Model` ``known`` or by the method that is asked for."""
    return known.regresses if known is not None else getattr(options, "method", None) in REGRESSORS


def beside_rows(texts, options, known=None):
    """Labels as `labels_from` has them, or targets as numbers, NaN for a missing one, where all of them are."""
    return numbers_of(texts) if are_targets(options, known) else labels_from(texts, known)


def checked_targets(path, y):
    """Finite float64 targets (n,) or (n, n_targets); ValueError for texts, missing and infinite ones."""
    y = np.asarray(y.toarray() if is_sparse(y) else y)
    if y.dtype.kind == "O":
        y = np.array(["" if absent else str(value) for value, absent in zip(y.flat, missing(y).flat, strict=True)],
                     str).reshape(y.shape)
    if not is_numeric(y):
        y = numbers_of(y)
    if not is_numeric(y):
        text = next(text for text in y.ravel().tolist() if not is_numeric(numbers_of([text])))
        raise ValueError(f"{path}: what is taken for targets holds the text {text[:SHOWN]!r}, and a regression fits "
                         "numbers; --label names the column of targets, --method smsvm trains a classifier of texts.")
    bad = np.flatnonzero(~np.isfinite(y.reshape(len(y), -1)).all(axis=1))
    if len(bad):
        raise ValueError(f"{path}, row {bad[0] + 1}: the target is empty, NaN or infinite ({len(bad)} such rows); "
                         "leave such rows out.")
    return y.astype(float, copy=False)


def names_of(estimator):
    """(what each column of predictions is, the names): quantiles of one target, or targets from 0 on."""
    n = np.size(estimator.intercept_)
    if estimator.loss == "quantile" and np.size(estimator.quantile) == n:
        return "quantile", [f"{q:g}" for q in np.atleast_1d(estimator.quantile)]
    return "target", [str(k) for k in range(n)]


def in_words(n, what="target"):
    return f"{n} {what}{'s' * (n > 1)}"
