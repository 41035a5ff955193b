"""Parts of a fit of `SLNDClassifier` and its like: loss, rows elsewhere, the penalised optimum, how it ended."""

from copy import copy
from functools import partial

import numpy as np

from cmargin._core.util._openmp import effective_n_threads
from cmargin._estimators.progress import say
from cmargin._estimators.smsvm_fit import l1_over_l2
from cmargin._estimators.validation import NOT_NEGATIVE, InvalidParameterError, check_parameter
from cmargin.data.memory.shared_start import sample_rows
from cmargin.solvers import cost
from cmargin.solvers.multinomial.by_columns import ColumnRun
from cmargin.solvers.multinomial.newton import ABSENT, Run, Settings, solve
from cmargin.solvers.sgd.class_lists import ClassShares
from cmargin.solvers.sgd.multinomial import MultinomialRun
from cmargin.solvers.sgd.remote_run import ClassesOverFiles, MultinomialOnDevice, MultinomialOverFiles
from cmargin.solvers.sgd.run import ClassesOverShards, MultinomialOverShards
from cmargin.solvers.sgd.shard_shares import ShardCounts, ShardShares
from cmargin.solvers.slnd_plan import softmax_is_cheap

STOPS = ("max_time", "interrupted")                      # before a first pass, or Newton step, had ended
TOL = 1e-4               # relative duality gap where ``tol`` is None
ONE_CLASS = "The rows of positive weight are of only one class; at least 2 classes are needed."


def automatic_loss(estimator, classes, codes, source, before):
    """"multinomial" or "logistic"; a line where ``verbose`` asks for it if only the cost speaks against the former.

    ``codes`` None: labels do not exclude each other. ``source`` None: weights were set by hand, or a batch has no rows
    that count; then the cost is none. ``before``: loss of the fit to go on from, which other rows do not change.
    """
    penalised = is_penalised(estimator)
    n, fewest = len(classes), 2 if penalised else 3          # to an optimum, two are as many
    if codes is None or n < fewest or estimator.step_size == "theory":
        return "logistic"
    if source is None:
        return "multinomial"
    cheap = softmax_is_cheap(source, n)
    if n <= cost.MULTINOMIAL_CLASSES or penalised or (cheap if before is None else before == "multinomial"):
        return "multinomial"
    say(estimator, f"loss='logistic', one-vs-rest: a softmax of {n} classes costs {n * source.entries:.2g} "
                   "multiply-adds for all rows; loss='multinomial' pays them")
    return "logistic"


# ---------------------------------------------------------------- rows that are not here

def run_by_batches(estimator, source, run, loss, Y):
    """What makes the run on rows in files or on a device, where ``run`` does in memory; ``Y``: the positives."""
    if getattr(run, "func", None) is MultinomialRun:
        return partial(MultinomialOverFiles if source.shares_reads else MultinomialOnDevice, **run.keywords)
    if run is None and source.shares_reads and estimator.step_size != "theory":
        return partial(ClassesOverFiles, Y=Y)
    what = "step_size='theory'" if estimator.step_size == "theory" else f"loss={loss!r}"
    source.refuse(f"{type(estimator).__name__} with {what}, which reads one row at a time,")


def run_over_places(estimator, source, loss, positive):
    """Shares of the classes, whose positives weigh ``positive`` in all places, and what makes the run."""
    agreed = source.agreed
    if loss == "multinomial":
        return ClassShares(positive, agreed.n_rows), partial(MultinomialOverShards, n_classes=len(agreed.classes))
    negatives = estimator.negatives_per_positive
    shares = ShardShares(ShardCounts(source), positive, agreed.n_rows, negatives)
    return shares, partial(ClassesOverShards, negatives_per_positive=negatives)


# ---------------------------------------------------------------- a fit that failed, or ended before its end

def not_invertible(estimator, error, rows, about):
    """Whose second moment cannot be inverted, and what to do about it."""
    advice = f"Scale the features (the largest entry is {rows.source.largest():.2g}), for instance by StandardScaler"
    name = type(estimator).__name__
    if error.n_groups == 1:
        return f"{name}: the second moment of the rows holds NaN or infinity and cannot be inverted. {advice}."
    label = about["classes_"].tolist()[error.group]
    whose = f"label column {label}" if about["_multilabel"] else f"class {label!r}"
    return (f"{name}: the second moment of the rows at the weights of {whose} holds NaN or infinity and cannot be "
            f"inverted anew. {advice}, lower step_size, or leave out hessian_refresh.")


