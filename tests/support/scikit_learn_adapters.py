"""LinearSVC, SGDClassifier and LogisticRegression by name and parameters, estimators of ours by what they do.

An adapter makes the estimator that doc/guide/coming_from.md names in the place of scikit-learn's, and hands everything
on to it. What no estimator of ours offers is refused: `NotOffered`.
"""

import inspect

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression as TheirLogisticRegression
from sklearn.linear_model import SGDClassifier as TheirSGDClassifier
from sklearn.svm import LinearSVC as TheirLinearSVC
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cmargin import SLNDClassifier, SmSVMClassifier

LOSSES = {"hinge": "hinge", "squared_hinge": "squared_hinge", "log_loss": "logistic",
          "modified_huber": "modified_huber"}


class NotOffered(ValueError):
    """Parameters of scikit-learn's that no estimator here has."""


class Adapter(ClassifierMixin, BaseEstimator):
    """The parameters of ``theirs``; a subclass gives ``_make(n_classes, total)``, an estimator of ours.

    ``total`` is the sum of the weights, those of classes included. The estimator is ``model_``, and fitted attributes
    are its own.
    """

    theirs = None
    warm_start = False

    def __init__(self, *args, **parameters):
        bound = inspect.signature(self.theirs).bind(*args, **parameters)
        bound.apply_defaults()
        vars(self).update(bound.arguments)

    @classmethod
    def _get_param_names(cls):
        return sorted(inspect.signature(cls.theirs).parameters)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getattr__(self, name):
        if name.endswith("_") and not name.startswith("_") and "model_" in vars(self):
            return getattr(self.model_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name, value):
        owner = self.model_ if name in ("coef_", "intercept_") else self
        object.__setattr__(owner, name, value)

    def fit(self, X, y, sample_weight=None):
        by_class = compute_sample_weight(self.class_weight, y)
        total = np.sum(by_class if sample_weight is None else by_class * sample_weight)
        model = self._make(len(np.unique(y)), total)
        before = vars(self).get("model_")
        if self.warm_start and type(before) is type(model):
            model = before.set_params(**model.get_params()).set_params(warm_start=True)
        self.model_ = model.fit(X, y, sample_weight)
        return self

    def _shared(self):
        names = ("fit_intercept", "class_weight", "random_state", "verbose")
        return {name: getattr(self, name) for name in names}

    def _has_probabilities(self):
        if getattr(self, "loss", "log_loss") != "log_loss":
            raise AttributeError(f"probability estimates are not available for loss={self.loss!r}")
        return True

    def predict(self, X):
        check_is_fitted(self)
        return self.model_.predict(X)

    def decision_function(self, X):
        check_is_fitted(self)
        return self.model_.decision_function(X)

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        check_is_fitted(self)
        return self.model_.predict_proba(X)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X):
        check_is_fitted(self)
        return self.model_.predict_log_proba(X)

    def sparsify(self):
        self.model_.sparsify()
        return self

    def densify(self):
        self.model_.densify()
        return self


class LinearSVC(Adapter):
    theirs = TheirLinearSVC

    def _make(self, n_classes, total):
        if self.intercept_scaling != 1:
            raise NotOffered(self)
        if self.multi_class == "crammer_singer":             # without another loss and penalty, whatever these say
            return SmSVMClassifier(C=self.C, **self._shared(), tol=self.tol, penalize_intercept=True,
                                   multi_class="crammer_singer")
        penalties = {"C": self.C} if self.penalty == "l2" else {"l2": 0.0, "l1": 1 / (self.C * total)}
        return SmSVMClassifier(**penalties, **self._shared(), loss=self.loss, tol=self.tol,
                               penalize_intercept=self.penalty == "l2")


class SGDClassifier(Adapter):
    """`fit` goes to the optimum that stochastic steps come near; `partial_fit` is SLND's."""

    theirs = TheirSGDClassifier
    loss_functions = TheirSGDClassifier.loss_functions

    def _make(self, n_classes, total):
        if self.loss not in LOSSES or self.average or self.early_stopping:
            raise NotOffered(self)
        share = {"l2": 0.0, "l1": 1.0, "elasticnet": self.l1_ratio}[self.penalty]
        return SmSVMClassifier(l2=(1 - share) * self.alpha, l1=share * self.alpha, loss=LOSSES[self.loss], tol=1e-7,
                               n_jobs=self.n_jobs, **self._shared())

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if "model_" not in vars(self):
            loss = {"hinge": "calibrated_hinge", "log_loss": "logistic"}[self.loss]
            self.model_ = SLNDClassifier(loss=loss, **self._shared())
        self.model_.partial_fit(X, y, classes, sample_weight)
        return self


class LogisticRegression(Adapter):
    """Two classes by `SmSVMClassifier`, more by the multinomial optimum."""

    theirs = TheirLogisticRegression

    def _make(self, n_classes, total):
        share = self.l1_ratio
        if isinstance(self.penalty, str) and self.penalty in ("l1", "l2"):
            share = float(self.penalty == "l1")
        l2, l1 = (1 - share) / (self.C * total), share / (self.C * total)
        shared = {"tol": max(self.tol**2, 1e-13), "n_jobs": self.n_jobs, **self._shared()}
        if n_classes == 2:
            return SmSVMClassifier(C=self.C, l1_ratio=share, loss="logistic", **shared)
        if l1 > 0 or l2 == 0:
            raise NotOffered(self)
        return SLNDClassifier(loss="multinomial", l2=l2, **shared)
