"""`slnd_path`: the multinomial optimum at many penalties for the price of a few fits, every one certified."""

from collections.abc import Sequence
from typing import Any

from cmargin._estimators.docs import ClassWeight
from cmargin._estimators.slnd_path import SLNDPath, fit_slnd_path
from cmargin.slnd import SLNDClassifier


def slnd_path(X: Any, y: Any, *, l2s: Sequence[float] | None = None, Cs: Sequence[float] | None = None,
              n_l2s: int = 100, l2_min: float | None = None, tol: float = 1e-4, between: bool = False,
              fit_intercept: bool = True, sample_weight: Any = None, class_weight: ClassWeight = None,
              max_time: float | None = None, n_jobs: int | None = None, verbose: int = 0) -> SLNDPath:
    """Weights of multinomial `SLNDClassifier` at every penalty of a path, each certified to ``tol``.

    A fit proves more than its own penalty: where two fits prove the weights between them, no fit is made. Others begin
    on the line through the last two.

    Parameters
    ----------
    X : (n_samples, n_features) array or sparse matrix
        In memory.
    y : (n_samples,) labels
    l2s : sequence of float or None
        Weights of the penalty, positive. The path has them in falling order, each once. None: ``n_l2s`` penalties,
        evenly in their logarithms, from one beside which the weights are about the difference of the classes' means to
        ``l2_min``.
    Cs : sequence of float or None
        Instead of ``l2s``: ``l2 = 1 / (C * sum of the weights of the rows)``, as scikit-learn's LogisticRegression.
    n_l2s : int
        Penalties where none are given.
    l2_min : float or None
        The least of them. None: where the training error is 0 or has not fallen over two decades.
    tol : float
        Relative duality gap that is proven at every penalty.
    between : bool
        Prove ``tol`` at every penalty between two of ``l2s`` too, which may take more fits. Always so without ``l2s``.
    fit_intercept, class_weight, n_jobs, verbose
        As in `SLNDClassifier`. ``verbose``: a line a penalty.
    sample_weight : (n_samples,) array or None
    max_time : float or None
        Seconds, after which what is known by then is returned, with a warning.

    Returns
    -------
    SLNDPath

    Raises
    ------
    ValueError
        As `SLNDClassifier.fit` with ``l2``, and for penalties that are not positive numbers, or none.
    KeyboardInterrupt
        By Ctrl-C, with what is known by then, an `SLNDPath`, as its attribute ``path``.

    Warns
    -----
    UserWarning
        Where penalties are repeated or not in falling order.
    ConvergenceWarning
        Where ``tol`` is not proven everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from cmargin import slnd_path
    >>> X, y = load_wine(return_X_y=True)
    >>> path = slnd_path(scale(X), y, tol=1e-3)
    >>> path.coefs.shape, path.n_fits < 100, bool(path.gaps.max() <= 1e-3)
    ((100, 3, 13), True, True)
    >>> model = path.at(2.5e-1)                    # any penalty: a fitted SLNDClassifier
    >>> model.predict_proba(scale(X)).shape
    (178, 3)
    """
    estimator = SLNDClassifier(loss="multinomial", tol=tol, fit_intercept=fit_intercept, class_weight=class_weight,
                               max_time=max_time, n_jobs=n_jobs, verbose=verbose)
    return fit_slnd_path(estimator, X, y, sample_weight, l2s=l2s, Cs=Cs, n_l2s=n_l2s, l2_min=l2_min, between=between)
