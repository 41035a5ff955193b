"""The numbers that ``cmargin evaluate`` reports of a regression: R2, errors and, for quantiles, pinball losses."""

import numpy as np
from scipy.linalg import norm
from sklearn.metrics import d2_pinball_score, mean_absolute_error, mean_pinball_loss, r2_score

from cmargin.cli.targets import in_words, names_of

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def report(model, table, name):
    """Return (facts, a dict of numbers and texts; curves, a dict of the arrays that plots are drawn from).

    ``name`` is the name of the file of the `Table`, whose targets are checked.
    """
    regressor, y = model.classifier, table.y
    predicted = np.concatenate([np.asarray(regressor.predict(rows), float) for _, rows in model.batches(table.X)])
    predicted = predicted.reshape(len(predicted), -1)
    what, names = names_of(regressor)
    columns = y.reshape(len(y), -1)
    n_targets = 1 if what == "quantile" else len(names)
    if columns.shape[1] != n_targets:
        raise ValueError(f"{name} has {in_words(columns.shape[1])} a row; the model predicts {n_targets}.")
    columns = np.broadcast_to(columns, predicted.shape)
    residuals = columns - predicted
    facts = {"data": {"file": name, "rows": len(y)},
             "residuals": {"quantiles": dict(zip(map(str, LEVELS), np.quantile(residuals, LEVELS).tolist(),
                                                 strict=True))},
             "targets": [{what: called, **of_column(columns[:, k], predicted[:, k], level)}
                         for k, (called, level) in enumerate(zip(names, levels_of(regressor), strict=True))]}
    return facts, {"residuals": residuals, "predicted": predicted, "targets": columns}


def levels_of(regressor):
    """Of every column of predictions the quantile that it is; None: it is none."""
    n = np.size(regressor.intercept_)
    return [None] * n if regressor.loss != "quantile" else np.broadcast_to(regressor.quantile, n).tolist()


@np.errstate(over="ignore", invalid="ignore")                # of huge targets some numbers are not finite
def of_column(y, predicted, level=None):
    """Numbers by their names of one column of targets and predictions (n,); None: undefined."""
    found = {"R2": finite(r2_score(y, predicted)) if len(y) > 1 else None,
             "mean absolute error": finite(mean_absolute_error(y, predicted)),
             "root mean square error": finite(norm(y - predicted) / np.sqrt(len(y)))}      # whose squares may overflow
    if level is not None:
        found |= {"pinball loss": finite(mean_pinball_loss(y, predicted, alpha=level)),
                  "share of it explained": finite(d2_pinball_score(y, predicted, alpha=level)) if len(y) > 1 else None,
                  "targets at or below": float(np.mean(y <= predicted))}
    return found


def finite(value):
    return float(value) if np.isfinite(value) else None
