"""`SmSVMClassifier.fit` with an ``offset``: scores that every row has beside <w, x> + b while the fit goes on.

A row of sign y and offset o has the margin y (<w, x> + b + o), so that its slack begins at t = 1 - y o where it is 1
without. Rows know that (`DataSource.row_pass`), the bound counts it, and the dual's sweeps do not have it.
"""

import time
from dataclasses import replace

import numpy as np
from sklearn.utils import check_array

from cmargin._core.losses._losses import evaluate
from cmargin._estimators.apart import weights_differ
from cmargin._estimators.base import open_data
from cmargin._estimators.pruned import refuse_stored
from cmargin._estimators.smsvm_fit import SmSVMFit
from cmargin.data.places import on_workers


def fit_with_offset(estimator, X, y, sample_weight, comm, offset):
    """What `fit` does where there is an ``offset``."""
    if comm is not None or on_workers(X):
        raise ValueError("offset= does not go with comm= or Dask collections yet; it needs the rows of one process.")
    if estimator.checkpoint is not None:
        raise ValueError("offset= does not go with checkpoint= yet; fit without one of them.")
    for name, value in (("linear_solver", "dual"), ("line_search", "quadratic")):
        if getattr(estimator, name, None) == value:
            raise ValueError(f"offset= does not go with {name}={value!r}.")
    refuse_stored(estimator, "offset=")
    begin, shortfall = time.perf_counter(), None
    with open_data(estimator, X, y, sample_weight) as (source, weight, _):
        if source.storage == "device":
            raise ValueError("offset= does not go with rows on a device yet; give NumPy arrays.")
        if weights_differ(estimator, source, weight):
            raise ValueError("offset= does not go with weights of each label; give sample_weight, one a row.")
        labels, weights, total_weight = estimator._labels_and_weights(source, weight)
        if estimator._goes_on:
            estimator._check_last_fit(source, labels.classes, labels.multilabel)
        offset = checked_offset(offset, source.n_rows, len(labels))
        fit = OffsetFit(offset, estimator, source, labels, weights, total_weight, begin)
        shortfall = estimator._leave(*fit.trained())
    estimator._warn_of(shortfall)


def checked_offset(offset, n_rows, n_problems):
    """(n_rows, n_problems) float64, finite."""
    offset = check_array(offset, ensure_2d=False, dtype=np.float64, input_name="offset", ensure_min_samples=0)
    if offset.ndim == 1 and n_problems > 1:
        raise ValueError(f"offset of shape {offset.shape} is for two classes; here are {n_problems} problems: give one "
                         f"of shape ({n_rows}, {n_problems}).")
    if offset.ndim == 1:
        offset = offset[:, None]
    if offset.shape != (n_rows, n_problems):
        wanted = f"({n_rows},)" if n_problems == 1 else f"({n_rows}, {n_problems})"
        raise ValueError(f"offset must have the shape {wanted}, that of the scores; got {offset.shape}.")
    return offset


class OffsetFit(SmSVMFit):
    """``offset``: (n_rows, n_problems)."""

    def __init__(self, offset, *given):
        self.offset = offset
        super().__init__(*given)
        self.shared.about = replace(self.shared.about, has_dual=False)

    def offset_of(self, c):
        return 1 - self.labels[c] * self.offset[:, c]

    def start_all(self, out_of_time):
        """Nothing: the start that problems share knows no offset; weights 0 are that of each."""

    def best_of(self, c):
        result = self.results[c]
        at_zero = result.status == "waiting" and not result.w.any()
        return result.w, (self._loss_at_zero(c) if at_zero else result.objective)

    def _loss_at_zero(self, c):
        loss, (value, slope, curvature) = self.problem.loss, np.empty((3, self.n))
        evaluate(loss.id, self.labels[c] * self.offset[:, c], value, slope, curvature, *loss.numbers)
        return float(np.average(value, weights=self.weights))
