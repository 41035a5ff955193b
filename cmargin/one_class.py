"""SmSVMOneClass: the linear one-class support vector machine, with a certificate."""

import time
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin

from cmargin._estimators.base import keeps_last_fit
from cmargin._estimators.docs import RandomState
from cmargin._estimators.identity import VersionInPickle
from cmargin._estimators.one_class_fit import OneClassFit, open_unlabelled
from cmargin._estimators.predict import LinearScores, lazy_on_workers
from cmargin._estimators.progress import warn_at_caller, warn_of
from cmargin._estimators.scores import SCORES, as_given
from cmargin._estimators.validation import (
    INT_MAX,
    POSITIVE,
    check_parameter,
    check_seed,
    check_verbose,
)
from cmargin.data.device.arrays import to_host


class SmSVMOneClass(LinearScores, OutlierMixin, VersionInPickle, BaseEstimator):
    """Linear one-class support vector machine for outlier and novelty detection, with a certificate.

    Minimises::

        1/2 |w|^2 - rho + 1/(nu N) sum_i s_i max(0, rho - <w, x_i>),     sum_i s_i = N

    by the Newton method of `SmSVMClassifier`, with many columns by sweeps of its dual first, and stops when a dual
    value proves that the objective is within ``tol`` of its minimum. The plane <w, x> = rho holds all but a share of
    about ``nu`` of the rows away from the origin; rows on the origin's side of it are outliers.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: at most this share of the rows, by weight, is cut off, and at least this share is cut off or lies on
        the plane.
    tol : float, default=1e-4
        Relative duality gap at which the fit is done: (objective - bound) / -bound, as the minimum is never positive.
        Where the bound is smaller than 1e-6 times half the mean of ``|x|^2``, relative to that number.
    max_passes : float, default=1000
        Reads of the data, after which a warning names the gap that is left.
    warm_start : bool, default=False
        Start from ``coef_`` and ``intercept_``, of the last fit or set by hand.
    max_time : float or None, default=None
        Seconds after which the best point so far is kept.
    random_state : int, RandomState or None, default=None
        Chooses subsets of rows and the order of sweeps; None: the same every time.
    n_jobs : int or None, default=None
        Threads. None: the processors that the process may use; -1: all. The result is the same to the bit.
    verbose : int, default=0
        1: print a line for every evaluation of the objective. 2: the plan of the fit first, with reasons.

    Attributes
    ----------
    coef_ : (1, n_features) array
        w. That of ``OneClassSVM(kernel="linear")`` is ``nu N`` times it; that of ``SGDOneClassSVM`` is the same.
    offset_ : (1,) array
        rho: ``decision_function = score_samples - offset_``.
    intercept_ : (1,) array
        -rho.
    duality_gap_ : (1,) array
        Certified relative gap, as ``tol`` has it.
    objective_ : (1,) array
        The objective, not smoothed.
    n_iter_ : int
        Newton steps, and sweeps of the dual.
    n_passes_ : float
        Reads of the data, in reads of all of it.
    history_ : dict of arrays, one entry an evaluation
        As in `SmSVMClassifier`, without ``class``. On a subset of the rows objective and gap are NaN.
    n_features_in_ : int
        Columns of X in the last fit.
    feature_names_in_ : (n_features,) array
        Where X had names of columns.

    Notes
    -----
    The origin stands for the outliers, so do not take the mean off the rows. Where they surround the origin the
    optimum is w = 0, which tells nothing apart: a warning says so. For clouds of any shape map the rows first, as by
    ``sklearn.kernel_approximation.Nystroem``.

    With ``nu=1`` w is the mean of the rows, and rho any number from the largest score on; the largest score is taken.

    References
    ----------
    B. Schoelkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola, R. C. Williamson, "Estimating the support of a
    high-dimensional distribution", 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from cmargin import SmSVMOneClass
    >>> X = 4 + np.random.default_rng(0).normal(size=(1000, 3))
    >>> model = SmSVMOneClass(nu=0.05).fit(X)
    >>> bool(abs(np.mean(model.predict(X) == -1) - 0.05) < 0.01)
    True
    >>> bool(model.duality_gap_[0] <= 1e-4)                                              # proven, not hoped for
    True
    """

    _all_classes = np.array([-1, 1])             # as ranks have it: every row is of the second
    class_weight = checkpoint = None
    _leaves_out_weightless = True

    offset_: np.ndarray
    duality_gap_: np.ndarray
    objective_: np.ndarray
    n_features_in_: int
    n_iter_: int
    n_passes_: float
    history_: dict[str, np.ndarray]

    def __init__(self, nu: float = 0.5, tol: float = 1e-4, max_passes: float = 1000, warm_start: bool = False,
                 max_time: float | None = None, random_state: RandomState = None, n_jobs: int | None = None,
                 verbose: int = 0) -> None:
        self.nu = nu
        self.tol = tol
        self.max_passes = max_passes
        self.warm_start = warm_start
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self):
        check_parameter(self, "nu", self.nu, real=(0.0, 1.0, "(0.0, 1.0]"))
        for name in ("tol", "max_passes"):
            check_parameter(self, name, getattr(self, name), real=POSITIVE)
        check_parameter(self, "warm_start", self.warm_start, flag=True)
        check_parameter(self, "max_time", self.max_time, real=POSITIVE, none=True)
        check_parameter(self, "n_jobs", self.n_jobs, integer=(-INT_MAX, INT_MAX, "(-inf, inf)"), none=True)
        check_seed(self)
        check_verbose(self)

    @keeps_last_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, comm: Any = None) -> Self:
        """Find the plane that holds the rows away from the origin.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            float32 and float64, C or F order, memory-mapped, CSR: without a copy. Or paths of files
            (`cmargin.data.files.open_files`), which are read chunk by chunk where they are large, or a tensor.
        y : Ignored
            Present for API consistency by convention.
        sample_weight : (n_samples,) array or None
            What a row weighs, at least 0.
        comm : communicator with mpi4py's buffer methods, or None
            Every rank calls `fit` with its own rows, which stay where they are, and ends with the same weights.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For parameters, shapes, NaN, infinities, negative weights, Dask collections.

        Warns
        -----
        ConvergenceWarning
            Where the fit stopped short of ``tol``.
        UserWarning
            Where the rows surround the origin.
        """
        begin = time.perf_counter()
        with open_unlabelled(self, X, sample_weight, comm) as (source, weights):
            if source is None:                   # rank 0 has fitted, and warns
                return self
            fit = OneClassFit(self, source, weights, begin)
            interruption = fit.run()
            fit.publish()
            if interruption is not None:
                raise interruption.taken()
        warn_of(fit.shortfall())
        if fit.surrounds:
            warn_at_caller(f"The rows surround the origin at nu={self.nu:g}: the optimum is w = 0, which tells no row "
                           "from another. Do not centre the rows, or map them first, for instance by "
                           "sklearn.kernel_approximation.Nystroem.")
        return self

    @lazy_on_workers
    def score_samples(self, X: Any) -> np.ndarray:
        """<w, x> of every row, (n_samples,): larger for rows further from the origin, of the dtype of X."""
        X = self._check_rows(X)
        return as_given(X, self._predicted(X, SCORES, np.zeros(1)))[:, 0]

    @lazy_on_workers
    def decision_function(self, X: Any) -> np.ndarray:
        """<w, x> - rho of every row, (n_samples,): negative for outliers; of the dtype of X."""
        X = self._check_rows(X)
        return as_given(X, self._scores(X))[:, 0]

    @lazy_on_workers
    def predict(self, X: Any) -> np.ndarray:
        """1 for rows within and on the plane, -1 for outliers; (n_samples,) array of integers."""
        return np.where(to_host(self._scores(self._check_rows(X)))[:, 0] >= 0, 1, -1)
