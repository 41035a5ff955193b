"""SmSVM: linear classification by the hinge loss with l2 and l1 penalties, with a certificate of optimality."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor, wait
from time import perf_counter

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from cmargin._blas_threads import single_threaded_blas
from cmargin._core._openmp import effective_n_threads
from cmargin._core._rows import Rows
from cmargin._one_vs_rest import INT_MAX, NOT_NEGATIVE, POSITIVE
from cmargin._validation import (
    check_class_weight,
    check_class_weights,
    check_flag,
    check_parameter,
    check_targets,
    positives_of,
)
from cmargin.passes.dual_rows import DualRowPass, SparseRows, worth_sweeping
from cmargin.passes.row_pass import SMALL, MemoryRowPass
from cmargin.passes.wide import WideRows, worth_reducing
from cmargin.solvers.continuation_newton import HISTORY, ContinuationNewton, Problem, Result, Settings
from cmargin.solvers.dual_newton import DualNewton
from cmargin.solvers.growing import SMALLEST, solve
from cmargin.solvers.paper_newton import PaperNewton

WARM_WIDTH = 0.1               # smoothing that a warm start begins with, at most
SOLVERS = ("auto", "cholesky", "woodbury", "cg", "dual")
MATRIX = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "accept_large_sparse": True}


class SmSVMClassifier(ClassifierMixin, BaseEstimator):
    """Linear support vector machine trained by Newton's method on a smoothed hinge.

    Minimises, for every class against the rest,

        l2/2 |w|^2 + (1/N) sum_i s_i max(0, 1 - y_i (<w, x_i> + b)) + l1 |w|_1,     sum_i s_i = N

    and stops when a dual value proves that the objective is within ``tol`` of its minimum, relatively.
    The C of `sklearn.svm.LinearSVC` is ``1 / (l2 * N)``.

    Parameters
    ----------
    l2, l1 : float, default 1e-4 and 0
        Weights of the penalties, at least 0.
    tol : float, default 1e-4
        Relative duality gap (objective - bound) / objective at which a class is done.
    max_passes : float, default 1000
        Reads of the data after which a class is left as it is, with a warning that names its gap. Products of
        ``linear_solver="cg"`` are not limited, and the first look is always taken.
    smoothing : float, default 1.0
        First width of the smoothed hinge.
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

    def __init__(self, l2=1e-4, l1=0.0, tol=1e-4, max_passes=1000, smoothing=1.0, smoothing_decay=0.5, newton_tol=0.1,
                 line_search="exact", linear_solver="auto", subset_growth="auto", penalize_intercept=False,
                 fit_intercept=True, class_weight=None, warm_start=False, max_time=None, random_state=None,
                 n_jobs=None, verbose=0, callback=None):
        self.l2 = l2
        self.l1 = l1
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

    def fit(self, X, y, sample_weight=None):
        """Fit to X (n, m), dense or CSR, and y: class labels (n,) or an indicator matrix (n, n_labels).

        On KeyboardInterrupt the best point so far is set before the interrupt goes on.
        """
        started = perf_counter()
        self._check_parameters()
        X, y = validate_data(self, X, y, multi_output=True, **MATRIX)
        before = getattr(self, "classes_", None)
        codes, weights = self._code(y, sample_weight)
        if self.warm_start and before is not None and not np.array_equal(before, self.classes_):
            after, self.classes_ = self.classes_, before
            raise ValueError(f"warm_start needs the classes of the last fit, {before}; got {after}")
        fit = _Fit(self, X, codes, weights, started)
        try:
            with single_threaded_blas():
                fit.run()
        finally:
            fit.publish()
        fit.warn()
        return self

    def _check_parameters(self):
        for name in ("l2", "l1"):
            check_parameter(self, name, getattr(self, name), real=NOT_NEGATIVE)
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
        check_parameter(self, "verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose,
                        integer=(0, INT_MAX, "[0, inf)"))
        check_parameter(self, "callback", self.callback, none=True, call=True)
        for name in ("penalize_intercept", "fit_intercept", "warm_start"):
            check_flag(self, name, getattr(self, name))

    def _code(self, y, sample_weight):
        """Columns of +1 and -1, one per binary problem, and weights that sum to the number of rows."""
        check_targets(y)
        n = y.shape[0]
        weights = _check_weights(sample_weight, n)
        self._multilabel = y.ndim == 2 and y.shape[1] > 1 and type_of_target(y) == "multilabel-indicator"
        if y.ndim == 2 and not self._multilabel:
            if y.shape[1] > 1:
                raise ValueError("Multioutput targets other than a multilabel indicator matrix are not supported.")
            warnings.warn("A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
                          "(n_samples,), for example using ravel().", _data_conversion_warning(), stacklevel=3)
            y = y.ravel()
        if self._multilabel:
            if self.class_weight is not None:
                raise ValueError("class_weight is not defined for a multilabel target; use sample_weight.")
            self.classes_ = np.arange(y.shape[1])
            return np.ascontiguousarray(2.0 * positives_of(y).toarray().T - 1.0), weights
        self.classes_, label = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("This solver needs samples of at least 2 classes in the data, but the data contains only "
                             f"one class: {self.classes_[0]!r}")
        if self.class_weight is not None:
            by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
            check_class_weights(by_class)
            weights = weights * by_class[label]
            if not weights.any():
                raise ValueError("sample_weight and class_weight leave every sample with weight 0.")
            weights *= n / weights.sum()
        if len(self.classes_) == 2:
            return np.where(label == 1, 1.0, -1.0)[None], weights
        return _OneVersusRest(label, len(self.classes_)), weights

    # ------------------------------------------------------------ prediction

    def decision_function(self, X):
        """Scores <w, x> + b: (n,) for two classes, else (n, n_classes); all classes by one product."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **MATRIX)
        scores = np.asarray(X @ self.coef_.T.astype(X.dtype, copy=False)) + self.intercept_
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


class _OneVersusRest:
    """Row c is +1 for class c and -1 elsewhere, made when asked for: never n_classes vectors at once."""

    def __init__(self, label, n_classes):
        self.label, self.n_classes = label, n_classes

    def __len__(self):
        return self.n_classes

    def __getitem__(self, c):
        return np.where(self.label == c, 1.0, -1.0)


class _Fit:
    """One call of fit: its data, its classes' results, and what becomes of them."""

    def __init__(self, estimator, X, codes, weights, started):
        self.estimator, self.codes, self.weights = estimator, codes, weights
        self.n, self.m = X.shape
        threads = effective_n_threads(estimator.n_jobs)
        self.n_threads = threads if self.n * self.m >= SMALL or len(codes) >= threads > 1 else 1
        self.intercept = bool(estimator.fit_intercept)
        self.free = self.m if self.intercept and not estimator.penalize_intercept else None    # column, not penalised
        self.deadline = np.inf if estimator.max_time is None else started + estimator.max_time
        self.interrupted = threading.Event()
        p = self.m + self.intercept
        self.warm = self._warm_start(p)
        self.results = [Result(np.zeros(p)) for _ in range(len(codes))]
        self.reduced = self.dual = None
        if hasattr(X, "indptr") and not X.has_canonical_format:
            X = X.copy()                         # repeated indices would be squared one by one
            X.sum_duplicates()
        self.X, self.rows = X, Rows(X)
        e = estimator                            # refused before anything of the last fit is touched
        if e.linear_solver == "cg" and e.l1 > 0:
            raise ValueError("linear_solver='cg' needs l1=0: an l1 model is solved on its active block, by 'cholesky'.")
        self.by_dual = worth_sweeping(X, e.l2, e.l1, e.linear_solver, e.line_search)
        self.by_rows = not self.by_dual and worth_reducing(X, e.l1, e.linear_solver, e.line_search)

    def _draw_seeds(self):
        """One seed a class, drawn only where rows will be, or their order; that is always the same for None."""
        random_state = self.estimator.random_state
        if random_state is None and self.dual is not None:
            return np.zeros(len(self.codes), np.intp)
        if self.dual is None and self.n < SMALLEST and (random_state is None or isinstance(random_state, int)):
            return np.zeros(len(self.codes), np.intp)
        return check_random_state(random_state).randint(2**31 - 1, size=len(self.codes))

    def _warm_start(self, p):
        e = self.estimator
        if not e.warm_start or not hasattr(e, "coef_") or e.coef_.shape != (len(self.codes), self.m):
            return None
        return np.hstack([e.coef_, e.intercept_[:, None]])[:, :p]

    def run(self):
        e = self.estimator
        if self.by_dual:
            self.dual = SparseRows(self.X, self.intercept, self.free is not None)
        elif self.by_rows:
            self.reduced = WideRows(self.X)
        elif self.warm is not None:              # what an interrupt leaves of a class not begun
            for result, w in zip(self.results, self.warm, strict=True):
                result.w = w.copy()
        self.seeds = self._draw_seeds()
        n_classes = len(self.codes)
        if n_classes < 2 or n_classes < self.n_threads or self.n_threads == 1 or e.callback is not None:
            for c in range(n_classes):
                self.solve(c, self.n_threads)
                if self.interrupted.is_set():
                    break
            return
        with ThreadPoolExecutor(self.n_threads) as pool:       # the kernels hold no GIL
            futures = [pool.submit(self.solve, c, 1) for c in range(n_classes)]
            try:
                while wait(futures, timeout=0.2).not_done:
                    pass
            except BaseException:
                self.interrupted.set()                          # every class stops after its present step
                pool.shutdown(wait=True, cancel_futures=True)
                raise
            for future in futures:
                future.result()

    def solve(self, c, n_threads):
        e = self.estimator
        code = self.codes[c] * self.weights
        settings = Settings(e.tol, e.max_passes, e.smoothing, e.smoothing_decay, e.linear_solver, self.deadline,
                            self._asked_to_stop)
        if self.dual is not None:
            self.sweep(c, code, settings, n_threads)
            return
        if self.reduced is None:
            rows = MemoryRowPass(self.rows, code, intercept=self.intercept, n_threads=n_threads)
        else:
            rows = self.reduced.rows(code, self.intercept, n_threads)
        problem = Problem(float(e.l2), float(e.l1), None if self.free is None else rows.n_columns - 1)
        w, width = None, None
        if self.warm is not None:
            w = self.warm[c] if self.reduced is None else self.reduced.into(self.warm[c], self.intercept)
            width = min(e.smoothing, WARM_WIDTH)
        result = self.results[c]
        result.w = np.zeros(rows.n_columns) if w is None else np.array(w, float)
        if e.line_search == "quadratic":
            PaperNewton(rows, problem, settings, e.newton_tol, result, w).run()
            return
        solve(rows, problem, settings, e.subset_growth == "auto", self.seeds[c], w, width, result)

    def sweep(self, c, code, settings, n_threads):
        """Problem c by its dual, and on all columns from there where that proves too slow."""
        result, e = self.results[c], self.estimator
        if self.warm is not None:
            result.w = self.warm[c].astype(float)
        problem = Problem(float(e.l2), 0.0, self.free)
        enough = np.inf
        if e.linear_solver == "auto" and np.isfinite(self.dual.enough_reads):
            enough = min(self.dual.enough_reads, e.max_passes / 2)
        first = DualNewton(DualRowPass(self.dual, code), problem, settings, result, self.seeds[c],
                           None if self.warm is None else self.warm[c], enough)
        first.run()
        if result.status == "left":
            result.status = "running"
            rows = MemoryRowPass(self.rows, code, intercept=self.intercept, n_threads=n_threads)
            ContinuationNewton(rows, problem, settings, result, min(e.smoothing, WARM_WIDTH), result.w, first).run()

    def _asked_to_stop(self):
        if self.interrupted.is_set():
            return True
        if self.estimator.callback is None:
            return False
        self.publish()
        if self.estimator.callback(self.estimator):
            self.interrupted.set()
        return self.interrupted.is_set()

    def publish(self):
        """Set the fitted attributes to the best points so far."""
        e, results = self.estimator, self.results
        W = [r.w if self.reduced is None else self.reduced.out_of(r.w, self.intercept) for r in results]
        W = np.stack([w if len(w) == self.m + self.intercept else np.zeros(self.m + self.intercept) for w in W])
        e.coef_ = np.ascontiguousarray(W[:, :self.m])
        e.intercept_ = W[:, self.m].copy() if self.intercept else np.zeros(len(W))
        e.duality_gap_ = np.array([r.gap for r in results])
        e.objective_ = np.array([r.objective for r in results])
        e.n_iter_ = max(r.n_iter for r in results)
        e.n_passes_ = float(sum(r.passes for r in results))
        rows = [row for r in results for row in r.history]
        columns = np.array(rows, float).reshape(-1, len(HISTORY)).T
        e.history_ = dict(zip(HISTORY, columns, strict=True))
        e.history_["class"] = np.repeat(np.arange(len(results)), [len(r.history) for r in results])

    def warn(self):
        """One warning for all classes that stopped short of the tolerance, naming the worst gap."""
        short = [c for c, r in enumerate(self.results) if r.status not in ("converged", "decrement")]
        if self.interrupted.is_set() or not short:
            return
        worst = max(short, key=lambda c: self.results[c].gap)
        result, e = self.results[worst], self.estimator
        reason = {"max_passes": f"max_passes={e.max_passes:g}", "max_time": f"max_time={e.max_time} s"}
        why = reason.get(result.status, "rounding: the width is at its smallest")
        gap = "no gap known (l1 = l2 = 0)" if np.isnan(result.gap) else f"a relative duality gap of {result.gap:.1e}"
        warnings.warn(f"SmSVMClassifier stopped at {why} with {gap} where tol={e.tol:g} was asked"
                      f" ({len(short)} of {len(self.results)} binary problems). Try a larger max_passes or tol, scaled"
                      " features, or a larger l2.", ConvergenceWarning, stacklevel=3)


def _check_weights(sample_weight, n):
    if sample_weight is None:
        return np.ones(n)
    weights = np.ones(n) * sample_weight if np.isscalar(sample_weight) else np.asarray(sample_weight, dtype=float)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected ({n},)!")
    if not np.isfinite(weights).all():
        raise ValueError("Input sample_weight contains NaN or infinity.")
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    weights = weights / weights.max()                   # before the sum, which could overflow
    return weights * (n / weights.sum())


def _data_conversion_warning():
    from sklearn.exceptions import DataConversionWarning
    return DataConversionWarning
