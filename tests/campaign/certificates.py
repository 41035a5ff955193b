"""Is what `SmSVMClassifier` reports of a problem true? Each fit is checked against `oracle`."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from .findings import Findings
from .force import forced
from .oracle import LONG, Binary, bounds
from .problems import make_problem
from .smooth_oracle import SmoothBinary

RELATIVE = 1e-9                # how far a reported objective may be from its recomputation, rounding aside
NOTHING = 1e-15                # objectives below this count as 0; that of w = 0 is 1
ENOUGH = 200                   # passes
LIMITS = {"objective off": RELATIVE, "rounding allowed": 1e-6, "oracle's gap": 1e-6,          # what the totals count
          "gap left after enough passes": 1e-2}
_threads = None


def check_seed(seed):
    return check_problem(seed, make_problem(seed))[0]


def check_problem(seed, problem):
    """Fit a problem twice and judge it: (findings, the model, or None where it raised)."""
    from cmargin import SmSVMClassifier  # here: the campaign can be read where nothing is built

    found = Findings(seed, problem.tags)
    first = run_fit(SmSVMClassifier, problem, 1, found)
    if first is None:
        return found, None
    model, warned = first
    second = run_fit(SmSVMClassifier, problem, 2, found)
    if second is not None and not same_bits(model, second[0]):
        found.add("bits", "coef_, intercept_, objective_ or duality_gap_ differ between n_jobs=1 and 2")
    check_finite(problem, model, found)
    check_warned(problem, model, warned, found)
    with one_thread():
        for c, (binary, w, b, objective, gap) in enumerate(binary_problems(problem, model)):
            check_certificate(binary, w, b, objective, gap, f"class {c}: ", found)
    return found, model


def one_thread():
    """BLAS on one thread for the oracle's small products."""
    global _threads
    _threads = _threads or ThreadpoolController()
    return _threads.limit(limits=1, user_api="blas")


def run_fit(estimator, problem, n_jobs, found):
    """(model, whether it warned of convergence), or None where it raised."""
    with warnings.catch_warnings(record=True) as caught, forced(**problem.force):
        warnings.simplefilter("always")
        try:
            model = estimator(**{**problem.settings, **(problem.before or {}), "n_jobs": n_jobs})
            if problem.before is not None:
                model.fit(problem.X, problem.y, problem.sample_weight)
                caught.clear()
                model.set_params(**problem.settings)
            model.fit(problem.X, problem.y, problem.sample_weight)
        except Exception as error:
            refused = isinstance(error, ValueError) and problem.may_overflow and len(str(error)) > 10
            if refused:
                found.figures["refused"] = 1
            else:
                found.add("exception", f"{type(error).__name__}: {error}"[:200])
            return None
    return model, any(issubclass(one.category, ConvergenceWarning) for one in caught)


def same_bits(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)
               for name in ("coef_", "intercept_", "objective_", "duality_gap_"))


def check_finite(problem, model, found):
    for name in ("coef_", "intercept_", "objective_"):
        if not np.isfinite(getattr(model, name)).all():
            found.add("nan", f"{name} is not finite")
    gap = model.duality_gap_
    penalised = problem.settings["l1"] > 0 or problem.settings["l2"] > 0
    if penalised and np.isnan(gap).any():
        found.add("nan", "duality_gap_ is NaN in spite of a penalty")
    if (gap < 0).any():
        found.add("negative gap", f"duality_gap_ {gap.min():.3g}")
    try:
        with np.errstate(all="ignore"):
            scores, labels = model.decision_function(problem.X), model.predict(problem.X)
    except Exception as error:
        found.add("exception", f"predict: {type(error).__name__}: {error}"[:200])
        return
    if not np.isfinite(scores).all():
        found.add("nan", "decision_function is not finite")
    if problem.y.ndim == 1 and not np.isin(labels, model.classes_).all():
        found.add("labels", "predict returns labels that were not given")


def check_warned(problem, model, warned, found):
    gap = model.duality_gap_
    short = gap[~np.isnan(gap)].max(initial=0) > problem.settings["tol"]
    found.figures["short"] = int(short)
    if problem.settings.get("max_passes", ENOUGH) >= ENOUGH:
        found.note("gap left after enough passes", float(gap[~np.isnan(gap)].max(initial=0)))
    if short and not warned:
        found.add("silent", f"gap {np.nanmax(gap):.3g} above tol={problem.settings['tol']:.3g}, no warning")


def binary_problems(problem, model):
    """Every one-vs-rest problem as (`Binary`, w, b, reported objective, reported gap)."""
    X, y, settings = problem.dense, problem.y, problem.settings
    weights = np.ones(len(X), LONG) if problem.sample_weight is None else problem.sample_weight.astype(LONG)
    labels = np.arange(y.shape[1]) if y.ndim == 2 else np.unique(y)
    asked = settings.get("class_weight")
    if asked is not None:
        shares = {label: weights[y == label].sum() for label in labels}      # "balanced" counts the weights of rows
        each = {label: LONG(asked[label.item()]) if asked != "balanced" else
                weights.sum() / (len(labels) * shares[label]) if shares[label] > 0 else LONG(1) for label in labels}
        weights = weights * np.array([each[label] for label in y])
    if y.ndim == 2:
        signs = [np.where(y[:, c] > 0, 1, -1) for c in range(y.shape[1])]
    else:
        signs = [np.where(y == label, 1, -1) for label in (labels[1:] if len(labels) == 2 else labels)]
    intercept = "none" if not settings["fit_intercept"] else "penalised" if settings["penalize_intercept"] else "free"
    loss, shared = settings.get("loss", "hinge"), {}
    for c, sign in enumerate(signs):
        asked = X, sign, weights, settings["l2"], settings["l1"], intercept
        binary = Binary(*asked) if loss == "hinge" else SmoothBinary(*asked, loss)
        binary.__dict__.update(shared)
        binary.m, shared["rows"], shared["sizes"] = binary.m, binary.rows, binary.sizes
        yield binary, model.coef_[c], model.intercept_[c], float(model.objective_[c]), float(model.duality_gap_[c])


def check_certificate(binary, w, b, objective, gap, where, found):
    """The reported objective and gap of one binary problem against its own and better points."""
    if not (np.isfinite(w).all() and np.isfinite(b) and np.isfinite(objective)):
        return
    value, rounding = binary.objective(w, b)
    off = abs(LONG(objective) - value)
    if off > max(RELATIVE * value, LONG(NOTHING)) + rounding:
        found.add("objective", f"{where}{objective:.6g} reported, is {float(value):.6g}")
    found.note("objective off", float(off / max(value, LONG(NOTHING))))
    found.note("rounding allowed", float(rounding / max(value, LONG(NOTHING))))
    if np.isnan(gap):
        return
    # both what was reported and what is true at w must be within the gap of the minimum
    claimed = max(LONG(objective) * (1 - LONG(gap)), value * (1 - LONG(gap)))
    if max(objective, value) <= NOTHING or claimed <= NOTHING:
        return
    best = bounds(binary)
    allowed = RELATIVE * max(abs(LONG(objective)), value) + rounding + best.rounding + NOTHING
    if best.upper < claimed - allowed:
        found.add("false gap", f"{where}gap {gap:.3g} claims at least {float(claimed):.8g}, another point has "
                               f"{float(best.upper):.8g}")
    found.note("oracle's gap", best.certainty)
