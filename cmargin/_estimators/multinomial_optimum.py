"""`SLNDClassifier` and `BSNClassifier` with a penalty: the multinomial objective to its optimum, certified."""

from functools import partial

import numpy as np

from cmargin._core.util._openmp import effective_n_threads
from cmargin._estimators.validation import InvalidParameterError
from cmargin.solvers.multinomial.newton import ABSENT, Settings, solve

TOL = 1e-4               # relative duality gap where ``tol`` is None


def refuse_penalty(estimator, loss, partial):
    """Raise where ``l2`` > 0 has nothing to mean."""
    if partial:
        raise InvalidParameterError("partial_fit takes no l2: a penalised optimum is one of all rows.")
    if loss != "multinomial":
        why = "an indicator or step_size='theory'"
        stands = f", which 'auto' is with {why}" if estimator.loss == "auto" else ""
        raise InvalidParameterError(
            f"l2={estimator.l2!r} needs loss='multinomial' and classes that exclude each other; got "
            f"loss={loss!r}{stands}. SmSVMClassifier(loss='logistic', l2=...) has the penalised logistic loss.")


def fit_optimum(estimator, home, codes, weight, about, begin, keeper):
    """Minimise the penalised multinomial objective.

    Parameters
    ----------
    estimator : SLNDClassifier
    home : Home
    codes : (n,) places in the classes
    weight : (n,) array of mean 1 or None
    about : dict of what is known of the classes
    begin : float, on the clock of `time.perf_counter`
    keeper : Keeper

    Returns
    -------
    The arguments of `LinearClassifier._finish`
    """
    n_classes = len(about["classes_"])
    settings = Settings(
        l2=float(estimator.l2) * (2 if n_classes == 2 else 1),           # `_a_row_each`
        tol=TOL if estimator.tol is None else float(estimator.tol),
        fit_intercept=bool(estimator.fit_intercept), n_threads=effective_n_threads(estimator.n_jobs),
        deadline=estimator._deadline(begin))
    start = _a_row_each(estimator.coef_.astype(float), estimator._last_intercept) if estimator._goes_on else None
    store = partial(_store, estimator, about=about)

    def line(last):
        return (f"step {estimator.n_iter_}: objective {last['objective']:.6g}, gap about {last['gap']:.2g}, "
                f"{last['seconds']:.2f} s")

    result, interruption = solve(home, codes, weight, n_classes, settings, start,
                                 estimator._watch(store, line), keeper)
    return result, interruption, store, partial(_shortfall, estimator, settings.tol)


def _a_row_each(W, bias):
    """Two classes have one row of weights, w, and in the solver two, -w/2 and w/2, of half its square."""
    return (W, bias) if len(W) > 1 else (np.concatenate([-W, W]) / 2, np.concatenate([-bias, bias]) / 2)


def _shortfall(estimator, tol, result):
    if result.stopped in ("tol", "callback"):
        return None
    reasons = {"max_time": f"max_time={estimator.max_time} s",
               "max_newton": f"{result.n_newton} Newton steps, the most that are made,"}
    reason = reasons.get(result.stopped, result.stopped)
    longer = " or max_time" if result.stopped == "max_time" else ""
    gap = f"a relative duality gap of {result.gap:.1e}" if np.isfinite(result.gap) else "no gap evaluated"
    weights = "; the weights are those of a ridge regression of all classes" if result.from_ridge else ""
    return (f"{type(estimator).__name__} stopped at {reason} with {gap} where tol={tol:g} was asked{weights}. Try a "
            f"larger tol{longer}, scaled features, or a larger l2.")


def _store(estimator, result, about):
    """Everything at once; objective and gap hold for these float64 weights.

    The softmax is the same for intercepts that are all larger by one number: of these the ones of mean 0 over the
    classes that there are rows of, as in LogisticRegression.
    """
    if len(result.W) == 2:
        coef, intercept = result.W[1:] - result.W[:1], result.bias[1:] - result.bias[:1]
    else:
        coef, intercept = result.W.copy(), result.bias - result.bias[result.bias > ABSENT].mean()
    vars(estimator).pop("eigenvalues_", None)            # of an earlier fit with l2=0
    vars(estimator).update(
        about, coef_=coef, intercept_=intercept, objective_=float(result.objective),
        duality_gap_=float(result.gap), n_iter_=int(result.n_newton), n_passes_=float(result.reads),
        history_={name: np.asarray(column) for name, column in result.history.items()},
        preconditioner_=None, rank_=0, step_size_=None, _asked_step=None, _columns=None, _recipe=None, _streams=None,
        _passes_total=0)
