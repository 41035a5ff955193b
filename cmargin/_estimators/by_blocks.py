"""Predictions for Dask collections: the same method on every block of rows, when somebody computes it."""

from copy import copy
from functools import wraps
from typing import cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from cmargin._core.util._fp_control import StandardArithmetic
from cmargin._estimators.types import Method
from cmargin._estimators.validation import check_columns
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.data.open import dask_array_of, on_workers


def lazy_on_workers(method: Method) -> Method:
    """Decorator of a method of X, and of what is no array, whose result has a row for each of X: a Dask collection
    gives a dask array. The processor computes by its standard settings meanwhile."""
    @wraps(method)
    def call(self, X, *more, **named):
        with StandardArithmetic():
            return by_blocks(self, method, X, more, named) if on_workers(X) else method(self, X, *more, **named)

    return cast(Method, call)


def by_blocks(estimator, method, X, more, named):
    import dask

    check_is_fitted(estimator)
    _check_feature_names(estimator, getattr(X, "_meta", None), reset=False)
    X = dask_array_of(X)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
    check_columns(estimator, X)
    there = for_workers(estimator)
    like = method(there, np.zeros((1, X.shape[1]), X.dtype if X.dtype.kind == "f" else np.float64), *more, **named)
    shape = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (X.chunks[0], like.shape[1:])}
    return X.rechunk({1: -1}).map_blocks(of_block, dask.delayed(there), method.__name__, like[:0], more, named,
                                         dtype=like.dtype,
                                         meta=like[:0], token=f"cmargin-{method.__name__}", **shape)


def for_workers(estimator):
    """A copy without names of columns, which have been compared, and callbacks, which may be of no use elsewhere."""
    there = copy(estimator)
    for name, value in list(vars(there).items()):
        if name in ("feature_names_in_", "callback"):
            delattr(there, name)
        elif isinstance(value, BaseEstimator):
            setattr(there, name, for_workers(value))
    return there


def of_block(X, estimator, name, nothing, more, named):
    if not X.shape[0]:
        return nothing
    with single_threaded_blas():
        return getattr(estimator, name)(X, *more, **named)
