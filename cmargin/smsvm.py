"""SmSVM: linear classification by a hinge or logistic loss with l2 and l1 penalties, with a certificate."""

import warnings
from time import perf_counter

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from cmargin._blas_threads import single_threaded_blas
from cmargin._estimators.one_vs_rest import INT_MAX, NOT_NEGATIVE, POSITIVE
from cmargin._estimators.progress import check_verbose
from cmargin._estimators.refusal import keeps_last_fit
from cmargin._estimators.scores import linear_scores
from cmargin._estimators.smsvm_fit import Labels, SmSVMFit
from cmargin._estimators.validation import (
    InvalidParameterError,
    check_class_weight,
    check_class_weights,
    check_flag,
    check_parameter,
    check_rows,
    check_targets,
    in_range,
    positives_of,
)

LARGEST = float(np.finfo(float).max)
SOLVERS = ("auto", "cholesky", "woodbury", "cg", "dual")


class SmSVMClassifier(ClassifierMixin, BaseEstimator):
    """Linear support vector machine trained by Newton's method on a smoothed hinge.

    Minimises, for every class against the rest,

        l2/2 |w|^2 + (1/N) sum_i s_i F(y_i (<w, x_i> + b)) + l1 |w|_1,     sum_i s_i = N

    and stops when a dual value proves that the objective is within ``tol`` of its minimum, relatively.

    Parameters
    ----------
    l2 : float or None, default None
        Weight of the quadratic penalty, at least 0. None: 1e-4, or what ``C`` says.
    C : float or None, default None
        Instead of ``l2``, as `sklearn.svm.LinearSVC` and `sklearn.linear_model.LogisticRegression` have it:
        ``l2 = 1 / (C * sum of the weights)``, the weights as given, 1 each where there are none. The objective is
        then theirs over ``C`` times that sum.
    l1 : float, default 0
        Weight of the l1 penalty, at least 0.
    loss : {"hinge", "squared_hinge", "logistic"}, default "hinge"
        F(z) = max(0, 1 - z), max(0, 1 - z)^2 or ln(1 + e^-z). The last two need no smoothing.
    tol : float, default 1e-4
        Relative duality gap (objective - bound) / objective at which a class is done.
    max_passes : float, default 1000
        Reads of the data after which a class is left as it is, with a warning that names its gap. Products of
        ``linear_solver="cg"`` are not limited, and the first look is always taken.
    smoothing : float, default 1.0
        First width of the smoothed hinge; not used by the other losses.
    smoothing_decay : float, default 0.5
        Factor of the width after a step; with the exact line search, where it starts before it adapts.
    newton_tol : float, default 0.1
        ``line_search="quadratic"`` only: the width is reduced when the predicted decrease is below ``newton_tol``
        times it.
    line_search : {"exact", "quadratic"}, default "exact"
        "quadratic" with ``smoothing_decay=0.1`` is the published algorithm, step for step.
    linear_solver : {"auto", "cholesky", "woodbury", "cg", "dual"}, default "auto"
        How the Newton system is solved. "woodbury" works in as many unknowns as there are rows; it and "cg", which
        forms no matrix, need l1=0. "dual" does without smoothing and solves in the rows at the hinge alone: for CSR
        data with l1=0, l2>0; "auto" takes it for those with more than 4,000 columns, or 600 and no more rows, and
        begins with it where the curvature of all columns is dear beside the rows.
    subset_growth : {"auto", None}, default "auto"
        Solve on a tenth of the rows first where there are many.
    penalize_intercept : bool, default False
        Penalise the intercept like a coefficient, as the published algorithm and LIBLINEAR do.
    fit_intercept : bool, default True
    class_weight : dict, "balanced" or None
    warm_start : bool, default False
        Start from the coefficients of the last fit.
    max_time : float or None
        Seconds after which the best point so far is kept.
    random_state : int, RandomState or None
        Chooses the rows of a first subset; orders the sweeps of the dual, the same every time where it is None.
    n_jobs : int or None
        Threads; the result is the same to the bit for any number.
    verbose : int, default 0
    callback : callable or None
        Called with the estimator after every Newton step ("dual": look at all rows), its fitted attributes set to the
        best point so far; a true answer stops the fit.

    Attributes
    ----------
    coef_ : (1, m) or (n_classes, m) array
    intercept_ : (1,) or (n_classes,) array
    classes_ : array
    duality_gap_ : (1,) or (n_classes,) array
        Certified relative gap of each class; NaN without penalties, where none can be had.
    objective_ : array
        The objective, not smoothed, of each class.
    n_iter_ : int
        Newton steps of the class that took most.
    n_passes_ : float
        Reads of the data, in reads of all of it, summed over the classes.
    history_ : dict of arrays
        One entry per look at the data; ``class`` says whose.
    """

    def __init__(self, l2=None, C=None, l1=0.0, loss="hinge", tol=1e-4, max_passes=1000, smoothing=1.0,
                 smoothing_decay=0.5, newton_tol=0.1, line_search="exact", linear_solver="auto", subset_growth="auto",
                 penalize_intercept=False, fit_intercept=True, class_weight=None, warm_start=False, max_time=None,
                 random_state=None, n_jobs=None, verbose=0, callback=None):
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

    # ------------------------------------------------------------ fitting

    @keeps_last_fit
    def fit(self, X, y, sample_weight=None):
        """Fit to X (n, m), dense or CSR, and y: class labels (n,) or an indicator matrix (n, n_labels).

        On KeyboardInterrupt the best point so far is set before the interrupt goes on; a fit that is refused or fails
        leaves the last one as it was.
        """
        started = perf_counter()
        self._check_parameters()
        X, y = check_rows(self, X, y)
        labels, weights, total_weight = self._code(y, sample_weight)
        if self.warm_start and hasattr(self, "coef_"):
            self._check_warm_start(X, labels)
        fit = SmSVMFit(self, X, labels, weights, total_weight, started)
        try:
            with single_threaded_blas():
                fit.run()
        except KeyboardInterrupt:
            fit.publish()
            raise
        except FloatingPointError:
            raise ValueError("X holds values so large that sums of their squares overflow; scale the features.") \
                from None
        fit.publish()
        fit.warn()
        return self

    def _check_parameters(self):
        check_parameter(self, "l2", self.l2, real=NOT_NEGATIVE, none=True)
        check_parameter(self, "C", self.C, real=POSITIVE, none=True)
        if self.l2 is not None and self.C is not None:
            raise InvalidParameterError(f"Give l2 or C, not both; got l2={self.l2!r} and C={self.C!r}.")
        check_parameter(self, "l1", self.l1, real=NOT_NEGATIVE)
        check_parameter(self, "loss", self.loss, options=("hinge", "squared_hinge", "logistic"))
        for name in ("tol", "max_passes", "smoothing", "newton_tol"):
            check_parameter(self, name, getattr(self, name), real=POSITIVE)
        below_1 = (0.0, np.nextafter(1.0, 0.0), "(0.0, 1.0)")
        check_parameter(self, "smoothing_decay", self.smoothing_decay, real=below_1)
        check_parameter(self, "line_search", self.line_search, options=("exact", "quadratic"))
        check_parameter(self, "linear_solver", self.linear_solver, options=SOLVERS)
        check_parameter(self, "subset_growth", self.subset_growth, options=("auto",), none=True)
        check_class_weight(self, self.class_weight)
        check_parameter(self, "max_time", self.max_time, real=POSITIVE, none=True)
        check_parameter(self, "n_jobs", self.n_jobs, integer=(-INT_MAX, INT_MAX, "(-inf, inf)"), none=True)
        check_verbose(self)
        check_parameter(self, "callback", self.callback, none=True, call=True)
        for name in ("penalize_intercept", "fit_intercept", "warm_start"):
            check_flag(self, name, getattr(self, name))

    def _code(self, y, sample_weight):
        """`Labels`, weights that sum to the number of rows, and their sum before."""
        check_targets(y)
        weights = _check_weights(sample_weight, y.shape[0])
        if y.ndim == 2 and y.shape[1] > 1 and type_of_target(y) == "multilabel-indicator":
            if self.class_weight is not None:
                raise ValueError("class_weight is not defined for a multilabel target; use sample_weight.")
            labels = Labels(np.arange(y.shape[1]), indicator=2.0 * positives_of(y).toarray().T - 1.0)
            return labels, *_of_mean_1(weights)
        if y.ndim == 2:
            if y.shape[1] > 1:
                raise ValueError("Multioutput targets other than a multilabel indicator matrix are not supported.")
            warnings.warn("A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
                          "(n_samples,), for example using ravel().", DataConversionWarning, stacklevel=3)
            y = y.ravel()
        classes, label = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError("This solver needs samples of at least 2 classes in the data, but the data contains only "
                             f"one class: {classes[0]!r}")
        if self.class_weight is not None:
            by_class = compute_class_weight(self.class_weight, classes=classes, y=y)
            check_class_weights(by_class)
            return Labels(classes, label), *_of_mean_1(weights, by_class[label])
        return Labels(classes, label), *_of_mean_1(weights)

    def _check_warm_start(self, X, labels):
        if X.shape[1] != self.coef_.shape[1]:
            raise ValueError(f"X has {X.shape[1]} features, but the fit to go on from has {self.coef_.shape[1]}")
        if labels.multilabel != self._multilabel or not np.array_equal(labels.classes, self.classes_):
            raise ValueError(f"warm_start needs the classes of the last fit, {self.classes_}"
                             f"{' as an indicator' if self._multilabel else ''}; got {labels.classes}"
                             f"{' as an indicator' if labels.multilabel else ''}")

    # ------------------------------------------------------------ prediction

    def decision_function(self, X):
        """Scores <w, x> + b: (n,) for two classes, else (n, n_classes); all classes by one product."""
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        scores = linear_scores(X, self.coef_, self.intercept_)
        return scores if scores.shape[1] > 1 or self._multilabel else scores.ravel()

    def predict(self, X):
        """Labels (n,), or an indicator matrix (n, n_labels)."""
        scores = self.decision_function(X)
        if self._multilabel:
            return (scores > 0).astype(int)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


def _check_weights(sample_weight, n):
    """The weights (n,) that were given, 1 each where there are none."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight)
    if weights.dtype.kind == "c":
        raise ValueError("Complex data not supported: sample_weight must hold real numbers.")
    weights = np.full(n, weights, float) if weights.ndim == 0 else weights.astype(float)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected ({n},)!")
    if not np.isfinite(weights).all():
        raise ValueError("Input sample_weight contains NaN or infinity.")
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weights


def _of_mean_1(*factors):
    """Products of the factors (n,), times what makes their mean 1; their sum as given, at most the largest double.

    No factor, product or sum leaves the range of doubles on the way.
    """
    weights, power = 1.0, 0
    for factor in factors:
        weights = weights * in_range(factor)
        power += int(np.frexp(factor.max())[1])
    if not weights.any():
        raise ValueError("sample_weight and class_weight leave every sample with weight 0.")
    total = float(weights.sum())
    with np.errstate(over="ignore"):
        given = float(np.ldexp(total, power))
    return weights * (len(weights) / total), min(given, LARGEST)
