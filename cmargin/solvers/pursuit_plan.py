"""Which stage of margin pursuit by Newton's method comes next, and why; see `cmargin.solvers.plan`.

    reduced    X' = QR of all problems: as many unknowns as there are rows
    probe      count the rows that have a weight
    subset     Newton steps on a tenth of the rows
    pursuit    Newton steps on all rows
"""

from cmargin.data.loss import HINGE
from cmargin.solvers import cost, prices
from cmargin.solvers.plan import Stage


def next_pursuit_stage(stats, problem, settings, outcomes):
    """The `Stage` that follows ``outcomes``, or None at the end; ``settings`` : PursuitSettings."""
    outcome_of = {outcome.what or outcome.kind: outcome for outcome in outcomes}
    if "pursuit" in outcome_of:
        return None
    if stats.here and prices.reducing_pays_off(stats) and "reduced" not in outcome_of:
        return Stage("reduced", f"there are {stats.n_rows:,} rows and {stats.n_features:,} columns")
    n_columns = min(problem.n_columns, stats.n_rows + 1) if "reduced" in outcome_of else problem.n_columns
    factor = n_columns <= cost.PURSUIT_FACTOR_UP_TO_COLUMNS
    grows = factor and not settings.one_shot and not problem.warm \
        and (stats.in_memory or not stats.reads_are_shared or problem.n_problems == 1) \
        and prices.subset_is_large(stats.n_rows, n_columns, HINGE)
    if grows:
        if "class_sizes" not in outcome_of:
            return Stage("probe", "rows of weight 0 are no part of a subset", what="class_sizes")
        if "subset" not in outcome_of and prices.subset_is_large(sum(outcome_of["class_sizes"].numbers), n_columns,
                                                                 HINGE):
            return Stage("subset", f"a tenth of {stats.n_rows:,} rows settles most of {n_columns:,} unknowns")
    by = f"a Cholesky factor of {n_columns:,} unknowns" if factor else "conjugate gradients"
    return Stage("pursuit", f"the cheapest way to a step is by {by}",
                 start="last" if "subset" in outcome_of else "warm" if problem.warm else "zero")
