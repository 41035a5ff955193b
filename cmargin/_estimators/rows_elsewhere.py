"""Checks of rows that stay in files or live on a device, in scikit-learn's wording."""

from functools import partial

import numpy as np
from sklearn.utils.validation import assert_all_finite, check_array, check_consistent_length, validate_data

from cmargin.data.files import RowFiles


def check_row_files(estimator, X, y, targets, reset):
    """``X`` with a check of its numbers for when they are first read, and ``y`` where there are ``targets``."""
    _check_sizes(estimator, X, y, targets, reset)
    X = RowFiles(X.parts, partial(assert_all_finite, estimator_name=type(estimator).__name__, input_name="X"))
    return _with_labels(estimator, X, y, targets)


def check_device_rows(estimator, X, y, targets, reset):
    """`DeviceRows` of floats, all of them finite, and ``y`` where there are ``targets``."""
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead. Reshape your data either using "
                         "X.reshape(-1, 1) if your data has a single feature or X.reshape(1, -1) if it contains a "
                         "single sample.")
    _check_sizes(estimator, X, y, targets, reset)
    X = X.as_float()
    broken = X.not_finite()
    if broken is not None:                   # in the words of those who check rows in memory
        assert_all_finite(np.array([broken], X.dtype), estimator_name=type(estimator).__name__, input_name="X")
    return _with_labels(estimator, X, y, targets)


def _check_sizes(estimator, X, y, targets, reset):
    validate_data(estimator, X, y if targets else "no_validation", reset=reset, skip_check_array=True)
    for what, n in zip(("sample", "feature"), X.shape, strict=True):
        if n == 0:
            raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required by "
                             f"{type(estimator).__name__}.")


def _with_labels(estimator, X, y, targets):
    if not targets:
        return X
    y = check_array(y, accept_sparse="csr", ensure_2d=False, dtype=None, input_name="y", estimator=estimator)
    check_consistent_length(X, y)
    return X, y
