"""SmSVM with its penalties chosen by cross-validation."""

from collections.abc import Callable, Sequence
from copy import copy
from numbers import Integral
from time import perf_counter
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from cmargin._estimators.apart import check_list, is_indicator, weights_differ
from cmargin._estimators.base import keeps_last_fit
from cmargin._estimators.by_column import is_array
from cmargin._estimators.docs import CheckpointFile
from cmargin._estimators.identity import check_checkpoint, checkpointer_of
from cmargin._estimators.labels import Labels, code_labels
from cmargin._estimators.pruned import refuse_stored
from cmargin._estimators.search.base import PenaltySearch, refuse_over_places
from cmargin._estimators.search.fits import Posed, reads_of
from cmargin._estimators.search.folds import splits, warn_of_lacking
from cmargin._estimators.search.grid import grid_of, largest_l2
from cmargin._estimators.search.left_out import LeftOutRun, check_left_out, is_left_out, warn_of_lone_rows
from cmargin._estimators.search.over_places import search_over_places
from cmargin._estimators.search.path_fold import SINGLE_FITS, takes_paths
from cmargin._estimators.search.run import SearchRun
from cmargin._estimators.search.scoring import Scoring
from cmargin._estimators.smsvm_fit import penalty_of
from cmargin._estimators.validation import POSITIVE, check_data, check_parameter, check_verbose
from cmargin._runtime.checkpoint import NO_CHECKPOINTER
from cmargin.data.open_here import source_of
from cmargin.data.places import on_workers
from cmargin.smsvm import SmSVMClassifier, of_logistic_loss

OF_THE_BEST = ("coef_", "intercept_", "classes_", "objective_", "duality_gap_", "n_iter_", "history_")
OF_A_REFIT = (*OF_THE_BEST, "best_estimator_", "refit_time_")


