"""What SLND's fit leaves that was stopped before its first pass, or its first Newton step, had ended."""

import numpy as np

from cmargin.data.memory.shared_start import sample_rows

STOPS = ("max_time", "interrupted")


def ridge_if_better(estimator, fit, store, home, Y, weight, units):
    """Give ``fit`` the weights of one ridge regression of all codes, where they are right about more rows of a sample.

    Y (n_rows, n_problems) is the sparse indicator of the labels; ``store`` sets what the estimator predicts with.
    ``units``, an `InUnits`, has the rows that the weights of ``fit`` are of. Weights may be 0 still: with hundreds of
    classes preparations alone take a second.
    """
    if fit.stopped not in STOPS or (any(fit.history.values()) and np.any(fit.W)) or not home.in_memory:
        return
    W, bias = units.home.score_blocks(Y, weight, 1).ridge_start(estimator.fit_intercept, 0.0)
    if len(W) < len(fit.W):                      # of two classes an optimum has a row of weights each
        W, bias = np.concatenate([-W, W]) / 2, np.concatenate([-bias, bias]) / 2
    rows = sample_rows(home, np.arange(home.n_rows), Y.shape[1])
    sample = home.take(rows, home.dtype), Y[rows].toarray() > 0, None if weight is None else weight[rows]
    store(fit)
    before, reached = right(estimator, *sample), (fit.W, fit.bias)
    if estimator.loss_ == "logistic":
        bias = bias - estimator._prior_correction() * estimator.fit_intercept     # ridge codes are of all rows
    fit.W, fit.bias, fit.from_ridge = W.astype(home.dtype), bias, True
    store(fit)
    if not right(estimator, *sample) > before:
        (fit.W, fit.bias), fit.from_ridge = reached, False
    elif hasattr(fit, "gap"):
        fit.objective = fit.gap = np.inf         # those of other weights


def right(estimator, X, truth, weight):
    """Weighted share of labels (n, n_problems) that the estimator is right about."""
    scores = np.asarray(estimator.decision_function(X))
    if truth.shape[1] == 1 or estimator._multilabel:
        found = ((scores.reshape(truth.shape) > 0) == truth).mean(axis=1)
    else:
        found = truth[np.arange(len(truth)), scores.argmax(axis=1)]
    return np.average(found, weights=weight)
