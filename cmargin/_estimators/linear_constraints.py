"""``constraints=``: linear constraints of the weights, as users say them; their checks, and the penalty with them."""

import numpy as np

from cmargin._estimators.by_column import bounds_of_columns, is_array
from cmargin._estimators.validation import LARGEST, InvalidParameterError
from cmargin.solvers import cost
from cmargin.solvers.constraints import NOTHING, Constraints, Infeasible
from cmargin.solvers.penalty import ByColumn

OF_SUMS = 1e-12              # of the sizes of what adds up to 0: what may be left by rounding


def is_constrained(estimator):
    return getattr(estimator, "constraints", None) is not None


def check_constraints(estimator):
    """Raise unless ``constraints`` is None, or (A, b) beside one l2 above 0, bounds and no other penalty."""
    if not is_constrained(estimator):
        return
    numbers_of_constraints(estimator)
    needs = {"l1": not np.any(np.asarray(estimator.l1, float)), "l1_ratio": not estimator.l1_ratio,
             "groups": estimator.groups is None}
    for name, met in needs.items():
        if not met:
            raise InvalidParameterError(f"constraints= needs {name}={0 if name == 'l1' else None}, as the "
                                        "multipliers that certify a fit are those beside l2 alone; got "
                                        f"{name}={getattr(estimator, name)!r}.")
    if getattr(estimator, "coef_dtype", "float64") != "float64":       # a regressor has none
        raise InvalidParameterError("constraints= needs coef_dtype='float64', as weights that are rounded would miss "
                                    f"them; got {estimator.coef_dtype!r}.")
    if is_array(estimator.l2):
        raise InvalidParameterError("constraints= needs one l2 for all columns; got an array.")
    if estimator.C == np.inf or (estimator.l2 is not None and not estimator.l2 > 0):
        raise InvalidParameterError("constraints= needs l2 above 0, from which the multipliers that certify a fit "
                                    f"come; got l2={estimator.l2!r} and C={estimator.C!r}.")


def numbers_of_constraints(estimator):
    """A (q, n) and b (q,), float64."""
    given, name = estimator.constraints, type(estimator).__name__
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise InvalidParameterError(f"The 'constraints' parameter of {name} must be a pair (A, b) or None. Got "
                                    f"{given!r} instead.")
    try:
        if any(np.asarray(each).dtype.kind in "SUc" or np.ma.is_masked(each) for each in given):
            raise TypeError                      # of which NumPy would make numbers
        A, b = (np.asarray(each.toarray() if hasattr(each, "toarray") else each, dtype=float) for each in given)
    except (TypeError, ValueError):
        raise InvalidParameterError(f"The 'constraints' parameter of {name} must be arrays of floats. Got {given!r} "
                                    "instead.") from None
    if A.ndim != 2 or not len(A) or b.ndim > 1 or (b.ndim == 1 and len(b) != len(A)):
        raise InvalidParameterError(f"'constraints' should be of shapes (n_constraints, n_features) and "
                                    f"(n_constraints,). Got {A.shape} and {b.shape}, instead.")
    if not (np.isfinite(A).all() and np.isfinite(b).all()):
        raise InvalidParameterError(f"The 'constraints' parameter of {name} contains NaN or infinity.")
    return A, np.broadcast_to(b, len(A))


def penalty_within(estimator, l2, n_features):
    """`ByColumn` with the constraints; ValueError where no weights meet them, with what proves it."""
    A, b = numbers_of_constraints(estimator)
    if A.shape[1] != n_features:
        raise ValueError(f"constraints has {A.shape[1]} columns but the input data X has {n_features} features.")
    n, rows = n_features + bool(estimator.fit_intercept and estimator.penalize_intercept), len(A)
    bounds = bounds_of_columns(estimator, n_features)
    lowest, highest = (np.flatnonzero(np.isfinite(each)) for each in bounds)
    if len(lowest) + len(highest) > cost.L1_BLOCK_UP_TO_COLUMNS:
        raise ValueError(f"constraints= takes up to {cost.L1_BLOCK_UP_TO_COLUMNS:,} bounds beside it; lower and "
                         f"upper are {len(lowest) + len(highest):,}.")
    A = np.vstack([A, np.eye(n_features)[lowest], -np.eye(n_features)[highest]])       # bounds are rows as well
    b = np.concatenate([b, -bounds[0][lowest], bounds[1][highest]])
    try:
        found = Constraints.of(np.hstack([A, np.zeros((len(A), n - n_features))]), b)
    except Infeasible as proof:
        y = proof.multipliers
        left = np.linalg.norm(y @ A)             # y'A w >= 1 takes weights of 1 / left, or it is rounding
        shorter = f" shorter than {1 / left:.2g}" if left > OF_SUMS * (y @ np.linalg.norm(A, axis=1)) else ""
        names = [*map(str, range(rows)), *(f"lower[{j}]" for j in lowest), *(f"upper[{j}]" for j in highest)]
        at_work = y.nonzero()[0]
        also = " and bounds" * bool(at_work[-1] >= rows)
        raise ValueError(f"No weights{shorter} meet all constraints: row{'s' * (len(at_work) > 1)} "
                         f"{', '.join(names[k] for k in at_work)} of A{also}, times "
                         f"{', '.join(f'{each:.6g}' for each in y[y > 0])}, add up to 0, and b to -1.") from None
    bounds = [np.append(each, np.full(n - n_features, none)) for each, none in zip(bounds, (-np.inf, np.inf),
                                                                                   strict=True)]
    return ByColumn(np.full(n, float(l2)), np.zeros(n), *bounds, found)


def missed_constraints(fit):
    """A sentence where weights of a `SmSVMFit` miss constraints by more than rounding; None where they do not."""
    if not is_constrained(fit.estimator):
        return None
    worst = 0.0
    for c in range(len(fit.results)):
        penalty, w = fit._penalty_of(c), fit.results[c].w
        if penalty.by_column and penalty.constraints is not None:
            size = np.sqrt(2 * min(fit.results[c].objective, LARGEST) / penalty.l2)      # none that win are longer
            worst = max(worst, penalty.constraints.missed(w[:penalty.constraints.A.shape[1]], size))
    if not worst > NOTHING:
        return None
    return (f"Constraints are missed by {worst:.1e} of the sizes of their sums, as rows of A nearly depend on each "
            "other; scale the columns.")
