"""Checks of parameters, rows and labels, in scikit-learn's wording."""

import math
import numbers
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from cmargin._core.rows._structure import check_structure
from cmargin._core.util._arrays import all_finite
from cmargin._core.util._labels import count_codes, rows_by_class
from cmargin._estimators.rows_elsewhere import check_device_rows, check_row_files
from cmargin._runtime.aligned import contiguous
from cmargin.data.containers import rows_array
from cmargin.data.converted import ConvertedRows, is_copied, is_single
from cmargin.data.device.rows import DeviceRows
from cmargin.data.device.source import refuse_device
from cmargin.data.files.source import refuse_files
from cmargin.data.files.sources import RowFiles
from cmargin.data.open import on_workers
from cmargin.data.open_here import opened

# what `validate_data` is to make of rows: CSR or dense, float32 and float64 as they are, in any order, not copied
ROWS = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": None, "accept_large_sparse": True}

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
                    mapping=False):
    """Raise unless ``value`` is one of ``options``, or a number in the closed or open interval given.

    ``integer`` and ``real`` are (low, high, text): the number must satisfy low <= value <= high for integers and
    low < value <= high for reals; ``text`` says so to the user.
    """
    allowed = []
    if mapping:
        several = value if isinstance(value, list) and value else [value]
        if all(isinstance(one, dict) for one in several):
            return
        allowed += ["a dict", "a list of dicts"]
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
        low, high, text = real
        if isinstance(value, numbers.Real) and not isinstance(value, bool) and low < as_float(value) <= high:
            return
        allowed.append(f"a float in the range {text}")
    if none:
        if value is None:
            return
        allowed.append("None")
    if call:
        if callable(value):
            return
        allowed.append("a callable")
    wanted = allowed[0] if len(allowed) == 1 else ", ".join(allowed[:-1]) + " or " + allowed[-1]
    raise InvalidParameterError(
        f"The {name!r} parameter of {type(estimator).__name__} must be {wanted}. Got {value!r} instead."
    )


def as_float(value):
    """A real number as a float, infinite beyond their range: an int that large raises OverflowError in comparisons."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def check_class_weight(estimator, value):
    """Raise unless ``value`` is a dict, a list of dicts, "balanced" or None; what they hold is checked where used."""
    check_parameter(estimator, "class_weight", value, mapping=True, options=("balanced",), none=True)


def in_range(weight):
    """Finite weights (n,) >= 0 times a power of 2, exactly, so that the largest is about 1 and sums are finite.

    Weights 2^-1074 times the largest, and smaller ones, become 0.
    """
    largest = weight.max(initial=0.0)
    return np.ldexp(weight, -np.frexp(largest)[1])


def balanced_weights(shares):
    """(n_classes,) class weights that make classes weigh alike; ``shares``: what their rows weigh so far.

    The "balanced" of scikit-learn's `compute_class_weight`; a class whose rows weigh nothing has 1.
    """
    return np.divide(shares.sum(), len(shares) * shares, out=np.ones(len(shares)), where=shares > 0)


def check_class_weights(weights):
    """Raise unless the (n_classes,) weights that a class_weight stands for are finite and not negative."""
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(f"class_weight must be finite and not negative; got weights {weights}.")


def check_seed(estimator):
    """``random_state``, of fits that draw nothing too."""
    seed = getattr(estimator, "random_state", None)
    if not isinstance(seed, np.random.RandomState) and seed is not np.random:
        check_parameter(estimator, "random_state", seed, integer=(0, 2**32 - 1, "[0, 4294967295]"), none=True)


def check_flag(estimator, name, value):
    """Raise unless ``value`` is a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidParameterError(
            f"The {name!r} parameter of {type(estimator).__name__} must be an instance of 'bool'. "
            f"Got {value!r} instead."
        )


def check_rows(estimator, X, y="no_validation", *, reset=True, multi_output=True, n_threads=1):
    """X, or X and y, as scikit-learn's `validate_data` leaves them; the first thing any method does with its data.

    The arrays of sparse input are checked before anything follows them, SciPy's and scikit-learn's methods included.

    Parameters
    ----------
    estimator : the estimator whose ``n_features_in_`` and ``feature_names_in_`` are set, or compared with
    X : (n, n_features) array or sparse matrix of any format; or rows in files, as `open_files` takes them; or a tensor
    y : (n,) or (n, n_labels) array or sparse matrix, or paths of labels; left out where there are no targets
    reset : bool
        True in `fit`; False where X must be as at the last fit.
    multi_output : bool
        Whether ``y`` may have several columns.
    n_threads : int
        That may read a large array; 1 but for training, as a child of a process that has trained has no others.

    Returns
    -------
    X : (n, n_features) array or CSR matrix, float32 or float64, the one given wherever that is possible; `RowFiles`
        where they are too large, `DeviceRows` of a tensor
    y : array or CSR matrix, where ``y`` was given

    Raises
    ------
    ValueError
        For broken sparse matrices, NaN, infinities and shapes.
    """
    if on_workers(X):
        raise TypeError(f"{type(estimator).__name__} does not take Dask collections here; give X.compute().")
    alone = isinstance(y, str) and y == "no_validation"
    if isinstance(X, ConvertedRows):                     # a search hands them on
        return X
    X, labels = opened(X, None if alone else y)
    y = y if alone else labels
    if isinstance(X, RowFiles):
        return check_row_files(estimator, X, y, not alone, reset)
    if isinstance(X, DeviceRows):
        return check_device_rows(estimator, X, y, not alone, reset)
    if clean(X, n_threads) and (alone or clean_labels(y, len(X))) and take_as_given(estimator, X, reset):
        return X if alone else (X, y)
    check_structure(X)
    wanted = rows_wanted(X)
    if alone and not reset and is_copied(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)      # names and number of columns
        return ConvertedRows(X, in_our_words(partial(check_array, estimator=estimator, input_name="X", **wanted)))
    targets = {} if alone else {"multi_output": multi_output}
    return in_our_words(validate_data)(estimator, X, y, reset=reset, **wanted, **targets)


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


