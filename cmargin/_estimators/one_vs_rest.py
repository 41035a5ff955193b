"""What linear one-vs-rest classifiers share: checks, labels and weights on the way in, predictions on the way out."""

import time
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from cmargin._blas_threads import single_threaded_blas
from cmargin._core._openmp import effective_n_threads
from cmargin._estimators.posteriors import SCORE_ENTRIES
from cmargin._estimators.progress import check_verbose, say
from cmargin._estimators.refusal import keeps_last_fit
from cmargin._estimators.scores import linear_scores
from cmargin._estimators.validation import (
    check_class_weight,
    check_class_weights,
    check_flag,
    check_parameter,
    check_rows,
    encode_labels,
    in_range,
)
from cmargin.passes.score_blocks import ScoreBlocks

INT_MAX = np.iinfo(np.int64).max
POSITIVE = (0.0, np.finfo(float).max, "(0.0, inf)")
# the largest number below 0 that is still there where a library loaded along has switched denormal numbers off
NOT_NEGATIVE = (-np.finfo(float).tiny, np.finfo(float).max, "[0.0, inf)")


class LinearOneVsRest(ClassifierMixin, BaseEstimator):
    """Base of estimators with ``coef_``, ``intercept_``, ``classes_``; they give `_check_parameters` and `_train`."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    # ---------------------------------------------------------------- training

    @keeps_last_fit
    def fit(self, X, y, sample_weight=None):
        """Train from zero (or from the last weights with ``warm_start``).

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            float32 and float64 are kept, C or F order, read-only or memory-mapped, without a copy; CSR likewise.
        y : (n_samples,) labels, or (n_samples, n_labels) indicator
        sample_weight : (n_samples,) array or None

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For parameters, shapes, NaN, infinities, a single class, or an indicator column without a positive.
        """
        begin = time.perf_counter()
        self._check_parameters()
        X, y = check_rows(self, X, y)
        classes, Y, codes = encode_labels(y)
        start = self._warm_start(X, classes, codes is None) if self.warm_start and hasattr(self, "coef_") else None
        weight = self._weights(sample_weight, X, classes, codes)
        self.classes_, self._multilabel = classes, codes is None
        if weight is not None and not weight.all():
            kept = np.flatnonzero(weight)           # rows that count for nothing; the only copy of X
            X, Y, weight = X[kept], Y[kept], weight[kept]
        if weight is not None:
            weight = weight * (len(weight) / weight.sum())
        blocks = ScoreBlocks(X, Y, weight, effective_n_threads(self.n_jobs))
        deadline = None if self.max_time is None else begin + self.max_time
        # a number beyond the range of doubles is told of once, by a warning of ours
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            interruption = self._train(blocks, start, deadline)
        if interruption is not None:
            raise interruption
        return self

    def _check_common(self):
        """Parameters that every subclass has."""
        check_parameter(self, "tol", self.tol, real=POSITIVE)
        check_parameter(self, "max_passes", self.max_passes, integer=(1, INT_MAX, "[1, inf)"))
        check_parameter(self, "max_time", self.max_time, real=POSITIVE, none=True)
        check_parameter(self, "n_jobs", self.n_jobs, integer=(-INT_MAX, INT_MAX, "(-inf, inf)"), none=True)
        check_verbose(self)
        check_class_weight(self, self.class_weight)
        check_parameter(self, "callback", self.callback, none=True, call=True)
        for name in ("fit_intercept", "warm_start"):
            check_flag(self, name, getattr(self, name))

    def _warm_start(self, X, classes, multilabel):
        if X.shape[1] != self.coef_.shape[1]:
            raise ValueError(f"X has {X.shape[1]} features, but the fit to go on from has {self.coef_.shape[1]}")
        if multilabel != self._multilabel or not np.array_equal(classes, self.classes_):
            raise ValueError(f"warm_start needs the classes of the last fit, {self.classes_}"
                             f"{' as an indicator' if self._multilabel else ''}; got {classes}"
                             f"{' as an indicator' if multilabel else ''}")
        return self.coef_, self.intercept_

    def _weights(self, sample_weight, X, classes, codes):
        """Row weights times class weights, or None; float64."""
        if self.class_weight is not None and codes is None:
            raise ValueError("class_weight is not defined for a label indicator; give sample_weight instead.")
        if sample_weight is None and self.class_weight is None:
            return None
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if self.class_weight is not None:
            by_row = compute_sample_weight(self.class_weight, classes[codes])
            check_class_weights(by_row)
            weight = in_range(weight) * in_range(by_row)
        weight = in_range(weight)
        if not weight.any():
            raise ValueError("sample_weight and class_weight leave every sample with weight 0.")
        return weight

    def _store(self, fit, dtype, **more):
        """Everything a fit leaves, at once; ``more`` by subclasses."""
        vars(self).update(
            more,
            coef_=np.ascontiguousarray(fit.W, dtype=dtype),
            intercept_=np.asarray(fit.bias, dtype=dtype).copy(),
            objective_=fit.objective.copy(), gradient_norm_=fit.gradient_norm.copy(),
            n_iter_=int(fit.passes), n_passes_=float(fit.reads),
            history_={name: np.asarray(column) for name, column in fit.history.items()},
        )

    def _watch(self, dtype):
        """What to do with the fit after a pass, callback and line of text; None if there is nothing to do."""
        def after_pass(fit):
            self._store(fit, dtype)
            last = {name: column[-1] for name, column in self.history_.items()}
            alone = f", class {self.classes_[last['class']]}" if last["class"] >= 0 and len(self.coef_) > 1 else ""
            say(self, f"pass {last['pass']:g}{alone}: objective {last['objective']:.6g}, gradient norm "
                      f"{last['gradient_norm']:.2g}, {last['seconds']:.2f} s")
            return bool(self.callback(self)) if self.callback is not None else False

        return after_pass if self.callback is not None or self.verbose else None

    def _warn(self, fit, wants_tol=True):
        """One warning at the most, saying how far the fit got and what to try."""
        text = None
        if fit.stopped == "diverged":
            text = "the weights overflowed; those of the best pass are kept. Scale the features or lower step_size."
        elif fit.stopped == "max_time":
            text = (f"stopped by max_time={self.max_time} after {fit.passes} passes of {self.max_passes}; the best "
                    f"weights are kept.{self._untrained(fit)} Raise max_time to train longer.")
        elif wants_tol and fit.stopped not in ("tol", "callback"):
            worst = float(np.max(fit.gradient_norm))
            if not np.isfinite([worst, *fit.objective]).all():
                worst = np.inf
            text = (f"after {fit.passes} passes the gradient norm is {worst:.1e} of that at the start, where "
                    f"tol={self.tol:g} was asked; raise max_passes or tol, scale the features, or raise l2.")
            if worst == np.inf:
                text = (f"after {fit.passes} passes the objective or its gradient is beyond the range of numbers; "
                        "scale the features.")
        if text is not None:
            warnings.warn(f"{type(self).__name__}: {text}", ConvergenceWarning, stacklevel=5)

    def _untrained(self, fit):
        if not fit.untrained:
            return ""
        names = ", ".join(str(self.classes_[c]) for c in fit.untrained[:5]) + ", ..." * (len(fit.untrained) > 5)
        return (f" {len(fit.untrained)} classes were not trained and keep the ridge regression that all classes "
                f"start with: {names}.")

    # ---------------------------------------------------------------- prediction

    def decision_function(self, X):
        """Scores h_c(x) = <w_c, x> + b_c.

        Returns
        -------
        (n_samples,) array for two classes (positive: ``classes_[1]``), else (n_samples, n_problems); finite: a row
        whose scores leave the range of its dtype keeps their signs and proportions, the largest at the end of the range
        """
        scores = self._scores(self._check_rows(X))
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X):
        """Label of the highest score, or the indicator of the labels with positive scores; scored in batches."""
        X = self._check_rows(X)
        size = max(1, SCORE_ENTRIES // len(self.coef_))
        return np.concatenate([self._decide(self._scores(X[lo:lo + size])) for lo in range(0, X.shape[0], size)])

    def _decide(self, scores):
        if self._multilabel:
            return (scores > 0).astype(int)
        if scores.shape[1] == 1:
            return self.classes_[(scores.ravel() > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    def _check_rows(self, X):
        check_is_fitted(self)
        return check_rows(self, X, reset=False)

    def _scores(self, X):
        return linear_scores(X, self.coef_, self.intercept_)
