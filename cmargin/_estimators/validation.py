"""Checks of parameters and rows, wherever these are, in scikit-learn's wording."""

import math
import numbers
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import (
    _num_samples,
    assert_all_finite,
    check_array,
    check_consistent_length,
    validate_data,
)

from cmargin._core.rows._structure import check_structure
from cmargin._core.util._arrays import all_finite
from cmargin._core.util._openmp import effective_n_threads
from cmargin.data.arrays import plain
from cmargin.data.containers import is_single, rows_array
from cmargin.data.converted import ConvertedRows, is_copied
from cmargin.data.device.rows import DeviceRows
from cmargin.data.files.sources import RowFiles
from cmargin.data.open_here import opened, source_of
from cmargin.data.places import place_of

# what `validate_data` is to make of rows: CSR or dense, float32 and float64 as they are, in any order, not copied
ROWS = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": None, "accept_large_sparse": True}

CSR = sp.csr_matrix, sp.csr_array

# intervals for `check_parameter`
INT_MAX = np.iinfo(np.int64).max
COUNT = (1, INT_MAX, "[1, inf)")
LARGEST = float(np.finfo(float).max)
POSITIVE = (0.0, LARGEST, "(0.0, inf)")
# the largest number below 0 that is still there where a library loaded along has switched denormal numbers off
NOT_NEGATIVE = (-np.finfo(float).tiny, LARGEST, "[0.0, inf)")


class InvalidParameterError(ValueError, TypeError):
    """A parameter of an estimator is not what it must be."""


def check_parameter(estimator, name, value, *, options=(), integer=None, real=None, none=False, call=False,
                    mapping=False, flag=False):
    """Raise unless ``value`` is one of ``options``, or a number in the closed or open interval given.

    ``integer`` and ``real`` are (low, high, text): the number must satisfy low <= value <= high for integers and
    low < value <= high for reals; ``text`` says so to the user.
    """
    allowed = []
    if mapping:
        several = value if isinstance(value, list) and value else [value]
        if all(isinstance(one, dict) for one in several) or (isinstance(value, np.ndarray) and value.ndim == 2):
            return
        allowed += ["a dict", "a list of dicts", "an array of shape (n_labels, 2)"]
    if options:
        if isinstance(value, str) and value in options:
            return
        allowed.append("a str among {" + ", ".join(repr(o) for o in options) + "}")
    if integer:
        low, high, text = integer
        if isinstance(value, numbers.Integral) and not isinstance(value, bool) and low <= value <= high:
            return
        allowed.append(f"an int in the range {text}")
    if real:
        if is_real(value, real):
            return
        allowed.append(f"a float in the range {real[2]}")
    if none:
        if value is None:
            return
        allowed.append("None")
    if call:
        if callable(value):
            return
        allowed.append("a callable")
    if flag:
        if isinstance(value, (bool, np.bool_)):
            return
        allowed.append("an instance of 'bool'")
    wanted = allowed[0] if len(allowed) == 1 else ", ".join(allowed[:-1]) + " or " + allowed[-1]
    raise InvalidParameterError(
        f"The {name!r} parameter of {type(estimator).__name__} must be {wanted}. Got {plain(value)!r} instead."
    )


def is_real(value, interval):
    """Whether it is a number within an interval such as `POSITIVE`; True and False are none."""
    low, high, _ = interval
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and low < as_float(value) <= high


