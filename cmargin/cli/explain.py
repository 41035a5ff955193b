"""``cmargin explain``: the stages that a fit would go through, and why."""

from dataclasses import replace

import numpy as np

from cmargin._estimators.joint_fit import JOINT_OF_TWO, OF_INDICATOR
from cmargin._estimators.pruned import training_tol
from cmargin._estimators.share_kept import said_of_pruning
from cmargin._estimators.slnd_fit import penalties_of
from cmargin._estimators.smsvm_fit import penalty_of, settings_of
from cmargin._estimators.validation import InvalidParameterError
from cmargin.cli import estimators
from cmargin.cli.data import read
from cmargin.cli.options import REGRESSORS
from cmargin.cli.targets import in_words
from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.data.stats import DataStats
from cmargin.solvers import cost
from cmargin.solvers.explain import STAGES, description, explanation, sentence
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.plan import ProblemStats, Stage, refuse
from cmargin.solvers.pursuit_plan import next_pursuit_stage
from cmargin.solvers.slnd_plan import SoftmaxStats, TrialStats, softmax_is_cheap, softmax_plan, trial_plan


def run(options):
    """Print a line that says what the rows are, and one for every stage; return the exit status."""
    estimator = estimators.make(options.method, options.set, max_time=None, seed=0, threads=None)
    estimator._check_parameters()
    stats, n_classes, exclude = _of_file(options) if options.data is not None else (*_of_shape(options), True)
    joint = getattr(estimator, "_is_joint", False)
    if not exclude and joint:
        raise InvalidParameterError(OF_INDICATOR)
    n_problems = 1 if n_classes == 2 and exclude else n_classes
    if options.method in REGRESSORS:
        losses = estimator._losses()
        problem = ProblemStats(losses[0].in_units(1.0), ElasticNet(), stats.n_features + estimator.fit_intercept,
                               len(losses) * (1 if exclude else n_classes))
        lines = _smsvm(estimator, stats, problem, False, in_words(problem.n_problems))
    elif options.method == "slnd":
        lines = _slnd(estimator, stats, n_classes, exclude)
    else:
        pursues = options.method == "pursuit"
        problem = ProblemStats(Loss("margin_pursuit") if pursues else estimator._loss(), ElasticNet(),
                               stats.n_features + bool(estimator.fit_intercept), n_problems)
        lines = _pursuit(estimator, stats, problem) if pursues else _smsvm(estimator, stats, problem, joint)
    for line in lines:
        print(line)
    return 0


def _smsvm(estimator, stats, problem, joint, counted=None):
    penalty = penalty_of(estimator, stats.n_rows, stats.n_features)
    if joint and problem.n_problems > 1:
        yield description(stats, replace(problem, penalty=penalty), f"{problem.n_problems} classes together")
        yield "1. Sweeps over the dual variables of the joint hinge, all classes of a row at once."
        return
    if joint:
        penalty = replace(penalty, l2=JOINT_OF_TWO * penalty.l2)
    problem = replace(problem, penalty=penalty, may_share=True)
    settings = replace(settings_of(estimator), tol=training_tol(estimator))
    refuse(problem, settings, stats)
    yield description(stats, problem, counted)
    yield from explanation(stats, problem, settings)
    yield from said_of_pruning(estimator)


def _pursuit(estimator, stats, problem):
    l2 = np.nan if estimator.l2 == "auto" else float(estimator.l2)
    yield description(stats, replace(problem, penalty=ElasticNet(l2)))
    if estimator.solver == "newton":
        yield from explanation(stats, problem, estimator._settings(None), following=next_pursuit_stage)
    else:
        kind = "Gradient descent on all rows" if estimator.solver == "gd" else "Projected steps on one row at a time"
        yield f"1. {kind}, as solver={estimator.solver!r} says so."


def _slnd(estimator, stats, n_classes, exclude):
    loss, (l2, l1) = estimator.loss, penalties_of(estimator)
    if loss == "auto":
        many = n_classes > cost.MULTINOMIAL_CLASSES and not softmax_is_cheap(stats, n_classes)
        fewest, many = (2, False) if l2 + l1 else (3, many)
        loss = "logistic" if n_classes < fewest or many or not exclude else "multinomial"
    problem = ProblemStats(Loss(loss), ElasticNet(l2, l1), stats.n_features,
                           1 if n_classes == 2 and exclude else n_classes)
    yield description(stats, problem, f"{n_classes} classes together" if loss == "multinomial" else None)
    if l1:
        yield f"1. {STAGES['columns']}, as l1 is above 0."
    elif l2:
        yield f"1. {STAGES['optimum']}, as l2 is above 0."
    else:
        together = loss == "multinomial"
        then = softmax_plan(_softmax_stats(estimator, stats, n_classes)) if together else \
            [Stage("passes", f"loss={loss!r} is fitted one class against the rest")]
        for number, stage in enumerate([*trial_plan(_trial_stats(estimator, stats, together)), *then], 1):
            yield f"{number}. {sentence(stage)}"


def _n_held(stats):
    """Return how many rows multinomial fits hold out."""
    n_held = int(min(cost.HELD_SHARE * stats.n_rows, cost.HELD_MOST))
    return n_held if n_held >= cost.HELD_LEAST else 0


def _trial_stats(estimator, stats, together):
    """Return the `TrialStats` of columns of like scale, and of classes that have rows to spare."""
    step = None if estimator.step_size == "auto" else estimator.step_size
    judged = _n_held(stats) > 0 if together else step is None
    rank = None if estimator.rank == "auto" else estimator.rank
    return TrialStats(together, judged, rank, together and rank is None and estimator.tail == "scale", True,
                      stats.sparse, step)


def _softmax_stats(estimator, stats, n_classes):
    """Return the `SoftmaxStats` of classes that are alike, for a rank of 1 where it is chosen by the rows."""
    scaled, rank = estimator.tail == "scale", 1 if estimator.rank == "auto" else estimator.rank
    chooses = estimator.step_size == "auto" and estimator.max_passes >= cost.CHOSEN_PASSES_FROM
    return SoftmaxStats(stats.n_rows, n_classes, stats.n_features if scaled and not stats.sparse else rank,
                        scaled and stats.sparse, _n_held(stats) if chooses else 0, chooses, has_all=stats.here,
                        steady=not estimator.hessian_refresh)


def _of_shape(options):
    """Return the `DataStats` that the options say, and the number of classes."""
    if options.rows is None or options.columns is None:
        raise InvalidParameterError("explain needs DATA, or --rows and --columns.")
    entries = options.rows * options.columns
    sparse = options.density is not None
    return DataStats(options.rows, options.columns, max(1, round(entries * options.density)) if sparse else entries,
                     np.dtype(options.dtype).itemsize, sparse, options.place, options.place in ("files", "workers"),
                     True), options.classes


def _of_file(options):
    """Return what the rows of a file say of themselves, the number of classes of its labels, and whether these exclude
    each other."""
    table = read(options.data, options)
    stats, exclude = open_rows(table.X).describe(), table.y is None or np.ndim(table.y) == 1
    if table.y is None:
        return stats, options.classes, exclude
    return stats, len(np.unique(table.y)) if exclude else table.y.shape[1], exclude