def accuracy_of(y, predicted, sample_weight):
    """scikit-learn's accuracy of labels as `label_array` makes them, of bytes too, which it refuses."""
    from sklearn.metrics import accuracy_score  # heavy, and training does not need it

    if predicted.ndim == 2 and np.ndim(y) == 2:
        y = positives_of(y)                                                    # an indicator of -1 and 1 too
    if getattr(getattr(y, "dtype", None), "kind", "") == "S" and y.shape == predicted.shape:
        y, predicted = np.ones(len(y), bool), predicted == y
    return accuracy_score(y, predicted, sample_weight=sample_weight)


def clean(X, n_threads=1):
    """Whether scikit-learn's checks, a third of a millisecond, would leave ``X`` as it is: contiguous finite rows."""
    return type(X) is np.ndarray and X.ndim == 2 and X.size > 0 and finite(X, n_threads)


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
    if X.shape[1] != estimator.coef_.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
                         f"{estimator.coef_.shape[1]} features as input.")


def check_in_memory(X, what):
    """Raise for rows in files and on a device, which ``what`` cannot go by."""
    if isinstance(X, RowFiles):
        refuse_files(what)
    if isinstance(X, DeviceRows):
        refuse_device(what)


def sliceable(X):
    """Rows of any kind as an array or CSR matrix, from which numbers of rows pick; sparse arrays are checked first."""
    check_structure(X)
    return X.tocsr() if sp.issparse(X) else np.asarray(rows_array(X))


def check_targets(y):
    """Raise for targets that are no labels. Those that plainly are pass without scikit-learn's own, slower look."""
    if not plain_labels(y):
        check_classification_targets(y)


def plain_labels(y):
    """Whether ``y`` is an array of whole numbers or strings, one a row."""
    if not isinstance(y, np.ndarray) or y.ndim != 1:
        return False
    return y.dtype.kind in "biuUS" or (y.dtype.kind == "f" and bool((y == np.rint(y)).all()))


def positives_of(y):
    """CSC indicator of the positives of a label indicator, whose values must be 0 and 1, or -1 and 1."""
    values = y.data if sp.issparse(y) else np.asarray(y)
    if not np.isin(values, (-1, 0, 1)).all():
        raise ValueError("A label indicator must hold 0 and 1, or -1 and 1.")
    return sp.csc_matrix(y > 0, dtype=np.int8)


def code_labels(y, classes=None):
    """Classes, and which rows are in which.

    Parameters
    ----------
    y : (n,) labels, or (n, n_labels) indicator, dense or sparse; as `label_array` makes them
    classes : array or None
        All classes; from ``y`` if None. Not used for an indicator.

    Returns
    -------
    classes : (n_classes,) array, ascending; for an indicator ``0 .. n_labels - 1``
    codes : (n,) int array of class indices, or None for an indicator
    positives : CSC indicator (n, n_labels), or None for labels

    Raises
    ------
    ValueError
        For continuous targets, fewer than two classes, or labels outside ``classes``.
    """
    if sp.issparse(y) and y.shape[1] == 1:               # an indicator of one label; scikit-learn knows none
        return np.arange(1), None, positives_of(y)
    check_targets(y)
    if not plain_labels(y) and type_of_target(y, input_name="y") == "multilabel-indicator":
        positives = positives_of(y)
        return np.arange(positives.shape[1]), None, positives
    return *_class_codes(y if plain_labels(y) else column_or_1d(y, warn=True), classes), None


def encode_labels(y, classes=None):
    """Labels as one-vs-rest problems.

    Parameters
    ----------
    y, classes : as in `code_labels`; ``classes`` for `partial_fit`

    Returns
    -------
    classes, codes : as from `code_labels`
    Y : CSC indicator (n, n_problems): one column for two classes (positive: ``classes[1]``), else one a class

    Raises
    ------
    ValueError
        As `code_labels`.
    """
    classes, codes, Y = code_labels(y, classes)
    return classes, codes, indicator_of(codes, len(classes)) if Y is None else Y


def indicator_of(codes, n_classes):
    """CSC indicator of labels: one column for two classes, of the second, else one a class."""
    index = np.int32 if len(codes) <= np.iinfo(np.int32).max else np.int64
    rows, starts = np.empty(len(codes), index), np.empty(n_classes + 1, index)
    rows_by_class(np.ascontiguousarray(codes, np.int64), rows, starts)
    if n_classes == 2:
        rows, starts = rows[starts[1]:], starts[1:] - starts[1]
    return sp.csc_matrix((np.ones(len(rows), np.int8), rows, starts), shape=(len(codes), len(starts) - 1))


def _class_codes(y, classes):
    """All classes, ascending, and the place of every label among them."""
    plain = classes is None and plain_labels(y)          # one search for the distinct labels, not three
    counted = count_codes(contiguous(y, np.int64)) if plain and y.dtype.kind in "bi" else None
    encoder = None if plain else LabelEncoder().fit(y if classes is None else np.asarray(classes))
    if counted is not None:
        found = counted[0].astype(y.dtype)
    else:
        found = np.unique(y) if plain else encoder.classes_
    if len(found) < 2:
        raise ValueError(
            "This solver needs samples of at least 2 classes in the data, but the data contains "
            f"{f'only one class: {found.tolist()[0]!r}' if len(found) else 'none'}"
        )
    if counted is not None:
        return found, counted[1]
    return found, np.searchsorted(found, y) if plain else encoder.transform(y)
