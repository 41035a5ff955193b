"""SmSVM: linear classification by a hinge or logistic loss with l2 and l1 penalties, with a certificate."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from cmargin._estimators.base import LinearClassifier, keeps_last_fit
from cmargin._estimators.docs import ByColumn, Callback, CheckpointFile, ClassWeight, RandomState
from cmargin._estimators.joint_fit import joint_fit, refuse_parameters, refuse_rows
from cmargin._estimators.labels import Labels, code_labels, of_mean_1, signs_met
from cmargin._estimators.leave_one_out import LeaveOneOut, leave_one_out
from cmargin._estimators.offset_fit import fit_with_offset
from cmargin._estimators.path import SmSVMPath, fit_path
from cmargin._estimators.predict import lazy_on_workers
from cmargin._estimators.pruned import check_stored, refuse_stored
from cmargin._estimators.smsvm_fit import SmSVMFit, check_penalty, refuse_solver_over_places
from cmargin._estimators.validation import POSITIVE, check_parameter
from cmargin.data.loss import Loss

SOLVERS = ("auto", "cholesky", "woodbury", "cg", "dual")
LOSSES = ("hinge", "squared_hinge", "logistic", "huberised_hinge", "modified_huber")


def of_logistic_loss(estimator):
    if estimator.loss != "logistic":
        raise AttributeError(f"probability estimates are not available for loss={estimator.loss!r}")
    return True


class SmSVMClassifier(LinearClassifier):
    """Linear support vector machine with a certificate: hinge or logistic loss, l2 and l1 penalties.

    Minimises, for every class against the rest::

        l2/2 |w|^2 + (1/N) sum_i s_i F(y_i (<w, x_i> + b)) + l1 |w|_1,     sum_i s_i = N

    by Newton's method, and stops when a dual value proves that the objective is within ``tol`` of its minimum.

    Parameters
    ----------
    l2 : float, (n_features,) array or None, default=None
        Weight of the quadratic penalty, at least 0; an array has one for every column. None: 1e-4, or what ``C`` says.
    C : float or None, default=None
        Instead of ``l2``: ``l2 = 1 / (C * sum of the weights of the rows)``, as in ``sklearn.svm.LinearSVC`` and
        ``sklearn.linear_model.LogisticRegression``. ``np.inf``: no penalty, and no certificate unless the
        objective is 0. Of separable classes the logistic loss then has no minimum, which a warning says.
    l1 : float or (n_features,) array, default=0.0
        Weight of the l1 penalty, at least 0; an array has one for every column.
    loss : {"hinge", "squared_hinge", "logistic", "huberised_hinge", "modified_huber"}, default="hinge"
        F(z) = max(0, 1 - z), max(0, 1 - z)^2 or ln(1 + e^-z). "huberised_hinge", in u = 1 - z: 0 below 0, u^2 / (2
        delta) up to delta, then u - delta / 2. "modified_huber": max(0, 1 - z)^2 for z >= -1, else -4 z, as in
        ``sklearn.linear_model.SGDClassifier``.
    tol : float, default=1e-4
        Relative duality gap, (objective - bound) / objective, at which a class is done.
    max_passes : float, default=1000
        Reads of the data for a class, products of conjugate gradients among them, after which a warning names the gap
        that is left; the data are always read once. Reads of columns, which l1 steps on sparse rows take in place of a
        factor, are in ``n_passes_`` and do not count.
    smoothing : float, default=1.0
        First width of the smoothed hinge. Other losses do not use it.
    smoothing_decay : float, default=0.5
        Factor of the width after a step; with the exact line search, its first value, which then adapts.
    newton_tol : float, default=0.1
        With ``line_search="quadratic"``: the width falls once the predicted decrease is below ``newton_tol`` times it.
    line_search : {"exact", "quadratic"}, default="exact"
        "quadratic" with ``smoothing_decay=0.1`` is the published algorithm, step for step.
    linear_solver : {"auto", "cholesky", "woodbury", "cg", "dual"}, default="auto"
        How Newton steps are solved; "auto" decides by shape and cost, and ``verbose=2`` prints what and why.
        "woodbury": in as many unknowns as there are rows. "cg": by conjugate gradients. "dual": in the dual variables
        (not the logistic loss; one thread a class). These three need l1=0; "dual" needs l2>0 too.
    subset_growth : {"auto", None}, default="auto"
        "auto": solve on a tenth of the rows first where there are many.
    penalize_intercept : bool, default=False
        Penalise the intercept like a coefficient, as the published algorithm and LIBLINEAR do.
    fit_intercept : bool, default=True
        Fit an intercept. Without one it is 0.
    class_weight : dict, list of dicts, array, "balanced" or None, default=None
        Weight of the rows of each class in every one-vs-rest problem; "balanced": classes weigh alike. For an indicator
        {0: ..., 1: ...}, of numbers or of one for each label; a list of such dicts; an array (n_labels, 2); "balanced".
    warm_start : bool, default=False
        Start from the coefficients of the last fit.
    max_time : float or None, default=None
        Seconds after which the best point so far is kept.
    random_state : int, RandomState or None, default=None
        Chooses subsets of rows and orders the sweeps of the dual; None: the same every time.
    n_jobs : int or None, default=None
        Threads. None: the processors that the process may use; -1: all. The result is the same to the bit.
    verbose : int, default=0
        1: print a line for every evaluation of the objective. 2: the plan of the fit first, with reasons.
    callback : callable or None, default=None
        Called with the estimator after every Newton step, fitted attributes set; a true answer stops the fit.
    checkpoint : path, `cmargin.Checkpoint` or None, default=None
        File that keeps the state of `fit`: the same call in another process resumes from it, to the same bits. It is
        removed when a fit ends, and stays where time or an interrupt ended it.
    class_weight_on : {"rows", "positives"}, default="rows"
        "positives": with three or more classes, a class weighs only in the problem where it is the positive one, as in
        LinearSVC and SGDClassifier. Problems are then trained one after the other, and ``C`` counts for each alone.
    delta : float, default=1.0
        Of loss="huberised_hinge", above 0: the width of its quadratic part, in units of the margin.
    groups : array-like or None, default=None
        Columns whose weights are zero together or not at all: a label for each column, or lists of columns, every one
        once. In place of ``l1 |w|_1`` stands ``l1 sum_g sqrt(k_g) |w_g|`` over groups of k_g columns.
    lower, upper : float, (n_features,) array or None, default=None
        Bounds of the weights, infinite ones allowed; ``lower=0``: no weight is negative. None: there are none. The
        intercept has none, and all classes have the same. Weights are within them exactly. Bounds, and an l2 or l1 by
        column, need ``linear_solver`` "auto" or "cholesky" and ``line_search="exact"``.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        "ovr": one problem for each class against the rest. "crammer_singer": one problem of all classes, with
        ``s_i max_c (1[c != y_i] + h_c(x_i) - h_{y_i}(x_i))`` in place of the hinges and ``l2/2 |W|^2`` (Crammer and
        Singer 2001); for rows in memory, loss="hinge" and l1=0.
    l1_ratio : float or None, default=None
        Share of the l1 penalty, in place of ``l1``. With ``C`` as in ``sklearn.linear_model.LogisticRegression``: of
        1 / (C * sum of the weights of the rows), or of 1e-4 without ``C``, ``l1`` is that share and ``l2`` the rest.
        With ``l2``, which stays what it is: ``l1 = l2 * l1_ratio / (1 - l1_ratio)``, of an l1_ratio below 1.
    constraints : (A, b) or None, default=None
        Linear constraints of the weights, ``A @ w + b >= 0``: A is an array (n_constraints, n_features), b a number or
        (n_constraints,); a few rows, as of a bound on the covariance of the scores with a column, or of an order of
        weights. The intercept is in none, and all classes have the same. They hold to rounding, and ValueError says
        which rows, or bounds, contradict each other where no weights meet them. For an l2 above 0 that is one number,
        l1=0 and no groups, up to 4,000 columns and 256 bounds beside them; solvers as with bounds.
    prune : bool or float, default=False
        True: of the weights of all classes together 15 % stay, those that cost most to leave out by the curvature, and
        are trained again without the others; in single precision they are a seventh of the array, in double a
        quarter. A number: weights become 0 as long as the relative gap of each class stays within it; of tags, 0.03
        leaves a quarter to four tenths. `duality_gap_` and `objective_` are of the weights that are left, and
        ``coef_`` is sparse from the beginning. For rows in memory, without bounds, constraints and penalties by column.
    coef_dtype : {"float64", "float32"}, default="float64"
        Of ``coef_``. The gap is that of the rounded weights; for rows in memory, and bounds that are such numbers.

    Attributes
    ----------
    coef_ : (1, m) or (n_classes, m) array, with ``prune`` a ``scipy.sparse.csc_matrix``
        Weights, of the best point that was found.
    intercept_ : (1,) or (n_classes,) array
        Intercepts, of the same point.
    classes_ : array
        Labels, ascending; of an indicator, the numbers of its columns.
    duality_gap_ : (1,) or (n_classes,) array
        Certified relative gap of each class; NaN where none can be had: where a weight has neither a penalty nor bounds
        on both sides.
    objective_ : array
        The objective, not smoothed, of each class.
    n_iter_ : int
        Newton steps of the class that took most.
    n_passes_ : float
        Reads of the data, in reads of all of it, for the class that took most.
    n_passes_per_class_ : (1,) or (n_classes,) array
        The same of each class; one read that serves several counts for each.
    history_ : dict of arrays, one entry an evaluation
        class, passes (reads of the data), seconds, seconds_look, seconds_system, seconds_search (cumulative),
        objective, gap, step, smoothing, active_features, active_rows. On a subset of the rows objective and gap are
        NaN.
    n_features_in_ : int
        Columns of X in the last fit.
    feature_names_in_ : (n_features,) array
        Where X had names of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from cmargin import SmSVMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SmSVMClassifier(C=1.0, loss="squared_hinge", penalize_intercept=True)     # LinearSVC(C=1.0)
    >>> model.fit(scale(X), y).score(scale(X), y) > 0.98
    True
    >>> bool(model.duality_gap_[0] <= 1e-4)                                               # proven, not hoped for
    True
    """

    def __init__(self, l2: ByColumn | None = None, C: float | None = None, l1: ByColumn = 0.0, loss: str = "hinge",
                 tol: float = 1e-4, max_passes: float = 1000, smoothing: float = 1.0, smoothing_decay: float = 0.5,
                 newton_tol: float = 0.1, line_search: str = "exact", linear_solver: str = "auto",
                 subset_growth: str | None = "auto", penalize_intercept: bool = False, fit_intercept: bool = True,
                 class_weight: ClassWeight = None, warm_start: bool = False, max_time: float | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None, verbose: int = 0,
                 callback: Callback = None, checkpoint: CheckpointFile = None, class_weight_on: str = "rows",
                 delta: float = 1.0, groups: Any = None, lower: ByColumn | None = None,
                 upper: ByColumn | None = None, multi_class: str = "ovr", l1_ratio: float | None = None,
                 constraints: Any = None, prune: bool | float = False, coef_dtype: str = "float64") -> None:
        self.l2 = l2
        self.C = C
        self.l1 = l1
        self.loss = loss
        self.tol = tol
        self.max_passes = max_passes
        self.smoothing = smoothing
        self.smoothing_decay = smoothing_decay
        self.newton_tol = newton_tol
        self.line_search = line_search
        self.linear_solver = linear_solver
        self.subset_growth = subset_growth
        self.penalize_intercept = penalize_intercept
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.class_weight_on = class_weight_on
        self.delta = delta
        self.groups = groups
        self.lower = lower
        self.upper = upper
        self.multi_class = multi_class
        self.l1_ratio = l1_ratio
        self.constraints = constraints
        self.prune = prune
        self.coef_dtype = coef_dtype

    @keeps_last_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, comm: Any = None, offset: Any = None) -> Self:
        """Train from zero, or from the last weights with ``warm_start``; with an offset, if one is given.

        Parameters
        ----------
        X, y, sample_weight, comm
            As all classifiers of this package have them.
        offset : (n_samples,) or (n_samples, n_problems) array, or None
            Added to the scores <w, x> + b of the rows while they are trained on: the scores of another model that this
            one goes beyond, or a log-odds that is known. One column for each problem where there are several. It is
            no part of the model: `decision_function` and `predict` do not add it, callers do. Rows in memory or in
            files; without ``checkpoint``, ``linear_solver="dual"`` and weights of each label.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            As the others, and for an offset of another shape, or that is not finite.
        """
        if offset is None:
            return self._fit(X, y, sample_weight, comm)
        if self._is_joint:
            raise ValueError("multi_class='crammer_singer' takes no offset yet.")
        fit_with_offset(self, X, y, sample_weight, comm, offset)
        return self

    _own_fit = staticmethod(fit)

    def _check_parameters(self):
        check_penalty(self)
        check_parameter(self, "loss", self.loss, options=LOSSES)
        for name in ("tol", "max_passes", "smoothing", "newton_tol"):
            check_parameter(self, name, getattr(self, name), real=POSITIVE)
        below_1 = (0.0, np.nextafter(1.0, 0.0), "(0.0, 1.0)")
        check_parameter(self, "smoothing_decay", self.smoothing_decay, real=below_1)
        check_parameter(self, "line_search", self.line_search, options=("exact", "quadratic"))
        check_parameter(self, "linear_solver", self.linear_solver, options=SOLVERS)
        check_parameter(self, "subset_growth", self.subset_growth, options=("auto",), none=True)
        check_parameter(self, "penalize_intercept", self.penalize_intercept, flag=True)
        check_parameter(self, "class_weight_on", self.class_weight_on, options=("rows", "positives"))
        check_parameter(self, "delta", self.delta, real=POSITIVE)
        check_parameter(self, "multi_class", self.multi_class, options=("ovr", "crammer_singer"))
        check_stored(self)
        self._check_shared()
        if self._is_joint:
            refuse_parameters(self)

    def _loss(self):
        """`Loss`: a parameter of a loss joins its name here."""
        return Loss(self.loss, (float(self.delta),) if self.loss == "huberised_hinge" else ())

    _takes_places = True
    _leaves_out_weightless = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = not self._is_joint
        return tags

    @property
    def _is_joint(self):
        return self.multi_class == "crammer_singer"

    def _refuse_over_places(self, how):
        refuse_stored(self, f"Training {how}")
        if self._is_joint:
            raise ValueError(f"multi_class='crammer_singer' needs all rows in one place; {how} use 'ovr'.")
        refuse_solver_over_places(self, how)

    def _labels_and_weights(self, source, sample_weight):
        """`Labels`, weights of mean 1, and the sum of those given."""
        classes, codes, positives = code_labels(source.y)
        weight, total_weight = self._weights(sample_weight, source, classes, codes)
        weights = None if weight is None else of_mean_1(weight)
        if positives is not None:
            self._warn_of_constant(signs_met(positives, weights))
        if codes is not None:                    # a byte a row where that will do: rows may be many
            codes = codes.astype(np.min_scalar_type(len(classes)))
        return Labels(classes, codes, positives), weights, total_weight

    def _trained(self, source, sample_weight, begin, checkpointer):
        if self._is_joint:                       # before weights of labels could make binary problems of them
            refuse_rows(source)
        return super()._trained(source, sample_weight, begin, checkpointer)

    def _train(self, source, sample_weight, begin, checkpointer):
        if source.agreed is not None:
            labels, weights, total_weight = source.agreed, None, source.agreed.total_weight
            if labels.multilabel:
                self._warn_of_constant(labels.signs)
        else:
            labels, weights, total_weight = self._labels_and_weights(source, sample_weight)
        if self._goes_on:
            self._check_last_fit(source, labels.classes, labels.multilabel)
        if self._is_joint:
            return joint_fit(self, source, labels, weights, total_weight, begin)
        return SmSVMFit(self, source, labels, weights, total_weight, begin, checkpointer).trained()

    def path(self, X: Any, y: Any, sample_weight: Any = None, *, l2s: Sequence[float] | None = None,
             Cs: Sequence[float] | None = None, n_l2s: int = 100, l2_min: float | None = None,
             l1_ratio: float | None = None, between: bool = False, l1s: Sequence[float] | None = None,
             comm: Any = None) -> SmSVMPath:
        """`SmSVMPath`: weights at every penalty, by this estimator's parameters; arguments as `smsvm_path` has."""
        return fit_path(self, X, y, sample_weight, l2s=l2s, Cs=Cs, n_l2s=n_l2s, l2_min=l2_min, l1_ratio=l1_ratio,
                        between=between, l1s=l1s, comm=comm)

    def leave_one_out(self, X: Any, y: Any, sample_weight: Any = None) -> LeaveOneOut:
        """What is predicted of every row by the model of all other rows: leave-one-out cross-validation, exactly.

        The problem without row i is the one that was fitted less the row's term, with the same ``l2`` and N: what the
        same ``C`` says of the other rows. Class weights stay those of all rows. Each is proven, by bounds or solving.

        X, y and sample_weight are what the estimator was fitted to. Returns a `LeaveOneOut`: ``predictions``,
        ``right``, ``score`` and certified intervals of the left-out scores. ValueError with l1, without l2, of more
        than 5,000 rows and as many columns, of rows that are not in memory, and with the two Huber losses.
        """
        return leave_one_out(self, X, y, sample_weight)

    # ---------------------------------------------------------------- prediction

    @available_if(of_logistic_loss)
    @lazy_on_workers
    def predict_proba(self, X):
        """Class probabilities, with ``loss="logistic"``: 1 / (1 + e^-score), normalised over more than two classes.

        (n_samples, n_classes) array; for an indicator, each label's probability, not normalised.
        """
        X = self._check_rows(X)
        return self._shares(X)

    @available_if(of_logistic_loss)
    @lazy_on_workers
    def predict_log_proba(self, X):
        """Logarithm of `predict_proba`, from the scores: finite also where a probability is too small for its dtype."""
        X = self._check_rows(X)
        return self._log_shares(X)