class SmSVMClassifierCV(PenaltySearch):
    """`SmSVMClassifier` with l2 and l1 chosen from a grid by a cross-validated score, then fitted to all rows.

    Parameters
    ----------
    l2s : sequence of float, int or None, default=None
        Weights of the quadratic penalty to try, at least 0. An int: so many, from where the weights are about the
        direction between the means of the classes down to a millionth of that. None: 1e-6, 1e-5, ..., 1e-1, unless
        ``Cs`` are given.
    l1s : sequence of float, default=(0.0,)
        Weights of the l1 penalty to try, each with every l2.
    cv : int, splitter, iterable of (training rows, test rows), "loo" or None, default=5
        Folds, or what splits the rows, as in scikit-learn: a number is of stratified folds where y is labels, of
        plain ones where it is an indicator. "loo": every row is left out by itself, without a fit for each; the
        score is exact, by `SmSVMClassifier.leave_one_out`, which says what it takes. It needs an l1 of 0.
    estimator : SmSVMClassifier or None, default=None
        Supplies every other parameter. None: their defaults.
    standardize : bool, default=False
        Score each fold with columns scaled by its own training rows, of which a copy is made. The final fit takes X as
        it is: put a scaler in front for that.
    verbose : bool or int, default=0
        True, or a number above 0: print a line after every fit of a fold.
    checkpoint : path, `cmargin.Checkpoint` or None, default=None
        File in which the scores are kept, as by `SmSVMClassifier`, after the fits of a fold, and where time or Ctrl-C
        ends the search: fits that were under way are made again. ``estimator`` has none of its own. Without one Ctrl-C
        leaves ``scores_``, ``cv_results_`` and what was best so far, and no fit to all rows.
    Cs : sequence of float or None, default=None
        Instead of ``l2s``: values of ``C`` to try, each of which is l2 = 1 / (C * sum of the weights of the rows) in
        every fold and in the final fit. ``np.inf``: no penalty.
    scoring : str, callable or None, default=None
        What is best: a name or a scorer of scikit-learn's, or ``scoring(estimator, X, y)``, larger being better. None:
        accuracy. Sample weights count in a score that takes them.
    n_jobs : int or None, default=None
        Threads of a fit, instead of those of ``estimator``; None: as that says. The result is the same to the bit.
    refit : bool, default=True
        Fit all rows with the penalties chosen. False: the search ends with the scores, and cannot predict.
    one_standard_error : bool, default=False
        Choose the strongest penalties whose mean score is within one standard error of the best, not the best.
    max_time : float or None, default=None
        Seconds after which no fit of a fold is begun or goes on. What was scored stays, other scores are NaN, and the
        best so far is fitted to all rows, which takes as long as it takes, as does leaving out that has begun.

    Attributes
    ----------
    l2_, l1_ : float
        The chosen penalties; of equal scores the strongest l1, then the strongest l2.
    C_ : float
        The C that ``l2_`` is for all rows, or, with ``Cs``, that was chosen.
    penalties_ : (n_l2s,) array
        Values of l2, or of C with ``Cs``, in the order of ``scores_``.
    scores_ : (n_folds, n_l2s, n_l1s) array
        Score of the rows of each fold that were held out, NaN where there is none. Accuracy of an indicator is the
        share of rows whose labels are all right. With ``cv="loo"`` there is one row, of all left-out predictions
        together.
    best_score_ : float
        Mean over the folds, of the penalties chosen.
    best_index_, best_params_ : int, dict
        The row of ``cv_results_`` that was chosen, and its penalties.
    cv_results_ : dict of arrays
        A row for each pair of penalties, in the columns of scikit-learn's searches; and ``max_duality_gap``, the
        largest of the pair's fits.
    n_splits_ : int
        Folds; 1 with ``cv="loo"``.
    scorer_ : callable or None
        What ``scoring`` stands for; None: accuracy.
    refit_time_ : float
        Seconds of the final fit.
    best_estimator_ : SmSVMClassifier
        Trained on all rows with the penalties chosen.
    coef_, intercept_, classes_, objective_, duality_gap_, n_iter_, history_ : as in `SmSVMClassifier`
        Of ``best_estimator_``.
    n_passes_ : float
        Reads of the data by all fits, those of the folds included; with ``cv="loo"`` those of the fits alone. Over
        files, where one read serves all fits that wait for it, reads of the files, those for the scores included.
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
    >>> bool(search.best_score_ == search.cv_results_["mean_test_score"].max())
    True
    """

    _parameter_constraints = {
        "l2s": ["array-like", Interval(Integral, 1, None, closed="left"), None], "l1s": ["array-like"],
        "Cs": ["array-like", None], "cv": ["cv_object", StrOptions({"loo"})], "estimator": [SmSVMClassifier, None],
        "standardize": ["boolean"], "scoring": [str, callable, None], "n_jobs": [Integral, None], "refit": ["boolean"],
        "one_standard_error": ["boolean"],
    }
    coef_: np.ndarray
    intercept_: np.ndarray
    objective_: np.ndarray
    classes_: np.ndarray
    best_estimator_: SmSVMClassifier
    l2_: float
    l1_: float
    C_: float
    scores_: np.ndarray
    best_score_: float
    cv_results_: dict[str, Any]
    n_passes_: float

    def __init__(self, l2s: Sequence[float] | int | None = None, l1s: Sequence[float] = (0.0,), cv: Any = 5,
                 estimator: SmSVMClassifier | None = None, standardize: bool = False, verbose: int = 0,
                 checkpoint: CheckpointFile = None, Cs: Sequence[float] | None = None,
                 scoring: str | Callable[..., float] | None = None, n_jobs: int | None = None, refit: bool = True,
                 one_standard_error: bool = False, max_time: float | None = None) -> None:
        self.l2s = l2s
        self.l1s = l1s
        self.cv = cv
        self.estimator = estimator
        self.standardize = standardize
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.Cs = Cs
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.one_standard_error = one_standard_error
        self.max_time = max_time

    @keeps_last_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None,
            comm: Any = None) -> Self:
        """Choose the penalties and fit to X, y.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Or what `SmSVMClassifier.fit` takes besides: paths of files, `open_files`, a tensor. Where rows do not fit
            into memory, or are on a device, all folds go on together, so that a read of the files serves all their
            fits; scores are known at the end, and a Ctrl-C before that leaves none but a ``checkpoint`` of the fits.
        y : (n_samples,) labels, or (n_samples, n_labels) indicator, whose labels share the penalties chosen
        sample_weight : (n_samples,) array or None
            Of the rows, in the fits and, where a scorer takes them, in the scores.
        groups : (n_samples,) array or None
            Handed to the splitter ``cv``, which may keep the rows of a group together.
        comm : communicator with mpi4py's buffer methods, or None
            Every rank calls `fit` with its own rows, which stay where they are, and ends with the same model; folds
            are those of all rows, rank after rank, and the search's own parameters rank 0's. As with Dask collections
            the driver is told all labels and weights once, and the scores of rows held out. ``l2s`` must be numbers
            then, and y no label indicator, and there are no ``groups`` and no ``checkpoint``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As `SmSVMClassifier.fit`; for rows that are not in memory with ``cv="loo"``, ``standardize``, ``scoring``
            that asks for rows, and an estimator whose fits are made one by one (bounds, a callback, its own max_time).

        Warns
        -----
        UserWarning
            Where the training rows of a fold lack a class, which is never predicted there, or have a label of an
            indicator nowhere or everywhere, whose prediction is constant there; where a fold has no score.
        ConvergenceWarning
            Where fits stopped short of the tolerance, or ``max_time`` ended the search. One warning says all of it.
        """
        begin = perf_counter()
        if comm is not None or on_workers(X):
            return self._fit_over_places(X, y, sample_weight, groups, comm, begin)
        X, y, weights, classes, codes = self._checked(X, y, sample_weight)
        if groups is not None and is_left_out(self.cv):
            raise ValueError("cv='loo' leaves out rows, not groups; give LeaveOneGroupOut() for these.")
        routed = self._routed(X, weights, groups)
        checkpointer = checkpointer_of(self, source_of(X, y), weights, groups)
        run = self._run(X, y, weights, classes, codes, routed, checkpointer,
                        None if self.max_time is None else begin + self.max_time)
        with self._keeps_scores(run):
            grid, place = run.grid, self._place(run)
            found = self._found(run, place) | self._both_ways(X, y, weights, grid.parameters(*place))
            if self.refit:
                found |= self._refitted(X, y, weights, grid.parameters(*place), run)
        for name in [name for name in OF_A_REFIT if not self.refit and name in vars(self)]:
            delattr(self, name)
        self.__dict__.update(found)
        self._warn_of(run)
        checkpointer.end("max_time" if run.n_left else "converged")
        checkpointer.close()
        return self

    def _fit_over_places(self, X, y, sample_weight, groups, comm, begin):
        """`fit` to the rows of ranks or workers."""
        def checked():
            grid = self._checked_parameters()
            refuse_over_places(self, checkpoint=self.checkpoint is not None, groups=groups is not None,
                               standardize=self.standardize, **{
                "number as l2s": isinstance(self.l2s, Integral), "cv='loo'": is_left_out(self.cv),
                "scoring that asks for rows": not Scoring(self).by_scores})
            return grid

        if not isinstance(self._estimator, SmSVMClassifier):
            self._validate_params()              # raises; there is nothing that ranks could be asked by
        found, refits, run = search_over_places(self, checked, X, y, sample_weight, comm, begin)
        if refits:
            fitted = perf_counter()
            best = clone(self._estimator).set_params(**{"l2": None, "C": None, **found["best_params_"]})
            best.fit(X, y, sample_weight, comm=comm)
            found |= {name: getattr(best, name) for name in OF_THE_BEST} | {
                "best_estimator_": best, "refit_time_": perf_counter() - fitted,
                "n_passes_": found["n_passes_"] + reads_of(best)}
        for name in [name for name in OF_A_REFIT if not refits and name in vars(self)]:
            delattr(self, name)
        self.__dict__.update(found)
        if run is not None:
            self._warn_of(run)
        return self

    # ---------------------------------------------------------------- what is asked for

    @property
    def _estimator(self):
        estimator = SmSVMClassifier() if self.estimator is None else self.estimator
        if self.n_jobs is not None:
            estimator = copy(estimator)
            estimator.n_jobs = self.n_jobs
        return estimator

    def _checked_parameters(self):
        """The `Grid`, its l2s as numbers that are chosen later 1 at most."""
        self._validate_params()
        check_verbose(self)
        check_checkpoint(self, self.checkpoint)
        check_parameter(self, "max_time", self.max_time, real=POSITIVE, none=True)
        grid = grid_of(self, lambda: 1.0)
        if is_left_out(self.cv):
            check_left_out(self, grid)
        if self._estimator.checkpoint is not None:
            raise ValueError("The fits of a search take no checkpoint of their own; give it to SmSVMClassifierCV.")
        if self._estimator.multi_class != "ovr":
            raise ValueError("A search follows paths of binary problems: its estimator needs multi_class='ovr', got "
                             f"{self._estimator.multi_class!r}; sklearn.model_selection.GridSearchCV takes it.")
        refuse_stored(self._estimator, "A search")
        for name in ("l2", "l1"):
            if is_array(getattr(self._estimator, name)):
                raise ValueError(f"A search chooses one l2 and one l1 for all columns: {name} of its estimator must be "
                                 "no array; sklearn.model_selection.GridSearchCV takes one.")
        if self.standardize and self._estimator.constraints is not None:
            raise ValueError("standardize=True scales the columns of each fold, and constraints= of its estimator is "
                             "of weights of columns as they are; scale X, or search with standardize=False.")
        if self._estimator.l1_ratio is not None:
            raise ValueError("A search tries every l1 of l1s with every l2: l1_ratio of its estimator must be None, "
                             f"got {self._estimator.l1_ratio!r}; sklearn.model_selection.GridSearchCV takes one.")
        estimator = clone(self._estimator).set_params(l2=None, C=None, l1=0.0)       # which the grid replaces
        estimator._check_for(None)
        return grid

    def _checked(self, X, y, sample_weight):
        """Rows, labels, weights, classes and the labels' places among them, once they and the parameters are found to
        be in order."""
        grid = self._checked_parameters()
        X, y, sample_weight = check_data(self, X, y, sample_weight)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        source = source_of(X, y)
        classes, codes, _ = code_labels(y)
        check_list(self._estimator, is_indicator(y))
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        if not source.in_memory:
            self._refuse_elsewhere(source, grid)
        return X, y, weights, classes, codes

    def _refuse_elsewhere(self, source, grid):
        """Raise for what is searched of rows in memory alone, where they are not."""
        if is_left_out(self.cv):
            source.refuse("cv='loo'")
        if self.standardize:
            source.refuse("standardize=True")
        if not Scoring(self).by_scores:
            source.refuse("A search whose scoring asks for rows")
        if not takes_paths(self._estimator, source, grid):
            source.refuse(SINGLE_FITS)

    def _run(self, X, y, weights, classes, codes, routed, checkpointer=NO_CHECKPOINTER, deadline=None,
             warns=True):
        """The `SearchRun` that has made the fits of all folds; ``warns``: of classes that folds lack."""
        def top():
            return largest_l2(source_of(X), Labels(classes, codes, code_labels(y)[2]), weights)

        grid = grid_of(self, top)
        posed = Posed(self._estimator, X, y, classes, codes, weights, self.standardize, Scoring(self),
                      routed.scorer.score)
        if is_left_out(self.cv):
            run = LeftOutRun(self, posed, grid, checkpointer, deadline)
            if warns:
                warn_of_lone_rows(classes, codes)
        else:
            run = SearchRun(self, posed, grid, splits(self.cv, X, y, routed.splitter.split), checkpointer, deadline)
        if warns:
            warn_of_lacking(classes, y, codes, run.rows, of_all=not self.refit)
        with self._keeps_scores(run):
            run.run()
        return run

    # ---------------------------------------------------------------- what is found

    def _both_ways(self, X, y, weights, parameters):
        """``l2_`` and ``C_``, of which one follows from the other by what the rows weigh."""
        best = clone(self._estimator).set_params(**parameters)
        best._names_constants = False
        total = float(X.shape[0]) if weights_differ(best, source_of(X, y), weights) else \
            best._labels_and_weights(source_of(X, y), weights)[2]
        return self._l2_and_C(best, total, X.shape[1])

    @staticmethod
    def _l2_and_C(best, total, n_features):
        l2 = penalty_of(best, total, n_features).l2
        strength = l2 * total                    # 0 for weights near the least number too
        return {"l2_": l2, "C_": best.C if best.C is not None else 1 / strength if strength > 0 else np.inf}

    def _refitted(self, X, y, weights, parameters, run):
        """Attributes of the fit to all rows, whose sentence on how far it got joins those of the folds."""
        begin, best, said = perf_counter(), clone(self._estimator).set_params(**parameters), []
        best._warn_of = said.append
        best.fit(X, y, weights)
        del best._warn_of
        run.of_best = next(filter(None, said), None)
        found = {name: getattr(best, name) for name in OF_THE_BEST} | {"best_estimator_": best}
        reads = best.n_passes_ if source_of(X).shares_reads else reads_of(best)
        return found | {"refit_time_": perf_counter() - begin, "n_passes_": reads + run.n_passes}

    def _found(self, run, place):
        return super()._found(run, place) | {"l1_": float(run.grid.l1s[place[1]])}

    @property
    def _has_probabilities(self):
        return of_logistic_loss(self._estimator)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
