"""What `SLNDClassifier` and its like tell a user whose fit failed, or ended before its end."""

import numpy as np


def not_invertible(estimator, error, rows, about):
    """Whose second moment cannot be inverted, and what to do about it."""
    advice = f"Scale the features (the largest entry is {rows.home.largest():.2g}), for instance by StandardScaler"
    name = type(estimator).__name__
    if error.n_groups == 1:
        return f"{name}: the second moment of the rows holds NaN or infinity and cannot be inverted. {advice}."
    label = about["classes_"].tolist()[error.group]
    whose = f"label column {label}" if about["_multilabel"] else f"class {label!r}"
    return (f"{name}: the second moment of the rows at the weights of {whose} holds NaN or infinity and cannot be "
            f"inverted anew. {advice}, lower step_size, or leave out hessian_refresh.")


def shortfall(estimator, of_columns, fit):
    """How far the fit got and what to try, and what is said ``of_columns``; None where it went to its end."""
    risks, text = fit.history["objective"], None
    if fit.diverged.any():
        text = (f"{int(fit.diverged.sum())} of {len(fit.diverged)} classes overflowed in the last pass and keep their "
                "weights from before it; scale the features or give a smaller step_size.")
    elif len(risks) and not np.isfinite(risks[-1]):
        text = "the risk is beyond the range of numbers; scale the features or give a smaller step_size."
    elif fit.stopped == "max_time" and fit.from_ridge:
        text = (f"stopped by max_time={estimator.max_time} before the first pass had ended; the weights are those of a "
                "ridge regression of all classes, from a sample of the rows. Raise max_time to train.")
    elif fit.stopped == "max_time":
        text = (f"stopped by max_time={estimator.max_time} after {fit.passes} passes of {estimator.max_passes}; the "
                "weights reached are kept. Raise max_time to train longer.")
    elif estimator.tol is not None and fit.stopped == "max_passes" and fit.passes > 1:
        text = (f"after {fit.passes} passes the risk still fell by {risks[-2] - risks[-1]:.2g} in the last one "
                f"(tol={estimator.tol}); raise max_passes.")
    said = [sentence for sentence in (text, of_columns) if sentence is not None]
    return f"{type(estimator).__name__}: {' Also: '.join(said)}" if said else None