def shortfall(estimator, of_columns, fit):
    """How far the fit got and what to try, and what is said ``of_columns``; None where it went to its end."""
    risks, text = fit.history["objective"], None
    if fit.diverged.any():
        text = (f"{int(fit.diverged.sum())} of {len(fit.diverged)} classes overflowed in the last pass and keep their "
                "weights from before it; scale the features or give a smaller step_size.")
    elif len(risks) and not np.isfinite(risks[-1]):
        text = "the risk is beyond the range of numbers; scale the features or give a smaller step_size."
    elif fit.stopped == "max_time" and fit.from_ridge:
        text = (f"stopped by max_time={estimator.max_time} before the first pass had ended; the weights are those of a "
                "ridge regression of all classes, from a sample of the rows. Raise max_time to train.")
    elif fit.stopped == "max_time":
        text = (f"stopped by max_time={estimator.max_time} after {fit.passes} passes of {estimator.max_passes}; the "
                "weights reached are kept. Raise max_time to train longer.")
    elif estimator.tol is not None and fit.stopped == "max_passes" and fit.passes > 1:
        text = (f"after {fit.passes} passes the risk still fell by {risks[-2] - risks[-1]:.2g} in the last one "
                f"(tol={estimator.tol}); raise max_passes.")
    said = [sentence for sentence in (text, of_columns) if sentence is not None]
    return f"{type(estimator).__name__}: {' Also: '.join(said)}" if said else None


def ridge_if_better(estimator, fit, store, source, Y, weight, units):
    """Give ``fit`` the weights of one ridge regression of all labels, where they are right about more rows of a sample.

    Y (n_rows, n_problems) is the sparse indicator of the labels; ``store`` sets what the estimator predicts with.
    ``units``, an `InUnits`, has the rows that the weights of ``fit`` are of. Weights may be 0 still: with hundreds of
    classes preparations alone take a second.
    """
    if fit.stopped not in STOPS or (any(fit.history.values()) and np.any(fit.W)) or not source.in_memory:
        return
    W, bias = units.source.score_blocks(Y, weight, 1).ridge_start(estimator.fit_intercept, 0.0)
    if len(W) < len(fit.W):                      # of two classes an optimum has a row of weights each
        W, bias = np.concatenate([-W, W]) / 2, np.concatenate([-bias, bias]) / 2
    rows = sample_rows(source, np.arange(source.n_rows), Y.shape[1])
    sample = source.take(rows, source.dtype), Y[rows].toarray() > 0, None if weight is None else weight[rows]
    store(fit)
    before, reached = right(estimator, *sample), (fit.W, fit.bias)
    if estimator.loss_ == "logistic":
        # the ridge regression's labels are of all rows
        bias = bias - estimator._prior_correction() * estimator.fit_intercept
    fit.W, fit.bias, fit.from_ridge = W.astype(source.dtype), bias, True
    store(fit)
    if not right(estimator, *sample) > before:
        (fit.W, fit.bias), fit.from_ridge = reached, False
    elif hasattr(fit, "gap"):
        fit.objective = fit.gap = np.inf         # those of other weights


def right(estimator, X, truth, weight):
    """Weighted share of labels (n, n_problems) that the estimator is right about."""
    scores = np.asarray(estimator.decision_function(X))
    if truth.shape[1] == 1 or estimator._multilabel:
        found = ((scores.reshape(truth.shape) > 0) == truth).mean(axis=1)
    else:
        found = truth[np.arange(len(truth)), scores.argmax(axis=1)]
    return np.average(found, weights=weight)


# ---------------------------------------------------------------- the penalised multinomial optimum, certified

def check_penalty(estimator):
    """Raise unless ``l2``, ``l1``, ``l1_ratio`` and ``groups`` are what they must be."""
    check_parameter(estimator, "l2", estimator.l2, real=NOT_NEGATIVE)
    check_parameter(estimator, "l1", estimator.l1, real=NOT_NEGATIVE)
    check_parameter(estimator, "groups", estimator.groups, options=("classes",), none=True)
    ratio = estimator.l1_ratio
    check_parameter(estimator, "l1_ratio", ratio, real=(NOT_NEGATIVE[0], 1.0, "[0.0, 1.0]"), none=True)
    if ratio is not None and estimator.l1 > 0:
        raise InvalidParameterError(f"Give l1 or l1_ratio, not both; got l1={estimator.l1!r} and l1_ratio={ratio!r}.")
    if ratio and not (ratio < 1 and estimator.l2 > 0):
        raise InvalidParameterError(f"l1_ratio={ratio!r} says which l1 goes with an l2 above 0, and l1_ratio=1 that "
                                    f"there is none; got l2={estimator.l2!r}. Give l1 and l2.")


def penalties_of(estimator):
    """(l2, l1) of the optimum that the estimator goes to; 0 where it goes to none."""
    if not estimator._penalised:
        return 0.0, 0.0
    l2, ratio = float(estimator.l2), estimator.l1_ratio
    return l2, float(estimator.l1) if ratio is None else l2 * l1_over_l2(ratio)


def is_penalised(estimator):
    return any(penalties_of(estimator))


def named_penalty(estimator):
    """What says so, for a sentence: "l2=0.1"."""
    return f"l2={estimator.l2!r}" if estimator.l2 > 0 else f"l1={estimator.l1!r}"


def refuse_l1(estimator, what):
    """Raise where there is an l1, of which ``what`` is no part."""
    if penalties_of(estimator)[1] > 0:
        raise InvalidParameterError(f"{what} needs l1=0 and no l1_ratio: what fits prove of other penalties is of l2 "
                                    "alone. Fit SLNDClassifier with warm_start=True at one penalty after the other.")


