"""SLND to the penalised multinomial optimum, with the penalty chosen by cross-validation."""

from collections.abc import Callable, Sequence
from copy import copy
from numbers import Integral
from time import perf_counter
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from cmargin._estimators.apart import is_indicator
from cmargin._estimators.base import keeps_last_fit
from cmargin._estimators.docs import CheckpointFile
from cmargin._estimators.identity import check_checkpoint, checkpointer_of
from cmargin._estimators.labels import code_labels
from cmargin._estimators.search.base import PenaltySearch, refuse_ranks
from cmargin._estimators.search.folds import splits, warn_of_lacking
from cmargin._estimators.search.multinomial import PathSearchRun, Rows, path_grid_of
from cmargin._estimators.search.scoring import Scoring
from cmargin._estimators.slnd_fit import refuse_l1, refuse_one_class, refuse_penalty
from cmargin._estimators.validation import POSITIVE, check_data, check_parameter, check_verbose
from cmargin._runtime.fit_slots import FitSlot
from cmargin.data.open_here import source_of
from cmargin.slnd import SLNDClassifier

OF_THE_BEST = ("coef_", "intercept_", "classes_", "objective_", "duality_gap_", "n_iter_", "history_")
OF_A_REFIT = (*OF_THE_BEST, "best_estimator_", "refit_time_")


