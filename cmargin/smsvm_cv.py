"""SmSVM with its penalties chosen by cross-validation, and the nested cross-validation of the paper (Algorithm 5)."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import check_cv
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, indexable

from cmargin._estimators.base import keeps_last_fit
from cmargin._estimators.docs import CheckpointFile
from cmargin._estimators.identity import VersionInPickle, check_checkpoint, checkpointer_of
from cmargin._estimators.labels import code_labels, in_range, positives_of, warn_of_folds
from cmargin._estimators.predict import accuracy_of, lazy_on_workers, scikit_learn_twin
from cmargin._estimators.progress import say
from cmargin._estimators.validation import check_data, check_rows, check_verbose, sliceable
from cmargin._runtime.checkpoint import NO_CHECKPOINTER
from cmargin.data import open_rows
from cmargin.data.containers import label_array
from cmargin.data.open_here import source_of
from cmargin.smsvm import SmSVMClassifier, of_logistic_loss

OF_THE_BEST = ("coef_", "intercept_", "classes_", "objective_", "duality_gap_", "n_iter_", "history_")


def _rows(array, index):
    return None if array is None else array[index]


def _splits(cv, X, y, groups=None):
    """Training and test rows of every fold, whose training rows are of two classes at least.

    scikit-learn's splitters refuse bytes: they are shown numbers instead.
    """
    shown = np.unique(y, return_inverse=True)[1] if y.dtype.kind == "S" else y
    folds = list(check_cv(cv, shown, classifier=True).split(X, shown, groups))
    for number, (train, _) in enumerate(folds, 1):
        if y.ndim == 1 and len(there := np.unique(y[train])) < 2:
            raise ValueError(f"The training rows of fold {number} of {len(folds)} are of only one class: "
                             f"{there.tolist()}. Shuffle the rows, or let cv be a number or a StratifiedKFold.")
    return folds


WARM = ("coef_", "intercept_", "classes_", "n_features_in_", "_multilabel")        # what the next fit of a path needs


def _of_logistic_loss(search):
    return of_logistic_loss(search._estimator)


@dataclass
class Fold:
    """How far a fold has come: accuracies (n_l2s, n_l1s), reads, fits done, and what the last one left."""

    scores: np.ndarray
    passes: float = 0.0
    n_done: int = 0
    last: dict = field(default_factory=dict)


def _path_scores(estimator, X, y, weights, train, test, l2s, l1s, standardize, after_fit=lambda text: None, fold=None):
    """Accuracy on ``test`` after training on ``train``, and the reads of the data it took: a `Fold`.

    Every l1 path runs from the largest l2 down, each fit from the one before; the tolerance is relative to the
    objective itself, so a warm start changes the way, not the end. ``after_fit`` is told of every fit in a line.
    ``fold``: one that has been begun, to go on with.
    """
    fold = Fold(np.zeros((len(l2s), len(l1s)))) if fold is None else fold
    X_train, X_test = X[train], X[test]
    if standardize:
        scaler = StandardScaler(with_mean=not open_rows(X_train).sparse).fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    test_weights = None if weights is None else in_range(weights[test])         # their sum is finite
    downwards = np.argsort(l2s)[::-1]
    for number in range(fold.n_done, len(l1s) * len(l2s)):
        (k, place), begin = divmod(number, len(l2s)), perf_counter()
        i, model = downwards[place], clone(estimator).set_params(l1=l1s[k], l2=l2s[downwards[place]], C=None)
        model._names_constants = False           # `warn_of_folds` has named them
        if place > 0:
            vars(model).update(fold.last, warm_start=True)
        model.fit(X_train, y[train], _rows(weights, train))
        fold.scores[i, k] = model.score(X_test, y[test], test_weights)
        fold.passes += model.n_passes_
        fold.n_done, fold.last = number + 1, {name: vars(model)[name] for name in WARM}
        after_fit(f"l2={l2s[i]:g}, l1={l1s[k]:g}: accuracy {fold.scores[i, k]:.4f}, {model.n_passes_:.4g} reads, "
                  f"{perf_counter() - begin:.2f} s")
    return fold


class SmSVMClassifierCV(ClassifierMixin, VersionInPickle, BaseEstimator):
    """`SmSVMClassifier` with l2 and l1 chosen from a grid by cross-validated accuracy, then fitted to all rows.

    Parameters
    ----------
    l2s : sequence of float, default=(1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
        Weights of the quadratic penalty to try, at least 0.
    l1s : sequence of float, default=(0.0,)
        Weights of the l1 penalty to try, each with every l2.
    cv : int, splitter or None, default=5
        Folds, or what splits the rows, as in scikit-learn: a number is of stratified folds where y is labels, of
        plain ones where it is an indicator.
    estimator : SmSVMClassifier or None, default=None
        Supplies every other parameter. None: their defaults.
    standardize : bool, default=False
        Score each fold with columns scaled by its own training rows. The final fit takes X as it is: put a scaler in
        front for that.
    verbose : bool or int, default=0
        True, or a number above 0: print a line after every fit of a fold.
    checkpoint : path, `cmargin.Checkpoint` or None, default=None
        File in which the scores are kept, as by `SmSVMClassifier`, after fits of a fold: one that was under way is made
        again. ``estimator`` has none of its own.

    Attributes
    ----------
    l2_, l1_ : float
        The chosen penalties; of equal scores the strongest l1, then the strongest l2.
    scores_ : (n_folds, n_l2s, n_l1s) array
        Accuracy on the rows of each fold that were held out; of an indicator, the share of rows whose labels are all
        right.
    best_estimator_ : SmSVMClassifier
        Trained on all rows with the penalties chosen.
    coef_, intercept_, classes_, objective_, duality_gap_, n_iter_, history_ : as in `SmSVMClassifier`
        Of ``best_estimator_``.
    n_passes_ : float
        Reads of the data, those of the folds included.
    n_features_in_ : int
        Columns of X in the last fit.
    feature_names_in_ : (n_features,) array
        Where X had names of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from cmargin import SmSVMClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = SmSVMClassifierCV(l2s=(1e-4, 1e-3, 1e-2), cv=3).fit(scale(X), y)
    >>> search.l2_ in search.l2s and search.scores_.shape == (3, 3, 1)
    True
    """

    _parameter_constraints = {
        "l2s": ["array-like"], "l1s": ["array-like"], "cv": ["cv_object"],
        "estimator": [SmSVMClassifier, None], "standardize": ["boolean"],
    }
    coef_: np.ndarray
    intercept_: np.ndarray
    objective_: np.ndarray
    classes_: np.ndarray
    best_estimator_: SmSVMClassifier
    l2_: float
    l1_: float
    scores_: np.ndarray
    n_passes_: float

    def __init__(self, l2s: Sequence[float] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1), l1s: Sequence[float] = (0.0,),
                 cv: Any = 5, estimator: SmSVMClassifier | None = None, standardize: bool = False, verbose: int = 0,
                 checkpoint: CheckpointFile = None) -> None:
        self.l2s = l2s
        self.l1s = l1s
        self.cv = cv
        self.estimator = estimator
        self.standardize = standardize
        self.verbose = verbose
        self.checkpoint = checkpoint

    @keeps_last_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the penalties and fit to X, y.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
        y : (n_samples,) labels, or (n_samples, n_labels) indicator, whose labels share the penalties chosen
        sample_weight : (n_samples,) array or None
        groups : (n_samples,) array or None
            Handed to the splitter ``cv``, which may keep the rows of a group together.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As `SmSVMClassifier.fit`; and where the training rows of a fold are of only one class.

        Warns
        -----
        UserWarning
            Where no training row of a fold has a label of an indicator, or every row: its prediction is constant there.
        """
        X, y, weights = self._checked(X, y, sample_weight)
        checkpointer = checkpointer_of(self, source_of(X, y), weights, groups)
        l2, l1, found = self._choose(X, y, weights, groups, checkpointer)
        best = clone(self._estimator).set_params(l2=l2, C=None, l1=l1).fit(X, y, weights)
        self.__dict__.update(
            {name: getattr(best, name) for name in OF_THE_BEST}, best_estimator_=best, l2_=l2, l1_=l1,
            scores_=np.stack([fold.scores for fold in found]),
            n_passes_=best.n_passes_ + sum(fold.passes for fold in found),
        )
        checkpointer.end("converged")
        checkpointer.close()
        return self

    @property
    def _estimator(self):
        return SmSVMClassifier() if self.estimator is None else self.estimator

    @property
    def _best(self):
        """``best_estimator_``, with the weights that are there: they may have been set by hand."""
        best = copy(vars(self).get("best_estimator_", self._estimator))
        by_hand = {name: vars(self)[name] for name in ("classes_", "coef_", "intercept_") if name in vars(self)}
        vars(best).update(by_hand)
        return best

    def _checked(self, X, y, sample_weight):
        """Rows, labels and weights, once they and the parameters are found to be in order."""
        self._validate_params()
        check_verbose(self)
        check_checkpoint(self, self.checkpoint)
        self._grid("l2s"), self._grid("l1s")
        X, y, sample_weight = check_data(self, X, y, sample_weight)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        source = source_of(X, y)
        if not source.in_memory:
            source.refuse("A search, which trains on parts of the rows,")
        code_labels(y)
        if self._estimator.checkpoint is not None:
            raise ValueError("The fits of a search take no checkpoint of their own; give it to SmSVMClassifierCV.")
        return X, y, None if sample_weight is None else _check_sample_weight(sample_weight, X)

    def _choose(self, X, y, weights=None, groups=None, checkpointer=NO_CHECKPOINTER):
        """l2, l1 and the `Fold`s that they were chosen by."""
        l2s, l1s = self._grid("l2s"), self._grid("l1s")
        found = [] if checkpointer.found is None else checkpointer.found

        def after_fit(number, text):
            say(self, f"fold {number}, {text}")
            checkpointer.offer(sum(fold.passes for fold in found), lambda: found)

        folds = _splits(self.cv, X, y, groups)
        if y.ndim == 2:
            warn_of_folds(positives_of(y), folds)
        for number, (train, test) in enumerate(folds, 1):
            if number > len(found):
                found.append(Fold(np.zeros((len(l2s), len(l1s)))))
            _path_scores(self._estimator, X, y, weights, train, test, l2s, l1s, self.standardize,
                         partial(after_fit, number), found[number - 1])
        mean = np.stack([fold.scores for fold in found]).mean(axis=0)
        ties = np.argwhere(mean >= mean.max() - 1e-12)
        i, k = max(ties, key=lambda at: (l1s[at[1]], l2s[at[0]]))
        l2, l1 = float(l2s[i]), float(l1s[k])
        say(self, f"chose l2={l2:g}, l1={l1:g}: accuracy {mean[i, k]:.4f}; fits all rows with them")
        return l2, l1, found

    def _grid(self, name):
        grid = np.asarray(getattr(self, name), float)
        if grid.ndim != 1 or len(grid) == 0 or not np.all(grid >= 0):
            raise ValueError(f"The '{name}' parameter of SmSVMClassifierCV must be a sequence of floats in the"
                             f" range [0.0, inf). Got {getattr(self, name)!r} instead.")
        return grid

    @lazy_on_workers
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the chosen estimator."""
        check_is_fitted(self)
        return self._best.decision_function(check_rows(self, X))

    @available_if(_of_logistic_loss)
    @lazy_on_workers
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities by the chosen estimator, where that has ``loss="logistic"``."""
        check_is_fitted(self)
        return self._best.predict_proba(check_rows(self, X))

    @available_if(_of_logistic_loss)
    @lazy_on_workers
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of `predict_proba` by the chosen estimator, from its scores."""
        check_is_fitted(self)
        return self.best_estimator_.predict_log_proba(check_rows(self, X))

    @lazy_on_workers
    def predict(self, X: Any) -> np.ndarray:
        """Labels by the chosen estimator."""
        check_is_fitted(self)
        return self._best.predict(check_rows(self, X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on ``X`` and ``y``."""
        return accuracy_of(self, X, y, sample_weight)

    def to_sklearn(self) -> Any:
        """The chosen estimator's `to_sklearn`."""
        check_is_fitted(self)
        return scikit_learn_twin(self._best, self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


@dataclass
class NestedScores:
    """What `nested_cross_validation` found: ``mean`` is the paper's answer."""

    test_scores: np.ndarray        # (n_outer,) accuracy of each outer fold
    l2: np.ndarray                 # (n_outer,) chosen penalties
    l1: np.ndarray
    n_passes: float                # reads of the data, all folds together

    @property
    def mean(self) -> float:
        return float(self.test_scores.mean())


def nested_cross_validation(X: Any, y: Any, l2s: Sequence[float], l1s: Sequence[float] = (0.0,), *, outer: Any = 10,
                            inner: Any = 6, estimator: SmSVMClassifier | None = None,
                            standardize: bool = True) -> NestedScores:
    """Algorithm 5: penalties chosen inside, accuracy measured outside, columns scaled by training rows only.

    Parameters
    ----------
    X : (n, m) array or CSR matrix
    y : (n,) labels, or (n, n_labels) indicator
    l2s, l1s : sequences of float
        Penalties to choose from, as in `SmSVMClassifierCV`.
    outer, inner : int or splitter
        10 and 6 in the paper, 5 and 4 for its largest set.
    estimator : SmSVMClassifier, optional
        Supplies every other parameter.
    standardize : bool
        Scale columns by the mean and the standard deviation of the training rows.

    Returns
    -------
    NestedScores
    """
    X, y = indexable(sliceable(X), label_array(y))
    estimator = SmSVMClassifier() if estimator is None else estimator
    scores, chosen, passes = [], [], 0.0
    for train, test in _splits(outer, X, y):
        search = SmSVMClassifierCV(l2s, l1s, inner, estimator, standardize)
        rows, labels, _ = search._checked(X[train], y[train], None)
        l2, l1, folds = search._choose(rows, labels)
        fold = _path_scores(estimator, X, y, None, train, test, [l2], [l1], standardize)
        scores.append(fold.scores[0, 0])
        chosen.append((l2, l1))
        passes += sum(one.passes for one in (*folds, fold))
    l2, l1 = np.array(chosen).T
    return NestedScores(np.array(scores), l2, l1, passes)
