"""Which stage of SLND on the multinomial risk comes next, and why; see `cmargin.solvers.plan`.

    passes     stochastic passes, judged on rows held out where there are any
    optimum    the penalised optimum of all rows, with no pass before it
    path       penalised optima of all rows, for strengths that rows left out judge, beside what the passes have reached
    refit      passes over all rows, as many as were best
"""

from dataclasses import dataclass

from cmargin.solvers import cost
from cmargin.solvers.plan import Outcome, Stage


@dataclass(frozen=True)
class SoftmaxStats:
    """What is known of a fit once the inverse of its second moment is made."""

    n_rows: int
    n_classes: int
    width: int                 # numbers of a whitened row
    has_tail: bool             # directions outside the basis are scaled, too: whitened rows are not all there is
    n_held: int                # rows held out, to judge the passes
    chooses: bool              # how many passes are best may be found out
    warm: bool = False         # weights to begin with are given
    has_few: bool = True       # all rows are in the memory of the driver where they are few,
    has_all: bool = True       # and where they are many


def softmax_is_cheap(stats, n_classes):
    """Whether loss="auto" is multinomial for more than `MULTINOMIAL_CLASSES` classes."""
    return n_classes * stats.entries <= cost.MULTINOMIAL_MULTIPLY_ADDS and \
        n_classes * stats.n_features <= cost.MULTINOMIAL_WEIGHTS


def next_softmax_stage(problem, outcomes):
    """The `Stage` that follows ``outcomes``, or None at the end; of passes, an outcome tells the rows held out."""
    told = {outcome.kind: outcome for outcome in outcomes}
    if not told:
        if optimum_will_do(problem):
            return Stage("optimum", f"{problem.n_rows:,} rows are too few to hold any out for passes")
        held = f"judged on {problem.n_held:,} rows held out" if problem.n_held else "as many as are allowed"
        return Stage("passes", f"they are {held}")
    if "optimum" in told or "refit" in told or told["passes"].status == "stopped":
        return None
    if "path" not in told and path_is_cheap(problem):
        return Stage("path", "products with all whitened rows are cheap", "the weights of the passes are kept")
    n_held, = told["passes"].numbers
    if ("path" not in told or told["path"].status == "left") and n_held > cost.REFIT_FROM_HELD_SHARE * problem.n_rows:
        return Stage("refit", f"{n_held:,} rows were held out, and are to be learnt from, too")
    return None


def softmax_plan(problem):
    """The stages of a fit that goes as expected: passes come to their end, and a path that is tried is taken."""
    stages, outcomes = [], []
    while (stage := next_softmax_stage(problem, outcomes)) is not None:
        stages.append(stage)
        outcomes.append(Outcome(stage.kind, numbers=(problem.n_held,)))
    return stages


def path_is_cheap(problem):
    """Whether a path over all rows is cheap, whitened rows are all there is of them, and they are more than columns.

    With fewer, passes that stop early are as good (lab notebook, multinomial).
    """
    return problem.has_all and not problem.has_tail and problem.n_rows > problem.width \
        and 4.0 * problem.n_rows * problem.width * problem.n_classes <= cost.PATH_FLOPS


def optimum_will_do(problem):
    """Whether all rows can end at an optimum with no pass before it, whose strength fewer columns need rows for."""
    if not problem.chooses or problem.n_held or problem.warm:
        return False
    known = problem.n_rows <= problem.width or problem.n_rows >= cost.OPTIMUM_FROM_ROWS
    width = max(cost.OPTIMUM_COLUMNS, problem.width)
    return known and problem.has_few and not problem.has_tail \
        and 4.0 * problem.n_rows * width * problem.n_classes <= cost.OPTIMUM_FLOPS
