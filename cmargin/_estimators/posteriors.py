"""Prediction from scores of a calibrated or the multinomial loss: posteriors, prior correction, top-k in batches."""

from typing import Any

import numpy as np
from scipy.special import expit

from cmargin._core.losses._losses import LOSS_IDS
from cmargin._core.losses._losses import posterior as _posterior
from cmargin._estimators.base import LinearClassifier
from cmargin._estimators.by_blocks import lazy_on_workers
from cmargin._estimators.scores import as_given, log_shares_of, log_softmax_of, shares_of, softmax_of
from cmargin._estimators.validation import check_parameter
from cmargin.data.arrays import dense
from cmargin.data.device.arrays import on_device, to_host


class PosteriorPredictions(LinearClassifier):
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
        (n_samples,) array for two classes (positive: ``classes_[1]``), else (n_samples, n_problems); float64 and
        finite: a row whose scores leave the range of its dtype keeps their signs and proportions, the largest at the
        end of the range. Of a tensor X, as from all methods but those that give labels: a tensor of its library and
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
        scores = self._scores(X)
        if self._multinomial and not self._binary:
            return softmax_of(scores)
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
        odds = self._decisions(X)
        if self._multinomial and not self._binary:
            return softmax_of(odds)
        return as_given(X, shares_of(to_host(odds), self._multilabel))

    @lazy_on_workers
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of `predict_proba`, from the scores: finite also where a probability is too small for its dtype."""
        X = self._check_rows(X)
        odds = self._decisions(X)
        if self._multinomial and not self._binary:
            return log_softmax_of(odds)
        return as_given(X, log_shares_of(to_host(odds), self._multilabel))

    @lazy_on_workers
    def predict_top_k(self, X: Any, k: int) -> np.ndarray:
        """The ``k`` most probable classes of every row, most probable first, scored in batches of rows.

        Parameters
        ----------
        X : (n_samples, n_features) array or CSR matrix
        k : int in [1, n_classes]

        Returns
        -------
        (n_samples, k) array of labels
        """
        X = self._check_rows(X)
        check_parameter(self, "k", k, integer=(1, len(self.classes_), f"[1, n_classes={len(self.classes_)}]"))
        return np.concatenate([self._top(to_host(self._decisions(X[rows])), k) for rows in self._batches(X)])

    def _top(self, odds, k):
        if self._binary and not self._multilabel:
            odds = np.hstack([-odds, odds])
        best = np.argpartition(-odds, k - 1, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(odds, best, axis=1), axis=1, kind="stable")
        return self.classes_[np.take_along_axis(best, order, axis=1)]

    @property
    def _loss_trained(self):
        """The loss of the weights; of those set by hand, the one that `fit` would take for their classes."""
        known = getattr(self, "loss_", None)
        return self._loss_for(self.classes_, None if self._multilabel else self.classes_) if known is None else known

    @property
    def _multinomial(self):
        return self._loss_trained == "multinomial"

    def _posterior_of(self, scores):
        loss, out = LOSS_IDS[self._loss_trained], np.empty(scores.shape)
        _posterior(loss, np.ascontiguousarray(scores, dtype=np.float64).ravel(), out.reshape(-1))
        return out

    def _decisions(self, X):
        """Corrected log-odds of every problem, (n, n_problems)."""
        scores = self._scores(X)
        if self._multinomial and on_device(scores):
            return scores
        scores = np.asarray(to_host(scores), dtype=np.float64)
        if self._multinomial:
            return scores
        if self._loss_trained == "logistic":
            odds = scores                            # ln(f/(1-f)) itself, without the detour through f
        else:
            f = np.clip(self._posterior_of(scores), 1e-15, 1 - 1e-15)
            odds = np.log(f) - np.log1p(-f)
            odds = odds + 1e-9 * scores              # where f is clipped, the score still ranks
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
            return dense(self.coef_), self.intercept_, "logistic" if self._binary else "softmax"
        correction = self._prior_correction()
        if self._loss_trained == "logistic":
            intercept = (self.intercept_ + correction).astype(self.intercept_.dtype)
            return dense(self.coef_), intercept, "logistic"
        if correction.any():
            raise ValueError(f"With loss={self._loss_trained!r} and drawn negatives the correction for the prior is no "
                             "linear function of the features; train with loss='logistic' or "
                             "negatives_per_positive=None.")
        return dense(self.coef_), self.intercept_, None  # one rising function of every score: the order is the scores'


def _log_odds_of(share):
    share = np.clip(share, 1e-12, 1 - 1e-12)
    return np.log(share) - np.log1p(-share)


def raw_scores(estimator, X):
    """One-vs-rest scores h of any linear classifier: ``scores`` where it has them beside its `decision_function`."""
    return estimator.scores(X) if hasattr(estimator, "scores") else estimator.decision_function(X)
