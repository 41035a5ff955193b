"""Predictions of linear models, on rows anywhere: scores, labels, probabilities, the same model of scikit-learn's."""

from copy import copy
from functools import partial, wraps
from numbers import Integral
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from cmargin._core.losses._losses import LOSS_IDS
from cmargin._core.losses._losses import posterior as _posterior
from cmargin._core.util._fp_control import StandardArithmetic
from cmargin._core.util._openmp import effective_n_threads
from cmargin._estimators.docs import Method
from cmargin._estimators.scores import (
    BEST,
    SCORE_ENTRIES,
    SCORES,
    SOFTMAX,
    TOP,
    as_given,
    log_of_shares,
    log_shares_of,
    log_softmax_of,
    predicted,
    shares_of,
)
from cmargin._estimators.validation import check_columns, check_parameter, check_rows
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data.arrays import dense, is_sparse, top_of
from cmargin.data.containers import computed, label_array, positives_of, weight_array
from cmargin.data.converted import batches
from cmargin.data.device.arrays import namespace_of, on_device, to_host
from cmargin.data.open_here import opened
from cmargin.data.places import on_workers, place_of

# ---------------------------------------------------------------- collections of workers

def lazy_on_workers(method: Method) -> Method:
    """Decorator of a method of X, and of what is no array, whose result has a row for each of X: a collection of
    workers' rows gives another. The processor computes by its standard settings meanwhile."""
    @wraps(method)
    def call(self, X, *more, **named):
        with StandardArithmetic():
            return by_blocks(self, method, X, more, named) if on_workers(X) else method(self, X, *more, **named)

    return cast(Method, call)


def by_blocks(estimator, method, X, more, named):
    check_is_fitted(estimator)
    _check_feature_names(estimator, getattr(X, "_meta", None), reset=False)
    lazily = place_of(X).predictions
    X = lazily.as_array(X)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
    check_columns(estimator, X)
    there = for_workers(estimator)
    like = method(there, np.zeros((1, X.shape[1]), X.dtype if X.dtype.kind == "f" else np.float64), *more, **named)
    return lazily.map_rows(X, of_block, method.__name__, like, there, method.__name__, like[:0], more, named)


def for_workers(estimator):
    """A copy without names of columns, which have been compared, and callbacks, which may be of no use elsewhere; it
    predicts in the worker's one thread."""
    there = copy(estimator)
    if hasattr(there, "n_jobs"):
        there.n_jobs = 1
    for name, value in list(vars(there).items()):
        if name in ("feature_names_in_", "callback"):
            delattr(there, name)
        elif isinstance(value, BaseEstimator):
            setattr(there, name, for_workers(value))
    return there


def of_block(X, estimator, name, nothing, more, named):
    if not X.shape[0]:
        return nothing
    with single_threaded_blas():
        return getattr(estimator, name)(X, *more, **named)


# ---------------------------------------------------------------- methods of models

