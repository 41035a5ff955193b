"""Which stage of SLND comes next, and why; see `cmargin.solvers.plan`.

Before the passes (`next_trial`), each a probe whose outcome is "taken" or "left":

    rank           passes over some rows with an inverse of this rank, judged on rows held out
    longer_step    the same with a step twice as long as the best so far
    shorter_step   the same with half of it

On the multinomial risk (`next_softmax_stage`):

    passes     stochastic passes, judged on rows held out where there are any
    optimum    the penalised optimum of all rows, with no pass before it
    path       penalised optima of all rows, for strengths that rows left out judge, beside what the passes have reached
    refit      passes over all rows, as many as were best
    again      passes over all rows in another order, for the mean of both
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
    steady: bool = True        # whitened rows are the same in every pass


@dataclass(frozen=True)
class TrialStats:
    """What is known of a fit when its rank and step are to be chosen."""

    together: bool             # the risk is multinomial; else each class is learnt against the rest
    judged: bool               # rows are held out that judge trials
    rank: int | None = None    # asked for, or that of the knee of the spectrum; None: not known yet
    rank_is_open: bool = False # "auto", and the tail is scaled
    low_will_do: bool = False  # no direction but the first `LOW_RANK` holds more than half of what these leave
    sparse: bool = False
    step: float | None = None  # asked for, or of the fit that goes on; None: to be chosen


def ranks_to_try(problem):
    """The ranks in the order of preference: the first is taken where none can be tried, or no other is surely better.

    With none held out 1 is better for dense rows, the knee for CSR rows (doc/methods/slnd.md).
    """
    open_ = problem.rank_is_open and (problem.judged or not problem.sparse)
    if not open_ or (problem.rank is not None and problem.rank <= cost.LOW_RANK):
        return (problem.rank,)
    return (cost.LOW_RANK, problem.rank) if problem.low_will_do else (problem.rank, cost.LOW_RANK)


def next_trial(problem, outcomes):
    """The `Stage` of another trial after those of ``outcomes``, or None once rank and step are chosen.

    From the first relative step, the step is doubled while that is taken, then halved while that is.
    """
    ranks = ranks_to_try(problem)
    if not problem.judged or (problem.step is not None and len(ranks) == 1):
        return None
    first = cost.MULTINOMIAL_FIRST_STEP if problem.together else cost.CLASS_STEP
    n_ranks = sum(outcome.what == "rank" for outcome in outcomes)
    if n_ranks < len(ranks):
        why = "another one is taken only where rows held out surely have less loss" if n_ranks else \
            "rows held out judge what else is tried beside it"
        return Stage("probe", why, what="rank", rank=ranks[n_ranks], step=problem.step or first)
    if problem.step is not None:
        return None
    (rank, step), last = chosen_by_trials(problem, outcomes), outcomes[-1]
    least, largest = cost.MULTINOMIAL_STEP_LIMITS if problem.together else cost.CLASS_STEP_LIMITS
    if (last.what == "rank" or (last.what == "longer_step" and last.status == "taken")) and step < largest:
        why = "a step is doubled while rows held out have less loss"
        return Stage("probe", why, what="longer_step", rank=rank, step=2 * step)
    if (last.what != "shorter_step" or last.status == "taken") and step > least:
        why = "of steps that rows held out cannot tell apart the shortest ranks classes best"
        return Stage("probe", why, what="shorter_step", rank=rank, step=step / 2)
    return None


def chosen_by_trials(problem, outcomes):
    """(rank, relative step) of the last trial that was taken; where there was none, what does without."""
    taken = [outcome.numbers for outcome in outcomes if outcome.status == "taken"]
    step = cost.MULTINOMIAL_STEP if problem.together else cost.CLASS_STEP
    return taken[-1] if taken else (ranks_to_try(problem)[0], step if problem.step is None else problem.step)


def trial_plan(problem):
    """The trials of a fit that goes as expected: the first rank and step are best."""
    stages, outcomes = [], []
    while (stage := next_trial(problem, outcomes)) is not None:
        outcomes.append(Outcome("probe", "left" if stages else "taken", stage.what, numbers=(stage.rank, stage.step)))
        stages.append(stage)
    return stages


def softmax_is_cheap(stats, n_classes):
    """Whether loss="auto" is multinomial for more than `MULTINOMIAL_CLASSES` classes."""
    return n_classes * stats.entries <= cost.MULTINOMIAL_MULTIPLY_ADDS and \
        n_classes * stats.n_features <= cost.MULTINOMIAL_WEIGHTS


def next_softmax_stage(problem, outcomes):
    """The `Stage` that follows ``outcomes``, or None at the end; of passes, an outcome tells the rows held out."""
    outcome_of = {outcome.kind: outcome for outcome in outcomes}
    if not outcome_of:
        if optimum_will_do(problem):
            return Stage("optimum", f"{problem.n_rows:,} rows are too few to hold any out for passes")
        held = f"judged on {problem.n_held:,} rows held out" if problem.n_held else "as many as are allowed"
        return Stage("passes", f"they are {held}")
    if "refit" in outcome_of and "again" not in outcome_of and problem.has_tail and problem.has_all and problem.steady:
        return Stage("again", "the mean of two runs over CSR rows errs less often than either")
    if "optimum" in outcome_of or "refit" in outcome_of or outcome_of["passes"].status == "stopped":
        return None
    if "path" not in outcome_of and path_will_do(problem):
        return Stage("path", "products with all whitened rows are not too dear", "the weights of the passes are kept")
    n_held, = outcome_of["passes"].numbers
    if ("path" not in outcome_of or outcome_of["path"].status == "left") \
            and n_held > cost.REFIT_FROM_HELD_SHARE * problem.n_rows:
        return Stage("refit", f"{n_held:,} rows were held out, and are to be learnt from, too")
    return None


def softmax_plan(problem):
    """The stages of a fit that goes as expected: passes come to their end, and a path that is tried is taken."""
    stages, outcomes = [], []
    while (stage := next_softmax_stage(problem, outcomes)) is not None:
        stages.append(stage)
        outcomes.append(Outcome(stage.kind, numbers=(problem.n_held,)))
    return stages


def path_will_do(problem):
    """Whether a path over all rows follows: whitened rows are all there is of them, and a product with all classes is
    cheap, or not too dear where rows are so few that all of a fifth are held out.

    With more rows passes do as well (lab notebook, multinomial).
    """
    flops = 4.0 * problem.n_rows * problem.width * problem.n_classes
    cheap, dear = cost.PATH_FLOPS
    few = problem.n_rows * cost.HELD_SHARE < cost.HELD_MOST
    return problem.has_all and not problem.has_tail and flops <= (dear if few else cheap)


def optimum_will_do(problem):
    """Whether all rows can end at an optimum with no pass before it, whose strength fewer columns need rows for."""
    if not problem.chooses or problem.n_held or problem.warm:
        return False
    known = problem.n_rows <= problem.width or problem.n_rows >= cost.OPTIMUM_FROM_ROWS
    width = max(cost.OPTIMUM_COLUMNS, problem.width)
    return known and problem.has_few and not problem.has_tail \
        and 4.0 * problem.n_rows * width * problem.n_classes <= cost.OPTIMUM_FLOPS
