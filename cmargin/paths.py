"""`smsvm_path`: SmSVM at many penalties for the price of a few fits, every one certified."""

from collections.abc import Sequence
from typing import Any

from cmargin._estimators.docs import ClassWeight, RandomState
from cmargin._estimators.path import SmSVMPath, fit_path
from cmargin.smsvm import SmSVMClassifier


def smsvm_path(X: Any, y: Any, *, l2s: Sequence[float] | None = None, Cs: Sequence[float] | None = None,
               n_l2s: int = 100, l2_min: float | None = None, l1: float = 0.0, l1_ratio: float | None = None,
               loss: str = "hinge", tol: float = 1e-4, between: bool = False, penalize_intercept: bool = False,
               fit_intercept: bool = True, sample_weight: Any = None, class_weight: ClassWeight = None,
               max_passes: float = 1000, linear_solver: str = "auto", max_time: float | None = None,
               random_state: RandomState = None, n_jobs: int | None = None, verbose: int = 0,
               l1s: Sequence[float] | None = None, comm: Any = None) -> SmSVMPath:
    """Weights of `SmSVMClassifier` at every penalty of a path, each certified, in the manner of `enet_path`.

    A fit proves more than its own penalty: where two fits prove the weights between them, no fit is made. With l1, a
    smooth loss and many columns in memory (CSR rows, or more columns than rows) a fit reads the columns in use and
    those that are not known to stay out, and one is made at every penalty. Margin pursuit has no certificate and no
    path.

    Parameters
    ----------
    X : (n_samples, n_features) array or sparse matrix
        As in `SmSVMClassifier.fit`, rows in files, on devices and on workers among it.
    y : (n_samples,) labels, or (n_samples, n_labels) indicator
    l2s : sequence of float or None
        Weights of the quadratic penalty, positive, or 0 too with ``l1 > 0``. The path has them in falling order, each
        once. None: ``n_l2s`` penalties, evenly in their logarithms, from the one down to which w keeps the direction
        that it has beside any heavier penalty (the difference of the means, of classes that weigh alike) to ``l2_min``;
        every penalty between them is proven too.
    Cs : sequence of float or None
        Instead of ``l2s``: ``l2 = 1 / (C * sum of the weights of the rows)``, or ``l1 + l2`` beside an ``l1_ratio``.
    n_l2s : int
        Penalties where none are given.
    l2_min : float or None
        The least of them. None: where a tenth of the penalty lowers the mean loss by no more than ``tol``. Give it
        where columns are of very different sizes: each comes in at a penalty of its own.
    l1 : float
        Weight of the l1 penalty, the same for all.
    l1_ratio : float or None
        Instead of ``l1``, as in `SmSVMClassifier`: l1 is ``l1_ratio / (1 - l1_ratio)`` times l2; ``Cs`` then say
        l1 + l2.
    loss : str
        One of those of `SmSVMClassifier`, whose own `path` takes a ``delta`` other than 1 too.
    tol : float
        Relative duality gap that is proven at every penalty.
    between : bool
        Prove ``tol`` at every penalty between two of ``l2s`` too, which may take more fits. Always so without ``l2s``.
    penalize_intercept, fit_intercept, class_weight, max_passes, linear_solver, random_state, n_jobs, verbose
        As in `SmSVMClassifier`; ``max_passes`` is of one fit. ``verbose``: a line a fit.
    sample_weight : (n_samples,) array or None
    l1s : sequence of float or None
        Instead of ``l2s``: weights of the l1 penalty, positive, of a path without l2 (the lasso's), falling, each once.
    max_time : float or None
        Seconds, after which what is known by then is returned, with a warning.
    comm : communicator with mpi4py's buffer methods, or None
        Every rank calls with its own rows, and has the path, as in `SmSVMClassifier.fit`.

    Returns
    -------
    SmSVMPath

    Raises
    ------
    ValueError
        As `SmSVMClassifier.fit`, and for penalties that are negative, not numbers, none, or 0 without l1.
    TimeoutError
        Where ``max_time`` is over before the first fit of every class.
    KeyboardInterrupt
        By Ctrl-C, with what is known by then, an `SmSVMPath` whose `gaps` say it, as its attribute ``path``.

    Warns
    -----
    UserWarning
        Where penalties are repeated or not in falling order.
    ConvergenceWarning
        Where ``tol`` is not proven everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from cmargin import smsvm_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = smsvm_path(scale(X), y, l2s=np.logspace(0, -4, 50), loss="logistic", tol=1e-2)
    >>> path.coefs.shape, path.n_fits < 50, bool(path.gaps.max() <= 1e-2)
    ((50, 1, 30), True, True)
    >>> model = path.at(2.5e-3)                    # any penalty: a fitted SmSVMClassifier
    >>> model.score(scale(X), y) > 0.98
    True
    """
    estimator = SmSVMClassifier(
        l1=l1, loss=loss, tol=tol, max_passes=max_passes, linear_solver=linear_solver,
        penalize_intercept=penalize_intercept, fit_intercept=fit_intercept, class_weight=class_weight,
        max_time=max_time, random_state=random_state, n_jobs=n_jobs, verbose=verbose)
    return fit_path(estimator, X, y, sample_weight, l2s=l2s, Cs=Cs, n_l2s=n_l2s, l2_min=l2_min, l1_ratio=l1_ratio,
                    between=between, l1s=l1s, comm=comm)
