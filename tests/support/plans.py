"""What the plan of a SmSVM fit says of rows that are given, and its stages without an estimator."""

import numpy as np

from cmargin.data import open_rows
from cmargin.data.loss import Loss
from cmargin.solvers import plan
from cmargin.solvers.newton.stages import Shared, Stages
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.problem import Problem, Settings
from cmargin.solvers.result import Result


def shared_of(source, problem, intercept=True, n_problems=1):
    about = plan.ProblemStats(problem.loss, problem.penalty, source.n_features + intercept, n_problems)
    return Shared(source, problem, about, None, intercept)


def problem_of(l2=0.0, l1=0.0, **rest):
    return Problem(ElasticNet(l2, l1), **rest)


def begins_with_dual(X, l2, *, l1=0.0, loss="hinge", **chosen):
    """Whether the dual is tried before Newton's method; of a smooth loss, whether it may be."""
    shared, settings = shared_of(open_rows(X), Problem(ElasticNet(l2, l1), X.shape[1], Loss(loss))), Settings(**chosen)
    plan.refuse(shared.about, settings, shared.stats)
    shared.learn(settings)
    return bool(plan.dual_is_tried(shared.stats, shared.about, settings,
                                   {outcome_of.what: outcome_of for outcome_of in shared.known}))


def foreseen(X, signed_weight, l2, loss="squared_hinge"):
    """Reads after which the dual of a smooth loss is known not to cost less; 0: it is not tried."""
    shared = shared_of(open_rows(X), Problem(ElasticNet(l2), X.shape[1], Loss(loss)))
    stages, outcome_of = Stages(shared, signed_weight, Settings(), Result(), 0), {}
    while isinstance(asked := plan.reads_foreseen(shared.stats, outcome_of), plan.Stage):
        outcome_of[asked.what] = stages.probe(asked)
    return asked


def drivers_of(source, rows, problem, settings, seed):
    """Yield the drivers of one problem on rows that are given."""
    shared = shared_of(source, problem, rows.n_columns > rows.n_features)
    result = Result(np.zeros(rows.n_columns))
    return Stages(shared, None, settings, result, seed, rows=rows).drivers()
