"""ReHLine, which certifies as well: a dual solver that stops by its own duality gap.

It minimises |w|^2/2 + C sum of losses, or (1 - r) |w|^2/2 + r |w|_1 + C sum of losses, r < 1. Its tolerance is for the
difference of its primal and dual objectives over the larger of them, or over 1 where both are smaller, so that with C
near 0 it is no relative one. `dual_gap_` is the difference itself. The gap told here is over the objective.
"""

from importlib import import_module

from race.peer import Run

NAMES = {"hinge": "svm", "squared_hinge": "squared svm"}
MOST = 10**6                   # iterations: a tolerance ends it


def rehline(problem, effort, threads, most):
    """Tolerances 0.3, 0.1, 0.033, ...; one thread, float64."""
    package, tol = import_module("rehline"), 0.3 / effort
    given = dict(loss={"name": NAMES[problem.loss]}, C=problem.C, tol=tol, max_iter=MOST)
    if problem.l1:
        model = package.plqERM_ElasticNet(l1_ratio=problem.l1_ratio, **given)
    else:
        model = package.plqERM_Ridge(**given)
    model.fit(problem.X, problem.y)
    return Run(model.coef_, f"tol={tol:.0e}", float(model.n_iter_), model.dual_gap_ / model.objective_)