def refuse_l1_over_places(estimator, how):
    """Raise for the multinomial form's l1 and rows in several places; ``how``: "with comm=", say."""
    if is_penalised(estimator) and penalties_of(estimator)[1] > 0:
        raise ValueError(f"{type(estimator).__name__}: l1 > 0 does not go {how} yet; use l1=0, or SmSVMClassifier.")


def refuse_penalty(estimator, loss, partial):
    """Raise where ``l2`` or ``l1`` above 0 has nothing to mean."""
    if partial:
        raise InvalidParameterError("partial_fit takes no l2 and no l1: a penalised optimum is one of all rows.")
    if loss != "multinomial":
        why = "an indicator or step_size='theory'"
        stands = f", which 'auto' is with {why}" if estimator.loss == "auto" else ""
        raise InvalidParameterError(
            f"{named_penalty(estimator)} needs loss='multinomial' and classes that exclude each other; got "
            f"loss={loss!r}{stands}. SmSVMClassifier(loss='logistic', l2=...) has the penalised logistic loss.")


def refuse_one_class(codes, weight):
    """Raise where no row weighs anything but those of one class; ``codes``: (n,) places, ``weight`` (n,) or None."""
    if weight is not None and np.count_nonzero(np.bincount(codes, weight) > 0) < 2:
        raise ValueError(ONE_CLASS)


def fit_optimum(estimator, source, codes, weight, about, begin, checkpointer):
    """Minimise the penalised multinomial objective; the arguments of `LinearClassifier._leave`.

    ``codes``: (n,) places in the classes; ``weight``: (n,) of mean 1 or None; ``about``: what is known of the classes.
    """
    n_classes = len(about["classes_"])
    l2, l1 = penalties_of(estimator)
    if l1 > 0 and not source.in_memory:
        source.refuse("l1 of the multinomial form")
    settings = optimum_settings(estimator, l2, n_classes, estimator._deadline(begin), l1)
    start = _a_row_each(estimator.coef_.astype(float), estimator._last_intercept) if estimator._goes_on else None
    store = partial(_store, estimator, about=about)

    def line(last):
        return (f"step {estimator.n_iter_}: objective {last['objective']:.6g}, gap about {last['gap']:.2g}, "
                f"{last['seconds']:.2f} s")

    result, interruption = solve(source, codes, weight, n_classes, settings, start,
                                 estimator._watch(store, line), checkpointer, ColumnRun if l1 > 0 else Run)
    return result, interruption, store, partial(_shortfall, estimator, settings.tol)


def optimum_settings(estimator, l2, n_classes, deadline, l1=0.0):
    """`Settings` of the estimator at another l2."""
    grouped = l1 > 0 and estimator.groups is not None
    return Settings(
        l1=l1 * (2**0.5 if n_classes == 2 and grouped else 1), grouped=grouped,
        l2=l2 * (2 if n_classes == 2 else 1),                            # `_a_row_each`
        tol=TOL if estimator.tol is None else float(estimator.tol),
        fit_intercept=bool(estimator.fit_intercept), n_threads=effective_n_threads(estimator.n_jobs), deadline=deadline)


def weights_of(W, bias):
    """``coef_`` and ``intercept_`` of a point of the solver.

    The softmax is the same for intercepts that are all larger by one number: of these the ones of mean 0 over the
    classes that there are rows of, as in LogisticRegression.
    """
    if len(W) == 2:
        return W[1:] - W[:1], bias[1:] - bias[:1]
    return W.copy(), bias - bias[bias > ABSENT].mean()


def a_fit(estimator, W, bias, classes):
    """A copy of the estimator that predicts by a point of the solver, and is otherwise as after a fit."""
    model, share = copy(estimator), np.full(len(classes) if len(classes) > 2 else 1, 1 / len(classes))
    coef, intercept = weights_of(W, bias)
    vars(model).update(coef_=coef, intercept_=intercept, classes_=classes, loss_="multinomial", _multilabel=False,
                       n_features_in_=W.shape[1], class_prior_=share, sampled_prior_=share, _columns=None)
    return model


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
            f"larger tol{longer}, scaled features, or a larger {'l2' if estimator.l2 > 0 else 'l1'}.")


def _store(estimator, result, about):
    """Everything at once; objective and gap hold for these float64 weights."""
    coef, intercept = weights_of(result.W, result.bias)
    vars(estimator).pop("eigenvalues_", None)            # of an earlier fit with l2=0
    vars(estimator).update(
        about, coef_=coef, intercept_=intercept, objective_=float(result.objective),
        duality_gap_=float(result.gap), n_iter_=int(result.n_newton), n_passes_=float(result.reads),
        history_={name: np.asarray(column) for name, column in result.history.items()},
        preconditioner_=None, rank_=0, step_size_=None, _asked_step=None, _columns=None, _recipe=None, _streams=None,
        _passes_total=0)
