"""SmSVM for regression: linear models of targets by losses with kinks or without, with a certificate."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from cmargin._estimators.base import LinearModel, keeps_last_fit
from cmargin._estimators.docs import ByColumn, Callback, CheckpointFile, RandomState
from cmargin._estimators.labels import of_mean_1, product_in_range
from cmargin._estimators.predict import LinearScores, lazy_on_workers
from cmargin._estimators.regression_fit import RegressionFit
from cmargin._estimators.scores import as_given
from cmargin._estimators.smsvm_fit import check_penalty, refuse_solver_over_places
from cmargin._estimators.targets import ResidualLoss, Targets
from cmargin._estimators.validation import NOT_NEGATIVE, POSITIVE, check_parameter, check_set_by_hand
from cmargin.data.arrays import dense, is_sparse
from cmargin.data.containers import label_array, weight_array
from cmargin.data.device.arrays import namespace_of, on_device
from cmargin.data.open_here import opened

LOSSES = ("epsilon_insensitive", "quantile", "squared_epsilon_insensitive", "huber")
SOLVERS = ("auto", "cholesky", "woodbury", "cg", "dual")
BELOW_1 = (0.0, np.nextafter(1.0, 0.0), "(0.0, 1.0)")


class SmSVMRegressor(LinearScores, RegressorMixin, LinearModel):
    """Linear support vector, quantile and Huber regression with a certificate: l2 and l1 penalties, bounds, groups.

    Minimises, for every target::

        l2/2 |w|^2 + (1/N) sum_i s_i F(y_i - <w, x_i> - b) + l1 |w|_1,     sum_i s_i = N

    by Newton's method, kinks of the loss smoothed, and stops when a dual value proves that the objective is
    within ``tol`` of its minimum.

    Parameters
    ----------
    loss : {"epsilon_insensitive", "quantile", "squared_epsilon_insensitive", "huber"}, default="epsilon_insensitive"
        F(r) = max(0, abs(r) - epsilon), or its square, as in ``sklearn.svm.LinearSVR``; q r where r > 0 and (q - 1) r
        elsewhere, as in ``sklearn.linear_model.QuantileRegressor``, q the ``quantile``; r^2 / 2 where abs(r) <= delta,
        and delta abs(r) - delta^2 / 2 beyond.
    epsilon : float, default=0.1
        Of loss="epsilon_insensitive" and "squared_epsilon_insensitive": residuals up to it cost nothing; at least 0,
        in the unit of y. 0: least absolute deviations, or least squares.
    quantile : float or sequence of float, default=0.5
        Of loss="quantile": between 0 and 1, or several of them for one target, which share the reads of the rows.
    l2 : float, (n_features,) array or None, default=None
        Weight of the quadratic penalty, at least 0; an array has one for every column. None: 1e-4, or what ``C`` says.
    C : float or None, default=None
        Instead of ``l2``: ``l2 = 1 / (C * sum of the weights of the rows)``, as in ``sklearn.svm.LinearSVR``.
        ``np.inf``: no penalty, and no certificate unless the objective is 0.
    l1 : float or (n_features,) array, default=0.0
        Weight of the l1 penalty, at least 0; an array has one for every column.
    tol : float, default=1e-4
        Relative duality gap, (objective - bound) / objective, at which a target is done. An objective of less than
        1e-15 of the spread of the targets counts as 0, and so does a gap of that size.
    max_passes : float, default=1000
        Reads of the data for a target, after which a warning names the gap that is left; what counts as in
        `SmSVMClassifier`.
    linear_solver : {"auto", "cholesky", "woodbury", "cg", "dual"}, default="auto"
        As in `SmSVMClassifier`; "dual", of loss="epsilon_insensitive" and "quantile", needs l1=0 and l2>0.
    subset_growth : {"auto", None}, default="auto"
        "auto": solve on a tenth of the rows, or fewer, first where there are many.
    penalize_intercept : bool, default=False
        Penalise the intercept like a coefficient, as ``sklearn.svm.LinearSVR`` does, which costs targets far from 0.
    fit_intercept : bool, default=True
        Fit an intercept. Without one it is 0.
    warm_start : bool, default=False
        Start from the coefficients of the last fit.
    max_time : float or None, default=None
        Seconds after which the best point so far is kept.
    random_state : int, RandomState or None, default=None
        Chooses subsets of rows; None: the same every time.
    n_jobs : int or None, default=None
        Threads. None: the processors that the process may use; -1: all. The result is the same to the bit.
    verbose : int, default=0
        1: print a line for every evaluation of the objective. 2: the plan of the fit first, with reasons.
    callback : callable or None, default=None
        Called with the estimator after every Newton step, fitted attributes set; a true answer stops the fit.
    checkpoint : path, `cmargin.Checkpoint` or None, default=None
        File that keeps the state of `fit`, as in `SmSVMClassifier`.
    delta : float, default=1.0
        Of loss="huber": residuals beyond it count as their size, not as their square; above 0, in the unit of y.
        ``sklearn.linear_model.HuberRegressor`` has ``delta = epsilon * scale_``, and estimates ``scale_``.
    groups : array-like or None, default=None
        Columns whose weights are zero together or not at all, as in `SmSVMClassifier`; ``l1`` then weighs the norms
        of the groups.
    lower, upper : float, (n_features,) array or None, default=None
        Bounds of the weights, of every target, as in `SmSVMClassifier`.
    l1_ratio : float or None, default=None
        Share of the l1 penalty, in place of ``l1``, as in `SmSVMClassifier`.
    constraints : (A, b) or None, default=None
        Linear constraints of the weights of every target, ``A @ w + b >= 0``, as in `SmSVMClassifier`.
    non_crossing : bool, default=False
        Of several quantiles, `predict` puts the predictions of every row in the order of the quantiles: a lower one is
        nowhere above a higher one, and their pinball losses add up to no more, whatever the target (Chernozhukov,
        Fernandez-Val and Galichon 2010). ``coef_``, ``objective_`` and ``duality_gap_`` are as without it.

    Attributes
    ----------
    coef_ : (m,) or (n_targets, m) array
        Weights, of the best point that was found. A row for every column of y, or for each of several quantiles.
    intercept_ : float or (n_targets,) array
        Intercepts, of the same point.
    duality_gap_ : (n_targets,) array
        Certified relative gap of each target; NaN without penalties, where none can be had.
    objective_ : (n_targets,) array
        The objective, not smoothed, of each target.
    n_iter_ : int
        Newton steps of the target that took most.
    n_passes_ : float
        Reads of the data, in reads of all of it, for the target that took most.
    n_passes_per_target_ : (n_targets,) array
        The same of each target or quantile.
    history_ : dict of arrays, one entry an evaluation
        As in `SmSVMClassifier`, with ``target`` in place of ``class``.
    n_features_in_ : int
        Columns of X in the last fit.
    feature_names_in_ : (n_features,) array
        Where X had names of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from cmargin import SmSVMRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SmSVMRegressor(epsilon=10.0).fit(scale(X), y)
    >>> model.score(scale(X), y) > 0.5
    True
    >>> bool(model.duality_gap_[0] <= 1e-4)                                               # proven, not hoped for
    True
    """

    coef_: np.ndarray
    intercept_: Any

    def __init__(self, loss: str = "epsilon_insensitive", epsilon: float = 0.1,
                 quantile: float | Sequence[float] = 0.5, l2: ByColumn | None = None, C: float | None = None,
                 l1: ByColumn = 0.0, tol: float = 1e-4, max_passes: float = 1000, linear_solver: str = "auto",
                 subset_growth: str | None = "auto", penalize_intercept: bool = False, fit_intercept: bool = True,
                 warm_start: bool = False, max_time: float | None = None, random_state: RandomState = None,
                 n_jobs: int | None = None, verbose: int = 0, callback: Callback = None,
                 checkpoint: CheckpointFile = None, delta: float = 1.0, groups: Any = None,
                 lower: ByColumn | None = None, upper: ByColumn | None = None,
                 l1_ratio: float | None = None, constraints: Any = None, non_crossing: bool = False) -> None:
        self.loss = loss
        self.epsilon = epsilon
        self.quantile = quantile
        self.l2 = l2
        self.C = C
        self.l1 = l1
        self.tol = tol
        self.max_passes = max_passes
        self.linear_solver = linear_solver
        self.subset_growth = subset_growth
        self.penalize_intercept = penalize_intercept
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.delta = delta
        self.groups = groups
        self.lower = lower
        self.upper = upper
        self.l1_ratio = l1_ratio
        self.constraints = constraints
        self.non_crossing = non_crossing

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    _takes_places = True
    _leaves_out_weightless = False

    def _refuse_over_places(self, how):
        refuse_solver_over_places(self, how)

    def _check_parameters(self):
        check_penalty(self)
        check_parameter(self, "loss", self.loss, options=LOSSES)
        check_parameter(self, "epsilon", self.epsilon, real=NOT_NEGATIVE)
        check_parameter(self, "delta", self.delta, real=POSITIVE)
        for level in self._levels() or [self.quantile]:
            check_parameter(self, "quantile", level, real=BELOW_1)
        for name in ("tol", "max_passes"):
            check_parameter(self, name, getattr(self, name), real=POSITIVE)
        check_parameter(self, "linear_solver", self.linear_solver, options=SOLVERS)
        check_parameter(self, "subset_growth", self.subset_growth, options=("auto",), none=True)
        check_parameter(self, "penalize_intercept", self.penalize_intercept, flag=True)
        check_parameter(self, "non_crossing", self.non_crossing, flag=True)
        self._check_shared()

    def _levels(self):
        """``quantile`` as a list."""
        several = isinstance(self.quantile, (Sequence, np.ndarray)) and not isinstance(self.quantile, str)
        return list(self.quantile) if several and np.ndim(self.quantile) == 1 else [self.quantile]

    @property
    def _several(self):
        """Whether ``quantile`` is a sequence, if of one."""
        return self.loss == "quantile" and np.ndim(self.quantile) > 0

    def _losses(self):
        """`ResidualLoss` of every column of weights that one target has."""
        if self.loss == "quantile":
            return [ResidualLoss("quantile", float(q), False, tilt=float(q)) for q in self._levels()]
        if self.loss == "huber":
            return [ResidualLoss("huber", float(self.delta), True, degree=2)]
        epsilon = max(float(self.epsilon), 0.0)
        return [ResidualLoss(self.loss, epsilon, True, insensitive=epsilon,
                             degree=2 if self.loss == "squared_epsilon_insensitive" else 1)]

    @keeps_last_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, comm: Any = None) -> Self:
        """Train from zero, or from the last weights with ``warm_start``.

        Ctrl-C stores the best weights so far before it goes on; a fit that is refused leaves the last one as it was.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            float32 and float64, C or F order, memory-mapped, CSR: without a copy. Other numbers become float64. Or
            paths of files, a Dask array or frame, or a tensor, as `SmSVMClassifier.fit` takes them.
        y : (n_samples,) or (n_samples, n_targets) numbers
            Targets, each with weights of its own; or paths of .npy files, or the name of a column or array of
            them, where X is in files.
        sample_weight : (n_samples,) array or None
        comm : communicator with mpi4py's buffer methods, or None
            Every rank calls `fit` with its own rows, as of `SmSVMClassifier.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For parameters, shapes, NaN, infinities, negative weights, targets that are no numbers.
        """
        return self._fit(X, y, sample_weight, comm)

    def _train(self, source, sample_weight, begin, checkpointer):
        weight, total_weight = None, float(source.n_rows)
        if sample_weight is not None:
            given = _check_sample_weight(sample_weight, source.y, dtype=np.float64, ensure_non_negative=True)
            if not given.any():
                raise ValueError("sample_weight leaves every sample with weight 0.")
            weight, total_weight = product_in_range([given])
        if source.agreed is None:
            free = self.fit_intercept and not self.penalize_intercept
            targets = Targets.of(source.y, self._losses(), self._several, weight, free)
            weights = None if weight is None else of_mean_1(weight)
        else:
            targets, weights, total_weight = source.agreed, None, source.agreed.total_weight
        if self._goes_on:
            self._check_last_fit(source, targets)
        return RegressionFit(self, source, targets, weights, total_weight, begin, checkpointer).trained()

    def _check_last_fit(self, source, targets):
        check_set_by_hand(self, "warm_start", ("coef_", "intercept_"), 1)
        n, (rows, columns) = len(targets), np.atleast_2d(self.coef_).shape
        if columns != source.n_features:
            raise ValueError(f"X has {source.n_features} features, but the fit to go on from has {columns}")
        if rows != n or np.size(self.intercept_) != n:
            raise ValueError(f"warm_start needs coef_ and intercept_ of {n} row(s); got shapes {self.coef_.shape} and "
                             f"{np.shape(self.intercept_)}.")
        if not (np.isfinite(self.coef_).all() and np.isfinite(self.intercept_).all()):
            raise ValueError("warm_start needs finite weights, but coef_ or intercept_ of the last fit contains NaN or "
                             "infinity; fit another estimator, or without a warm start.")

    # ---------------------------------------------------------------- prediction

    @property
    def _weight_rows(self):
        return self.coef_ if is_sparse(self.coef_) or self.coef_.ndim == 2 else self.coef_[None, :]

    @property
    def _ranking(self):
        return np.atleast_1d(np.asarray(self.intercept_))

    def densify(self):
        """Keep ``coef_`` as an array again, after `sparsify`. Returns self."""
        super().densify()
        if np.ndim(self.intercept_) == 0:
            self.coef_ = self.coef_.ravel()
        return self

    @lazy_on_workers
    def predict(self, X: Any) -> np.ndarray:
        """<w, x> + b of every row: (n_samples,), or (n_samples, n_targets) where y had columns or there are several
        quantiles."""
        X = self._check_rows(X)
        found = as_given(X, self._in_order(self._scores(X)))
        return found[:, 0] if np.ndim(self.intercept_) == 0 else found

    @property
    def _rearranges(self):
        return self._several and getattr(self, "non_crossing", False)        # models saved before have none

    def _in_order(self, scores):
        """Each row's, the lowest for the lowest quantile, where ``non_crossing`` says so."""
        if not self._rearranges:
            return scores
        order = np.argsort(np.argsort(self._levels(), kind="stable"), kind="stable").tolist()
        if on_device(scores):
            xp = namespace_of(scores)
            scores = xp.sort(scores, axis=1)
            return xp.stack([scores[:, place] for place in order], axis=1)
        return np.sort(scores, axis=1)[:, order]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 on ``X`` and ``y``, over several targets the mean; ValueError with several quantiles, which predict one.

        ``sklearn.metrics.mean_pinball_loss`` judges a quantile.
        """
        from sklearn.metrics import r2_score  # heavy, and training does not need it

        X, y, sample_weight = opened(X, y, sample_weight)
        predicted, y = self.predict(X), label_array(y)
        if np.ndim(y) == 1 and predicted.ndim == 2 and predicted.shape[1] > 1:
            raise ValueError(f"R^2 is of one prediction a target, and there are {predicted.shape[1]} quantiles of it; "
                             "give sklearn.metrics.mean_pinball_loss a column of predict(X).")
        return r2_score(y, predicted, sample_weight=weight_array(sample_weight))

    def to_sklearn(self) -> Any:
        """The same predictions by a fitted ``sklearn.linear_model.LinearRegression``, which needs not this package."""
        from sklearn.linear_model import LinearRegression  # heavy, and few need it

        check_is_fitted(self)
        if self._rearranges:
            raise ValueError("to_sklearn needs non_crossing=False: predictions that are put in order are not linear.")
        twin = LinearRegression()
        twin.coef_ = np.array(dense(self._weight_rows))
        twin.intercept_ = np.copy(self.intercept_)[()]
        if np.ndim(self.intercept_) == 0:
            twin.coef_ = twin.coef_[0]
        twin.n_features_in_ = twin.coef_.shape[-1]
        if hasattr(self, "feature_names_in_"):
            twin.feature_names_in_ = self.feature_names_in_.copy()
        return twin