def as_float(value):
    """A real number as a float, infinite beyond their range: an int that large raises OverflowError in comparisons."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def check_seed(estimator):
    """``random_state``, of fits that draw nothing too."""
    seed = getattr(estimator, "random_state", None)
    if not isinstance(seed, np.random.RandomState) and seed is not np.random:
        check_parameter(estimator, "random_state", seed, integer=(0, 2**32 - 1, "[0, 4294967295]"), none=True)


def check_verbose(estimator):
    check_parameter(estimator, "verbose", estimator.verbose, integer=(0, math.inf, "[0, inf)"), flag=True)


def check_data(estimator, X, y, sample_weight=None, *, reset=True, n_threads=1, may_be_empty=False):
    """What is given to train on, rows, labels and weights, in whatever they come; the first that is done with it.

    X is left as scikit-learn's `validate_data` leaves it, an array or CSR matrix of float32 or float64, the one given
    wherever that is possible, or as `RowFiles` where it is too large, as `DeviceRows` of a tensor; y as an array or CSR
    matrix; numbers of the weights are not checked. The arrays of sparse input are checked before anything follows them,
    SciPy's and scikit-learn's methods included. Raises ValueError for broken sparse matrices, NaN, infinities, shapes.

    ``estimator`` gets ``n_features_in_`` and ``feature_names_in_``; ``reset`` False: X must have the same. As many as
    ``n_threads`` read a large array. ``may_be_empty``: there may be no rows; labels and weights are None then.
    """
    refuse_partitions(estimator, X)
    X, y, sample_weight = opened(X, y, sample_weight)
    check_structure(X)
    if is_elsewhere(X):
        X = check_elsewhere(estimator, X, reset, y)
        y = check_array(y, accept_sparse="csr", ensure_2d=False, dtype=None, input_name="y", estimator=estimator)
        check_consistent_length(X, y)
    elif may_be_empty and _num_samples(X) == 0:
        return validate_data(estimator, X, ensure_min_samples=0, **rows_wanted(X)), None, None
    elif not (clean(X, n_threads) and clean_labels(y, X.shape[0]) and take_as_given(estimator, X, reset)):
        X, y = in_our_words(validate_data)(estimator, X, y, reset=reset, multi_output=True, **rows_wanted(X))
    return X, y, sample_weight


def open_checked(estimator, X, y, sample_weight, may_be_empty=False):
    """The data source of rows and labels that are in order, and their weights, for a fit of ``estimator``."""
    X, y, sample_weight = check_data(estimator, X, y, sample_weight, reset=not estimator._keeps_columns,
                                     n_threads=effective_n_threads(estimator.n_jobs), may_be_empty=may_be_empty)
    return source_of(X, y), sample_weight


def check_rows(estimator, X):
    """Rows for predictions, as `check_data` leaves them; those that are copied are `ConvertedRows`, block by block."""
    refuse_partitions(estimator, X)
    if isinstance(X, ConvertedRows):                     # a search hands them on
        return X
    X = opened(X)[0]
    check_structure(X)
    if is_elsewhere(X):
        return check_elsewhere(estimator, X, False)
    if clean(X) and take_as_given(estimator, X, False):  # one thread: a child of a process that has trained has no more
        return X
    if is_copied(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)      # names and number of columns
        checked = partial(check_array, estimator=estimator, input_name="X", **rows_wanted(X))
        return ConvertedRows(X, in_our_words(checked))
    return in_our_words(validate_data)(estimator, X, reset=False, **rows_wanted(X))


def is_elsewhere(X):
    """Whether opened rows are in files or on a device."""
    return isinstance(X, (RowFiles, DeviceRows))


def check_elsewhere(estimator, X, reset, y="no_validation"):
    """`DeviceRows` or `RowFiles` of floats, whose numbers are found to be finite now, or when they are first read."""
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead. Reshape your data either using "
                         "X.reshape(-1, 1) if your data has a single feature or X.reshape(1, -1) if it contains a "
                         "single sample.")
    validate_data(estimator, X, y, reset=reset, skip_check_array=True)
    for what, n in zip(("sample", "feature"), X.shape, strict=True):
        if n == 0:
            raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required by "
                             f"{type(estimator).__name__}.")
    return X.checked(partial(assert_all_finite, estimator_name=type(estimator).__name__, input_name="X"))


def refuse_partitions(estimator, X):
    place = place_of(X)
    if place is not None:
        raise TypeError(f"{type(estimator).__name__} does not take {place.name} collections here; give X.compute().")


def rows_wanted(X):
    """`ROWS`; of frames whose dtypes NumPy does not know, single precision is asked for where it is theirs."""
    return {**ROWS, "dtype": ROWS["dtype"][::-1]} if is_single(X) else ROWS


def in_our_words(check):
    """The function ``check`` of rows; what NumPy and pandas say of columns that are no numbers is said for users."""
    def checked(*arguments, **named):
        try:
            return check(*arguments, **named)
        except ValueError as error:
            said = str(error)
            text = said.partition("could not convert string to float: ")[2]
            if text:
                raise ValueError(f"X holds the text {text[:60]}, and rows are numbers; encode columns of texts, by "
                                 "scikit-learn's OneHotEncoder for one, or leave them out.") from None
            if said.startswith("fill value must be 0"):
                raise ValueError("Sparse columns of X leave out another value than 0; give X.sparse.to_dense(), or "
                                 "make the columns of pandas.SparseDtype(float, 0).") from None
            raise
        except OverflowError as error:                   # NumPy's, of a whole number of Python
            raise ValueError(f"X holds a number beyond the range of float64 ({error}).") from None

    return checked


def clean(X, n_threads=1):
    """Whether scikit-learn's checks, a third of a millisecond, would leave ``X`` as it is: finite rows, dense and
    contiguous, or CSR whose structure is sound."""
    if type(X) is np.ndarray:
        return X.ndim == 2 and X.size > 0 and finite(X, n_threads)
    return type(X) in CSR and X.ndim == 2 and min(X.shape) > 0 and finite(X.data, n_threads)


def clean_labels(y, n_rows):
    """Whether the same is so of ``y``: finite numbers or strings, one a row."""
    return type(y) is np.ndarray and y.shape == (n_rows,) and (y.dtype.kind in "biuUS" or finite(y))


def finite(a, n_threads=1):
    """Whether an array is known to hold finite numbers of our types."""
    return (a.dtype in (np.float32, np.float64) and a.dtype.isnative and a.flags.aligned
            and (a.flags.c_contiguous or a.flags.f_contiguous) and all_finite(a.ravel("K"), n_threads))


def take_as_given(estimator, X, reset):
    """Note, or compare, the number of columns of rows without names; whether there is nothing to be said about them."""
    if not reset:
        known = getattr(estimator, "n_features_in_", None)       # not of weights that were set by hand
        return not hasattr(estimator, "feature_names_in_") and known == X.shape[1]
    vars(estimator).pop("feature_names_in_", None)
    estimator.n_features_in_ = X.shape[1]
    return True


def check_columns(estimator, X):
    """Raise unless the rows fit to the weights, which may have been set by hand, no number of columns being noted."""
    if X.shape[1] != estimator.coef_.shape[-1]:
        raise ValueError(f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
                         f"{estimator.coef_.shape[-1]} features as input.")


def check_set_by_hand(estimator, what, names, dimensions=2):
    """Raise unless the weights that ``what`` goes on from have all these attributes, and coef_ so many dimensions."""
    missing = [name for name in names if not hasattr(estimator, name)]
    if missing:
        raise ValueError(f"{what} goes on from {', '.join(names)}, of a fit or set by hand; "
                         f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not set.")
    if np.ndim(estimator.coef_) not in (dimensions, 2):
        raise ValueError(f"{what} needs coef_ of {dimensions} dimensions; got shape {np.shape(estimator.coef_)}.")


def sliceable(X):
    """Rows of any kind as an array or CSR matrix, from which numbers of rows pick; sparse arrays are checked first."""
    check_structure(X)
    return X.tocsr() if sp.issparse(X) else np.asarray(rows_array(X))


def given_penalties(l2s, Cs, called="l2s"):
    """("l2s", as it is ``called``, or "Cs", its numbers (n,)) of a path, or None where neither is given; ValueError for
    both."""
    if l2s is not None and Cs is not None:
        raise ValueError("Give l2s or Cs, not both.")
    if l2s is None and Cs is None:
        return None
    name, given = (called, l2s) if Cs is None else ("Cs", Cs)
    try:
        given = np.asarray(given, float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a sequence of numbers; got {given!r}.") from None
    if given.ndim != 1 or len(given) == 0:
        raise ValueError(f"{name} must be a sequence of numbers, at least one; got shape {given.shape}.")
    return name, given
