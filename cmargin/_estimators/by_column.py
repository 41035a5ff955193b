"""Bounds of the weights, and l2 and l1 of each column's own: their checks, and the penalty that they are."""

import numbers

import numpy as np

from cmargin._estimators.validation import NOT_NEGATIVE, InvalidParameterError, check_parameter
from cmargin.solvers.penalty import ByColumn, ElasticNet

EVERYWHERE = {"lower": -np.inf, "upper": np.inf}


def is_array(value):
    """Whether it is given column by column."""
    return value is not None and not isinstance(value, (numbers.Number, str, bytes)) and np.ndim(value) > 0


def check_weight_of_columns(estimator, name, value, none=False):
    """Raise unless ``value``, an l2 or l1, is a number, at least 0, or an array of such numbers."""
    if not is_array(value):
        check_parameter(estimator, name, value, real=NOT_NEGATIVE, none=none)
        return
    each = _numbers(estimator, name, value)
    if not (each >= 0).all() or not np.isfinite(each).all():
        raise InvalidParameterError(f"The {name!r} parameter of {type(estimator).__name__} must be floats in the range "
                                    f"{NOT_NEGATIVE[2]}. Got {value!r} instead.")


def check_bounds(estimator):
    """Raise unless ``lower`` and ``upper`` are None, numbers or arrays of numbers between which there is room."""
    each = {}
    for name, none in EVERYWHERE.items():
        value = getattr(estimator, name)
        if value is None:
            each[name] = none
            continue
        if not is_array(value) and (not isinstance(value, numbers.Real) or isinstance(value, bool)):
            raise InvalidParameterError(f"The {name!r} parameter of {type(estimator).__name__} must be a float, an "
                                        f"array-like of floats or None. Got {value!r} instead.")
        each[name] = _numbers(estimator, name, value)
        if (each[name] == -none).any():
            raise InvalidParameterError(f"The {name!r} parameter of {type(estimator).__name__} must be "
                                        f"{'below' if none < 0 else 'above'} {-none}. Got {value!r} instead.")
    lower, upper = each["lower"], each["upper"]
    if np.ndim(lower) == np.ndim(upper) == 1 and np.shape(lower) != np.shape(upper):
        raise InvalidParameterError(f"lower and upper should be of the same shape (n_features,). Got "
                                    f"{np.shape(lower)} and {np.shape(upper)}, instead.")
    if np.any(lower > upper):
        raise InvalidParameterError("One (or more) features have lower > upper.")


def _numbers(estimator, name, value):
    try:
        each = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InvalidParameterError(f"The {name!r} parameter of {type(estimator).__name__} must be a float or an "
                                    f"array-like of floats. Got {value!r} instead.") from None
    if np.isnan(each).any():
        raise InvalidParameterError(f"The {name!r} parameter of {type(estimator).__name__} contains NaN.")
    if each.ndim > 1:
        raise InvalidParameterError(f"{name!r} should be of shape (n_features,) when an array-like is provided. Got "
                                    f"{each.shape}, instead.")
    return each


def is_by_column(estimator):
    """Whether there are bounds, constraints, or an l2 or l1 by column."""
    bounded = estimator.lower is not None or estimator.upper is not None
    return bounded or is_array(estimator.l1) or is_array(estimator.l2) or estimator.constraints is not None


def refuse_by_column(estimator, what):
    """Raise where there are."""
    if is_by_column(estimator):
        raise ValueError(f"{what} takes one l2 and one l1 for all columns, and neither lower nor upper nor "
                         "constraints.")


def each_of_columns(n_features, **given):
    """(n_features,) arrays of numbers that are given once for all or column by column."""
    for name, value in given.items():
        if np.ndim(value) and np.shape(value) != (n_features,):
            raise ValueError(f"{name!r} should be of shape ({n_features},) when an array-like is provided. Got "
                             f"{np.shape(value)}, instead.")
    return {name: np.broadcast_to(np.asarray(value, float), (n_features,)) for name, value in given.items()}


def bounds_of_columns(estimator, n_features):
    """``lower`` and ``upper`` as arrays (n_features,), infinite where there are none."""
    given = {name: none if getattr(estimator, name) is None else getattr(estimator, name)
             for name, none in EVERYWHERE.items()}
    return list(each_of_columns(n_features, **given).values())


def penalty_in_columns(estimator, l2, l1, n_features):
    """`ByColumn`, or `ElasticNet` where all columns are alike and free; ``l2``, ``l1`` (n_features,) or a number."""
    each = each_of_columns(n_features, l2=l2, l1=l1)
    each |= dict(zip(EVERYWHERE, bounds_of_columns(estimator, n_features), strict=True))
    of_intercept = estimator.fit_intercept and estimator.penalize_intercept
    if of_intercept and (is_array(l2) or is_array(l1)):
        raise ValueError("penalize_intercept=True needs l2 and l1 that are numbers: an intercept has none of its own.")
    if np.isinf(each["lower"]).all() and np.isinf(each["upper"]).all() and n_features \
            and np.ptp(each["l2"]) == 0 == np.ptp(each["l1"]):
        return ElasticNet(float(each["l2"][0]), float(each["l1"][0]))
    if of_intercept:
        own = {"l2": l2, "l1": l1, **EVERYWHERE}
        each = {name: np.append(value, own[name]) for name, value in each.items()}
    return ByColumn(each["l2"], each["l1"], each["lower"], each["upper"])