class LinearScores:
    """Scores <w, x> + b of models with ``coef_`` and ``intercept_``."""

    coef_: np.ndarray
    intercept_: np.ndarray

    @property
    def _weight_rows(self):
        """``coef_``, a row for every column of scores."""
        return self.coef_

    @property
    def _ranking(self):
        """(n_problems,) intercepts of scores that rank the columns as `_decisions` do, or None."""
        return self.intercept_

    def sparsify(self):
        """Keep ``coef_`` as a CSR matrix, for less memory and quicker predictions where most of it is 0.

        A matrix, as ``prune`` leaves one, stays as it is. Training and `densify` bring the array back. Returns self.
        """
        check_is_fitted(self)
        if not is_sparse(self.coef_):
            self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self):
        """Keep ``coef_`` as an array again, after `sparsify`. Returns self."""
        check_is_fitted(self)
        self.coef_ = np.asarray(dense(self.coef_))           # set by hand, it may be a list
        return self

    def _check_rows(self, X):
        check_is_fitted(self)
        X = check_rows(self, X)
        check_columns(self, X)
        return X

    def _batches(self, X):
        return batches(X, max(1, SCORE_ENTRIES // self._weight_rows.shape[0]))

    def _scores(self, X):
        return self._predicted(X, SCORES, np.atleast_1d(self.intercept_))

    def _predicted(self, X, what, intercept=None, n_top=1):
        n_jobs = getattr(self, "n_jobs", None)
        if not isinstance(n_jobs, Integral) or n_jobs == 0:         # a fit would refuse it; the last one still predicts
            n_jobs = None
        return predicted(X, self._weight_rows, self._ranking if intercept is None else intercept, what,
                         effective_n_threads(n_jobs), n_top)


class LinearPredictions(LinearScores):
    """What models with ``coef_``, ``intercept_`` and ``classes_`` say of rows."""

    classes_: np.ndarray
    _multilabel = False              # whether the classes are the labels of an indicator

    @lazy_on_workers
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores h_c(x) = <w_c, x> + b_c.

        Returns
        -------
        (n_samples,) array for two classes (positive: ``classes_[1]``), else (n_samples, n_problems)
            Finite; a tensor where X is one.
        """
        X = self._check_rows(X)
        scores = as_given(X, self._decisions(X))
        return scores[:, 0] if self._binary else scores

    @lazy_on_workers
    def predict(self, X: Any) -> np.ndarray:
        """Label of the largest `decision_function`; for an indicator, the labels where it is positive.

        Rows are scored in blocks: no array of rows x classes is made. Returns a NumPy array, as ``classes_`` is,
        whatever X is.
        """
        X = self._check_rows(X)
        if self._binary or self._multilabel or self._ranking is None:
            return np.concatenate([self._decide(self._decisions(X[rows])) for rows in self._batches(X)])
        return self.classes_[to_host(self._predicted(X, BEST))[:, 0]]

    @lazy_on_workers
    def predict_top_k(self, X: Any, k: int) -> np.ndarray:
        """Labels (n_samples, k) of the largest `decision_function` of every row, largest first; k is 1 to n_classes.

        Rows are scored in blocks: no array of rows x classes is made. Of equal scores the first class comes first.
        """
        X = self._check_rows(X)
        check_parameter(self, "k", k, integer=(1, len(self.classes_), f"[1, n_classes={len(self.classes_)}]"))
        if self._ranking is not None and len(self.classes_) == self.coef_.shape[0]:
            return self.classes_[to_host(self._predicted(X, TOP, n_top=k))]
        return np.concatenate([self._top(to_host(self._decisions(X[rows])), k) for rows in self._batches(X)])

    def _top(self, odds, k):
        if self._binary and not self._multilabel:
            odds = np.hstack([-odds, odds])
        return self.classes_[top_of(odds, k)]

    def to_sklearn(self) -> Any:
        """The same classifier as a fitted object of scikit-learn, which predicts without this package.

        `LinearSVC` for losses without probabilities, `LogisticRegression` for the multinomial and the binary logistic
        loss, `OneVsRestClassifier` of these otherwise. Predictions and probabilities are equal; the parameters are
        scikit-learn's defaults. ``skl2onnx.to_onnx`` takes it.

        Raises
        ------
        ValueError
            Where predictions are no linear function of X: one-vs-rest SLND with drawn negatives and a loss other than
            the logistic.
        """
        check_is_fitted(self)
        return scikit_learn_twin(self, self)

    def _linear_form(self):
        """Weights and intercepts whose scores `predict` goes by, and what makes probabilities of these scores:
        "logistic", "softmax" or None."""
        return self.coef_, self.intercept_, "logistic" if getattr(self, "loss", None) == "logistic" else None

    def _decisions(self, X):
        """What `predict` takes the largest of, or the sign: (n, n_problems)."""
        return self._scores(X)

    def _decide(self, decisions):
        if self._multilabel:
            return to_host(decisions > 0).astype(int)
        if self._binary:
            return self.classes_[to_host(decisions[:, 0] > 0).astype(int)]
        return self.classes_[to_host(namespace_of(decisions).argmax(decisions, axis=1))]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on ``X`` and ``y``; of an indicator, the share of rows whose labels are all right."""
        return accuracy_of(self, X, y, sample_weight)

    @property
    def _binary(self):
        return self.coef_.shape[0] == 1

    def _shares(self, X):
        """Probabilities, one column a class; batch by batch, so that little more is held than what is returned."""
        return as_given(X, np.concatenate([shares_of(to_host(self._decisions(X[rows])), self._multilabel)
                                           for rows in self._batches(X)]))

    def _log_shares(self, X):
        """Their logarithms."""
        def of(rows):
            odds = to_host(self._decisions(X[rows]))
            return log_of_shares(odds, partial(log_shares_of, multilabel=self._multilabel),
                                 partial(shares_of, odds, self._multilabel))

        return as_given(X, np.concatenate([of(rows) for rows in self._batches(X)]))


class PosteriorPredictions(LinearPredictions):
    """Base of linear classifiers with ``loss_``, ``class_prior_`` and ``sampled_prior_``; they give ``_loss_for``."""

    @lazy_on_workers
    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of every class under the training prior: what `predict` takes the largest of, or the sign.

        ln(f/(1-f)) at the scores h_c(x), plus ln(pi/(1-pi)) - ln(r/(1-r)), pi the share of the class's positives and r
        that among the rows visited (doc/methods/slnd.md, "Posteriors and the prior"). With the logistic loss and
        all rows visited, so that r = pi, they are the scores themselves.

        Parameters
        ----------
        X : (n_samples, n_features) array or CSR matrix

        Returns
        -------
        (n_samples,) array for two classes (positive: ``classes_[1]``), else (n_samples, n_problems); of the dtype
        of X, and finite: a row whose scores leave its range keeps their signs and proportions, the largest at the end
        of the range. Of a tensor X, as from all methods but those that give labels: a tensor of its library and
        dtype, where X is
        """
        return super().decision_function(X)

    @lazy_on_workers
    def scores(self, X: Any) -> np.ndarray:
        """Raw scores h_c(x) = <w_c, x> + b_c, under the prior of the rows visited; shaped as `decision_function`."""
        scores = self._scores(self._check_rows(X))
        return scores[:, 0] if self._binary else scores

    @lazy_on_workers
    def posterior(self, X: Any) -> np.ndarray:
        """Raw posteriors f(h_c(x)) under the prior of the rows visited (BSN eq. 4); shaped as `decision_function`."""
        X = self._check_rows(X)
        if self._softmax:
            return self._predicted(X, SOFTMAX)
        scores = self._scores(X)
        scores = to_host(scores[:, 0] if self._binary else scores)
        return as_given(X, expit(scores) if self._multinomial else self._posterior_of(scores))

    @lazy_on_workers
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities under the training prior.

        The logistic function of every `decision_function`, normalised over the classes (BSN eq. 4; the correction for
        the prior of the rows visited is ours).

        Returns
        -------
        (n_samples, n_classes) array; for an indicator, each label's probability, not normalised; of the multinomial
        loss the softmax of the scores
        """
        X = self._check_rows(X)
        return self._predicted(X, SOFTMAX) if self._softmax else self._shares(X)

    @lazy_on_workers
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of `predict_proba`, from the scores: finite also where a probability is too small for its dtype."""
        X = self._check_rows(X)
        if not self._softmax:
            return self._log_shares(X)
        if on_device(scores := self._scores(X)):
            return log_softmax_of(scores)
        return log_of_shares(scores, log_softmax_of, partial(self._predicted, X, SOFTMAX))

    @property
    def _loss_trained(self):
        """The loss of the weights; of those set by hand, the one that `fit` would take for their classes."""
        known = getattr(self, "loss_", None)
        return self._loss_for(self.classes_, None if self._multilabel else self.classes_) if known is None else known

    @property
    def _multinomial(self):
        return self._loss_trained == "multinomial"

    @property
    def _softmax(self):
        """Whether probabilities are the softmax of the scores."""
        return self._multinomial and not self._binary

    @property
    def _ranking(self):
        if self._multinomial:
            return self.intercept_
        correction = self._prior_correction()
        if self._loss_trained == "logistic":
            return self.intercept_ + correction
        return None if correction.any() else self.intercept_     # of one rising function of every score

    def _posterior_of(self, scores):
        loss, out = LOSS_IDS[self._loss_trained], np.empty(scores.shape)
        _posterior(loss, np.ascontiguousarray(scores, dtype=np.float64).ravel(), out.reshape(-1))
        return out

    def _decisions(self, X):
        """Corrected log-odds of every problem, (n, n_problems), of the dtype of the scores."""
        if self._multinomial:
            return self._scores(X)
        if self._loss_trained == "logistic":         # ln(f/(1-f)) is the score, without the detour through f
            return to_host(self._predicted(X, SCORES))
        scores = np.asarray(to_host(self._scores(X)))
        f = np.clip(self._posterior_of(scores), 1e-15, 1 - 1e-15)
        odds = np.log(f) - np.log1p(-f)
        odds = odds + 1e-9 * scores                  # where f is clipped, the score still ranks
        return odds + self._prior_correction()

    def _prior_correction(self):
        """(n_problems,) what the log-odds gain from the prior of the rows visited to that of all rows.

        0 for weights that were set by hand without these priors.
        """
        if not hasattr(self, "sampled_prior_"):
            return np.zeros(self.coef_.shape[0])
        return _log_odds_of(self.class_prior_) - _log_odds_of(self.sampled_prior_)

    def _linear_form(self):
        if self._multinomial:
            return self.coef_, self.intercept_, "logistic" if self._binary else "softmax"
        if self._loss_trained == "logistic":
            return self.coef_, self._ranking.astype(self.intercept_.dtype), "logistic"
        if self._ranking is None:
            raise ValueError(f"With loss={self._loss_trained!r} and drawn negatives the correction for the prior is no "
                             "linear function of the features; train with loss='logistic' or "
                             "negatives_per_positive=None.")
        return self.coef_, self.intercept_, None  # one rising function of every score: the order is the scores'


def _log_odds_of(share):
    share = np.clip(share, 1e-12, 1 - 1e-12)
    return np.log(share) - np.log1p(-share)


def raw_scores(estimator, X):
    """One-vs-rest scores h of any linear classifier: ``scores`` where it has them beside its `decision_function`."""
    return estimator.scores(X) if hasattr(estimator, "scores") else estimator.decision_function(X)


def scikit_learn_twin(model, columns):
    """What `to_sklearn` returns; ``columns``: the estimator that knows number and names of columns."""
    from sklearn.linear_model import LogisticRegression  # heavy, and few need them
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import LabelBinarizer
    from sklearn.svm import LinearSVC

    def named(twin):
        twin.n_features_in_ = columns.coef_.shape[1]
        if hasattr(columns, "feature_names_in_"):
            twin.feature_names_in_ = columns.feature_names_in_.copy()
        return twin

    def linear(coef, intercept, classes):
        """With copies of the weights, so that a later fit does not change them."""
        twin = kind()
        coef = coef.toarray() if is_sparse(coef) else coef.copy()        # converters to ONNX know arrays alone
        twin.coef_, twin.intercept_, twin.classes_ = coef, intercept.copy(), np.array(classes)
        twin.n_iter_ = 0 if kind is LinearSVC else np.zeros(1, np.int32)
        return named(twin)

    coef, intercept, posterior = model._linear_form()
    kind = LinearSVC if posterior is None else LogisticRegression
    # the softmax of a LogisticRegression would give other probabilities for one-vs-rest problems, and no label sets
    n_problems = coef.shape[0]
    apart = model._multilabel or (posterior == "logistic" and n_problems > 1)
    if not apart:
        return linear(coef, intercept, model.classes_)
    twin = OneVsRestClassifier(kind())
    twin.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(
        [[0] * n_problems, [1] * n_problems] if model._multilabel else model.classes_)
    twin.classes_ = twin.label_binarizer_.classes_
    coef = coef.tocsr() if is_sparse(coef) else coef                     # rows of which are picked
    twin.estimators_ = [linear(coef[c:c + 1], intercept[c:c + 1], [0, 1]) for c in range(n_problems)]
    return named(twin)


def accuracy_of(model, X, y, sample_weight):
    """scikit-learn's accuracy of what ``model`` predicts, of bytes too, which it refuses; all may be Dask's."""
    from sklearn.metrics import accuracy_score  # heavy, and training does not need it

    X, y, sample_weight = opened(X, y, sample_weight)
    y, predicted, sample_weight = label_array(y), computed(model.predict(X)), weight_array(sample_weight)
    if predicted.ndim == 2 and np.ndim(y) == 2:
        y = positives_of(y)                                                    # an indicator of -1 and 1 too
    if getattr(getattr(y, "dtype", None), "kind", "") == "S" and y.shape == predicted.shape:
        y, predicted = np.ones(len(y), bool), predicted == y
    return accuracy_score(y, predicted, sample_weight=sample_weight)