class SLNDClassifierCV(PenaltySearch):
    """`SLNDClassifier` with ``l2`` chosen by a cross-validated score: LogisticRegressionCV, every fit certified.

    Each fold goes along the penalties, from the strongest down: rows that it holds out weigh 0, X is not copied, and
    the next optimum is begun on the line through the last two. A penalty whose optimum those beside it already certify
    to ``tol`` is not solved for.

    Parameters
    ----------
    l2s : sequence of float, int or None, default=None
        Weights of the penalty to try, above 0. An int: so many, from where the weights are about the difference of the
        means of the classes down to a millionth of that. None: 1e-6, 1e-5, ..., 1e-1, unless ``Cs`` are given.
    Cs : sequence of float or None, default=None
        Instead of ``l2s``: values of LogisticRegression's ``C``, each of which is l2 = 1 / (C * sum of the weights of
        the rows) in every fold and in the final fit.
    cv : int, splitter, iterable of (training rows, test rows) or None, default=5
        Folds, or what splits the rows, as in scikit-learn; a number is of stratified folds.
    scoring : str, callable or None, default=None
        What is best: a name or a scorer of scikit-learn's, or ``scoring(estimator, X, y)``, larger being better. None:
        accuracy. "neg_log_loss" judges probabilities. Both cost nothing beside the fits; others are shown a copy of the
        rows held out. Sample weights count in a score that takes them.
    estimator : SLNDClassifier or None, default=None
        Supplies every other parameter, ``tol`` and ``class_weight`` among them; its ``max_time`` is the final fit's.
        None: their defaults.
    refit : bool, default=True
        Fit all rows with the penalty chosen. False: the search ends with the scores, and cannot predict.
    one_standard_error : bool, default=False
        Choose the strongest penalty whose mean score is within one standard error of the best, not the best.
    max_time : float or None, default=None
        Seconds after which no fit of a fold is begun or goes on. What was scored stays, other scores are NaN, and the
        best so far is fitted to all rows, which takes as long as it takes. All folds then advance together, penalty by
        penalty, which takes memory for the scores of all.
    n_jobs : int or None, default=None
        Threads of a fit, instead of those of ``estimator``; None: as that says. The result is the same to the bit.
    verbose : bool or int, default=0
        True, or a number above 0: print a line after every penalty of a fold.
    checkpoint : path, `cmargin.Checkpoint` or None, default=None
        File in which the scores are kept, as by `SLNDClassifier`, after a penalty of a fold, and where time or Ctrl-C
        ends the search. The next penalty begins from zero then, so that the rest of its fold is the same to
        ``tol``, not to the bit. ``estimator`` has none of its own. Without one Ctrl-C leaves ``scores_``,
        ``cv_results_`` and what was best so far, and no fit to all rows.

    Attributes
    ----------
    l2_, C_ : float
        The chosen penalty, of equal scores the strongest, and the C that it is for all rows.
    penalties_ : (n_penalties,) array
        Values of l2, or of C with ``Cs``, in the order of ``scores_``.
    scores_ : (n_folds, n_penalties) array
        Score of the rows of each fold that were held out, NaN where there is none.
    best_score_ : float
        Mean over the folds, of the penalty chosen.
    best_index_, best_params_ : int, dict
        The row of ``cv_results_`` that was chosen, and its penalty.
    cv_results_ : dict of arrays
        A row for each penalty, in the columns of scikit-learn's searches; and ``max_duality_gap``, the largest of the
        penalty's certificates.
    n_splits_ : int
        Folds.
    scorer_ : callable or None
        What ``scoring`` stands for; None: accuracy.
    refit_time_ : float
        Seconds of the final fit.
    best_estimator_ : SLNDClassifier
        Trained on all rows with the penalty chosen.
    coef_, intercept_, classes_, objective_, duality_gap_, n_iter_, history_ : as in `SLNDClassifier`
        Of ``best_estimator_``.
    n_passes_ : float
        Reads of the data, those of the folds included.
    n_features_in_ : int
        Columns of X in the last fit.
    feature_names_in_ : (n_features,) array
        Where X had names of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cmargin import SLNDClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = SLNDClassifierCV(l2s=10, scoring="neg_log_loss").fit(X, y)
    >>> search.scores_.shape == (5, 10) and search.score(X, y) > -0.1
    True
    >>> bool(search.cv_results_["max_duality_gap"].max() <= 1e-4)
    True
    """

    _parameter_constraints = {
        "l2s": ["array-like", Interval(Integral, 1, None, closed="left"), None], "Cs": ["array-like", None],
        "cv": ["cv_object"], "scoring": [str, callable, None], "estimator": [SLNDClassifier, None],
        "refit": ["boolean"], "one_standard_error": ["boolean"], "n_jobs": [Integral, None],
    }
    coef_: np.ndarray
    intercept_: np.ndarray
    objective_: float
    classes_: np.ndarray
    best_estimator_: SLNDClassifier
    l2_: float
    C_: float
    scores_: np.ndarray
    best_score_: float
    cv_results_: dict[str, Any]
    n_passes_: float
    _has_probabilities = True

    def __init__(self, l2s: Sequence[float] | int | None = None, *, Cs: Sequence[float] | None = None, cv: Any = 5,
                 scoring: str | Callable[..., float] | None = None, estimator: SLNDClassifier | None = None,
                 refit: bool = True, one_standard_error: bool = False, max_time: float | None = None,
                 n_jobs: int | None = None, verbose: int = 0, checkpoint: CheckpointFile = None) -> None:
        self.l2s = l2s
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.estimator = estimator
        self.refit = refit
        self.one_standard_error = one_standard_error
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    @keeps_last_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None,
            comm: Any = None) -> Self:
        """Choose the penalty and fit to X, y.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
        y : (n_samples,) labels
        sample_weight : (n_samples,) array or None
            Of the rows, in the fits and, where a scorer takes them, in the scores.
        groups : (n_samples,) array or None
            Handed to the splitter ``cv``, which may keep the rows of a group together.
        comm : None
            The estimator takes rows of several ranks; a search does not yet, and says so.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As `SLNDClassifier.fit` with ``l2``, which takes no label indicator.

        Warns
        -----
        UserWarning
            Where the training rows of a fold lack a class, which is never predicted there; where a fold has no score.
        ConvergenceWarning
            Where fits stopped short of the tolerance, or ``max_time`` ended the search. One warning says all of it.
        """
        begin = perf_counter()
        refuse_ranks(self, comm)
        X, data = self._checked(X, y, sample_weight)
        routed = self._routed(X, data.weights, groups)
        checkpointer = checkpointer_of(self, data.source, data.weights, groups)
        grid = path_grid_of(self, data.largest_l2)
        rows = splits(self.cv, X, data.y, routed.splitter.split)
        warn_of_lacking(data.classes, data.y, data.codes, rows)
        run = PathSearchRun(self, data, grid, rows, Scoring(self), routed.scorer.score,
                            checkpointer, None if self.max_time is None else begin + self.max_time)
        with self._keeps_scores(run):
            with FitSlot(waits=self.max_time is None):
                try:
                    run.run()
                finally:
                    data.source.let_go()
            place = self._place(run)
            total = data.weighed(self._estimator)[1]
            l2 = float(grid.strengths[place]) / (1 if grid.name == "l2" else total)
            strength = l2 * total                # 0 for weights near the least number
            found = self._found(run, place) | {"l2_": l2, "C_": 1 / strength if strength > 0 else np.inf}
            if self.refit:
                found |= self._refitted(X, data, l2, run)
        for name in [name for name in OF_A_REFIT if not self.refit and name in vars(self)]:
            delattr(self, name)
        self.__dict__.update(found)
        self._warn_of(run)
        checkpointer.end("max_time" if run.n_left else "converged")
        checkpointer.close()
        return self

    @property
    def _estimator(self):
        estimator = SLNDClassifier() if self.estimator is None else self.estimator
        if self.n_jobs is not None:
            estimator = copy(estimator)
            estimator.n_jobs = self.n_jobs
        return estimator

    def _checked(self, X, y, sample_weight):
        """X and the `Rows` of a search, once they and the parameters are found to be in order."""
        self._validate_params()
        check_verbose(self)
        check_checkpoint(self, self.checkpoint)
        check_parameter(self, "max_time", self.max_time, real=POSITIVE, none=True)
        path_grid_of(self, lambda: 1.0)
        estimator = clone(self._estimator).set_params(l2=1.0)
        estimator._check_parameters()
        refuse_l1(estimator, "SLNDClassifierCV")
        if estimator.checkpoint is not None:
            raise ValueError("The fits of a search take no checkpoint of their own; give it to SLNDClassifierCV.")
        X, y, sample_weight = check_data(self, X, y, sample_weight)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        source = source_of(X, y)
        if not (source.in_memory or source.storage == "files"):
            source.refuse("A search, which trains on parts of the rows,")
        if is_indicator(y):
            raise ValueError("SLNDClassifierCV takes classes that exclude each other, not a label indicator; "
                             "SmSVMClassifierCV, with an estimator of loss='logistic' for one, takes it.")
        classes, codes, _ = code_labels(y)
        refuse_penalty(estimator, estimator._loss_for(classes, codes, source), False)
        weights = None if sample_weight is None else _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        data = Rows(source, y, classes, codes, weights)
        refuse_one_class(codes, data.weighed(estimator)[0])
        return X, data

    def _refitted(self, X, data, l2, run):
        """Attributes of the fit to all rows, whose sentence on how far it got joins those of the folds."""
        begin, best, said = perf_counter(), clone(self._estimator).set_params(l2=l2), []
        best._warn_of = said.append
        best.fit(X, data.y, data.weights)
        del best._warn_of
        run.of_best = next(filter(None, said), None)
        found = {name: getattr(best, name) for name in OF_THE_BEST} | {"best_estimator_": best}
        return found | {"refit_time_": perf_counter() - begin, "n_passes_": best.n_passes_ + run.n_passes}
