"""Checks of rows that stay in files, in scikit-learn's wording: of their numbers when they are first read."""

from functools import partial

from sklearn.utils.validation import assert_all_finite, check_array, check_consistent_length, validate_data

from cmargin.homes.files import RowFiles


def check_row_files(estimator, X, y, targets, reset):
    """``X`` with a check of its numbers, and ``y`` where there are ``targets``; see `check_rows`."""
    validate_data(estimator, X, y if targets else "no_validation", reset=reset, skip_check_array=True)
    name = type(estimator).__name__
    for what, n in (("sample", X.n_rows), ("feature", X.n_features)):
        if n == 0:
            raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required by "
                             f"{name}.")
    X = RowFiles(X.parts, partial(assert_all_finite, estimator_name=name, input_name="X"))
    if not targets:
        return X
    y = check_array(y, accept_sparse="csr", ensure_2d=False, dtype=None, input_name="y", estimator=estimator)
    check_consistent_length(X, y)
    return X, y
