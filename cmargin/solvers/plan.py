"""Which stage of a SmSVM fit comes next, and why: a pure function of what is known, and its unrolling.

`next_stage` sees numbers alone: `DataStats` of the rows, `ProblemStats` of one binary problem, what the user chose, and
the outcomes of the stages before. Nothing is read for it. Where a choice needs a number that only rows can tell, the
stage is a "probe", and the number arrives as its outcome. The numbers by which it chooses are in
`cmargin.solvers.cost`; `cmargin.solvers.newton.stages` does what it says.

    together   conjugate gradients of many problems side by side
    gram       the dual of many problems by the Gram matrix of their rows
    listed     the same by products of the rows that a problem lists
    probe      measure a number of the rows
    dual       sweeps of the dual, perhaps given up
    products   Newton steps by conjugate gradients, perhaps given up
    reduced    Newton steps in as many unknowns as there are rows
    subset     Newton steps on a tenth of the rows
    newton     Newton steps on all rows
    published  the published Algorithms 1 to 4
    certify    objective and bound evaluated anew on the rows as they are
"""

from dataclasses import dataclass

import numpy as np

from cmargin._core.lanes._lane_batch import LANE_COUNT
from cmargin.data.loss import HINGE, TWO_KINKS, Loss
from cmargin.data.memory.dual_rows import DENSE
from cmargin.solvers import cost, prices
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.prices import BY_DUAL, Sampled


@dataclass(frozen=True)
class ProblemStats:
    """What is known of one binary problem besides the rows; all problems of a fit are alike in it."""

    loss: Loss
    penalty: ElasticNet
    n_columns: int             # features, and the intercept's column
    n_problems: int = 1        # of the fit
    warm: bool = False         # weights to begin with are given
    has_dual: bool = True      # False: the sweeps of the dual do not know it, nor does the working set: rows have
    # offsets, or dual variables a fixed sum
    may_share: bool = False    # whoever fits would have all problems solved side by side
    fixed_sum: bool = False    # of one class, for whose dual variables there are sweeps of their own


@dataclass(frozen=True)
class Outcome:
    kind: str                  # of the stage
    status: str = "done"       # "left": given up; "uncertain": rounding may matter; "running": the certificate falls
    # short; "stopped" from outside; "empty": chance chose no rows; "none": there is nothing to measure; "taken": what a
    # trial tried is better than what was before; "skipped" by a fit that goes on from a checkpoint of a later stage
    what: str = ""             # of a probe; `AGAIN`
    gap: float = np.nan        # relative duality gap
    smoothing: float = np.nan  # with which it was left
    numbers: tuple = ()        # that a probe found


@dataclass(frozen=True)
class Stage:
    kind: str
    reason: str                # in words, for whoever asks
    otherwise: str = ""        # what happens where the stage does not end the fit
    what: str = ""             # of a probe; `AGAIN`
    start: str = "zero"        # weights: "zero", "warm", "last" of the stage before; "resume": its driver goes on
    smoothing: float | None = None     # to begin with; None: the user's
    reads: float = np.inf      # after which the dual is given up
    on_trial: bool = False     # the dual is left far sooner where its gap does not fall fast enough
    first_check: float = np.inf         # reads after which the dual is first evaluated
    products: int = 0          # that a step may take in place of a factor
    sampled: Sampled | None = None     # rows whose curvature preconditions them
    columns: bool = False      # l1 steps read columns
    row_unknowns: bool = False         # with more columns in use than rows they have the rows' unknowns
    working_set: bool = False  # steps to the optimum of the working set are taken
    rank: int | None = None    # of a trial; None: at the knee of a spectrum that is not known yet
    step: float = np.nan       # of a trial, relative to what the curvature allows


AGAIN = "reduced_again"        # with every digit of the rows, to half of tol
# Outcomes after which another stage follows; after any other the problem is at its end.
FOLLOWED = {"together": ("left",), "gram": ("left",), "listed": ("left",),
            "dual": ("left", "uncertain", "skipped"), "products": ("left", "skipped"), "reduced": ("done", "skipped"),
            "subset": ("done", "empty", "skipped"), "certify": ("running", "skipped")}


def next_stage(stats, problem, settings, outcomes):
    """The `Stage` that follows ``outcomes``, of the stages and probes before, in their order; None at the end."""
    outcome_of = {outcome.what or outcome.kind: outcome for outcome in outcomes}
    if "together" not in outcome_of and are_solved_together(stats, problem, settings):
        return Stage("together", f"{problem.n_problems} problems share every read of the rows",
                     "a problem that this does not prove is solved alone")
    if "gram" not in outcome_of and problem.may_share \
            and goes_by_gram_matrix(stats, problem, settings, problem.n_problems):
        return Stage("gram", f"{problem.n_problems} problems share what {stats.n_rows:,} rows are beside each other",
                     "a problem that this does not prove is solved alone")
    if "listed" not in outcome_of and problem.may_share and goes_by_listed_rows(stats, problem, settings):
        return Stage("listed", f"{problem.n_problems} problems share reads of the rows, and each needs few of them",
                     "a problem that this does not prove is solved alone")
    last = next((outcome for outcome in reversed(outcomes) if outcome.kind != "probe"), None)
    if last is None or (last.kind in ("together", "gram", "listed") and last.status == "left"):
        stage = dual_first(stats, problem, settings, outcome_of)
        if stage is not None:
            return stage
    elif last.status not in FOLLOWED.get(last.kind, ()):
        return None
    elif last.kind == "certify" and "reduced" in outcome_of and AGAIN not in outcome_of:
        return Stage("reduced", "the certificate falls short of tol", "Newton steps on all rows follow", AGAIN,
                     start="last", smoothing=min(settings.smoothing, cost.WARM_SMOOTHING))
    elif last.kind == "certify":
        return Stage("newton", "the certificate falls short of tol", start="resume")
    elif last.kind == "reduced" or last.status == "uncertain":
        return Stage("certify", "what is reported is evaluated on the rows themselves" if last.kind == "reduced" else
                     "rounding of so many sweeps may matter beside tol", "Newton steps on all rows go on",
                     smoothing=min(settings.smoothing, cost.WARM_SMOOTHING))
    return newton_next(stats, problem, settings, outcome_of)


def plan(stats, problem, settings, known=(), following=next_stage):
    """The stages of a fit whose outcomes are the expected ones: no stage is given up, no certificate falls short.

    Probes are taken to favour the stage that they decide about, but for those whose outcomes are ``known``.
    ``following`` is `next_stage`, or what says it of another method.
    """
    stages, outcomes = [], list(known)
    while (stage := following(stats, problem, settings, outcomes)) is not None:
        stages.append(stage)
        numbers = {"class_sizes": (stats.n_rows,), "row_lengths": (0.0, 1), "length_ratio": (0.0, 1),
                   "own_part": (0.0, 0.0)}
        outcomes.append(Outcome(stage.kind, what=stage.what, numbers=numbers.get(stage.what, (1.0,)),
                                smoothing=cost.SUBSET_SMOOTHING_END))
    return stages


def refuse(problem, settings, stats):
    """ValueError where what the user chose does not go together."""
    solver, search = settings.linear_solver, settings.line_search
    if problem.penalty.by_column and (solver not in ("auto", "cholesky") or search != "exact"):
        what = "Bounds, and l2 or l1 by column, need" if problem.penalty.constraints is None else "constraints= needs"
        raise ValueError(f"{what} linear_solver='auto' or 'cholesky' and line_search='exact'; got {solver!r} and "
                         f"{search!r}.")
    if problem.penalty.by_column and problem.penalty.constraints is not None \
            and stats.n_features > cost.FACTOR_UP_TO_COLUMNS:
        raise ValueError(f"constraints= needs a factor of all columns, of which there may be "
                         f"{cost.FACTOR_UP_TO_COLUMNS:,}; X has {stats.n_features:,}.")
    if solver == "cg" and problem.penalty.has_kinks:
        raise ValueError("linear_solver='cg' needs l1=0: an l1 model is solved on its active block, by 'cholesky'.")
    if search != "exact" and problem.loss.name != "hinge":
        raise ValueError("line_search='quadratic' needs loss='hinge'.")
    if search != "exact" and problem.penalty.groups is not None:
        raise ValueError("line_search='quadratic' needs groups=None.")
    if solver == "dual" and not prices.has_dual_steps(problem.loss):
        known = TWO_KINKS if problem.loss.facts["dual_smallest"] < 0 else BY_DUAL
        raise ValueError(f"linear_solver='dual' needs loss={' or '.join(map(repr, known))}.")
    if stats.divided:                            # sums over all rows only
        return
    if solver == "dual" and (problem.penalty.has_kinks or not problem.penalty.l2 > 0 or search != "exact"):
        raise ValueError("linear_solver='dual' needs l1=0, l2>0 and line_search='exact'.")
    if solver == "woodbury" and (problem.penalty.has_kinks or search != "exact"):
        raise ValueError("linear_solver='woodbury' needs l1=0 and line_search='exact'.")


def are_solved_together(stats, problem, settings):
    """Whether there are enough problems of the squared hinge, on sparse rows, for all to go side by side.

    Single precision is to be enough. Dense rows have no use for it: their products go by BLAS, and sweeps of the dual
    need fewer (smsvm.md, "Many labels side by side").
    """
    return problem.may_share and problem.has_dual and problem.n_problems >= LANE_COUNT \
        and settings.tol > np.finfo(np.float32).eps \
        and problem.loss.name == "squared_hinge" and stats.here and stats.sparse and not problem.warm \
        and type(problem.penalty) is ElasticNet and not problem.penalty.has_kinks and problem.penalty.l2 > 0 \
        and settings.linear_solver == "auto" and settings.line_search == "exact" \
        and settings.max_passes * cost.TRIAL_SHARE >= cost.FEWEST_PRODUCTS \
        and 0 < stats.n_features <= stats.entries <= cost.COPY_UP_TO_ENTRIES


def goes_by_gram_matrix(stats, problem, settings, n_fits):
    """Whether the dual is solved by the Gram matrix of dense rows, made once for ``n_fits`` fits.

    A row that moves costs a number for every row then, and no column.
    """
    if not goes_by_products_of_rows(stats, problem, settings):
        return False
    one_fit_each, smooth = n_fits <= problem.n_problems, prices.dual_is_smooth(problem.loss)
    most = min(cost.GRAM_UP_TO_ROWS, cost.GRAM_ROWS_PER_FIT[0] * n_fits,
               cost.GRAM_ROWS_PER_COLUMN[one_fit_each][smooth] * stats.n_features)
    return problem.n_problems >= cost.GRAM_FROM_PROBLEMS and 1 < stats.n_rows <= most


def goes_by_listed_rows(stats, problem, settings):
    """Whether more rows than have a Gram matrix go by products of those that a problem lists: few of each, of many
    problems, over many columns."""
    return goes_by_products_of_rows(stats, problem, settings) and settings.tol > np.finfo(np.float32).eps \
        and stats.n_rows > cost.GRAM_UP_TO_ROWS \
        and stats.n_rows <= cost.GRAM_ROWS_PER_FIT[1] * problem.n_problems \
        and stats.n_rows <= cost.GRAM_ROWS_PER_COLUMN[0][0] * stats.n_features


def goes_by_products_of_rows(stats, problem, settings):
    """Whether the problems are such as the dual by products of dense rows takes, however many they are."""
    return stats.here and not stats.sparse and problem.has_dual and not problem.fixed_sum and not problem.warm \
        and prices.has_dual_steps(problem.loss) and problem.loss.sides is None \
        and type(problem.penalty) is ElasticNet and not problem.penalty.has_kinks and problem.penalty.l2 > 0 \
        and settings.linear_solver == "auto" and settings.line_search == "exact"


# ---------------------------------------------------------------- the dual first

def dual_is_tried(stats, problem, settings, outcome_of):
    """True for rows whose curvature costs many reads of them, no l1, and l2 > 0; or the probe that would tell.

    A smooth loss is priced more closely, problem by problem (`reads_foreseen`).
    """
    if stats.divided or not problem.has_dual or not prices.has_dual_steps(problem.loss):
        return False
    if settings.linear_solver == "dual":
        return True
    if problem.loss.sides is not None and not stats.sparse:               # two dual variables a row cost two reads
        return False
    if not stats.in_memory or settings.linear_solver != "auto" or settings.line_search != "exact" \
            or problem.penalty.has_kinks or not problem.penalty.l2 > 0 \
            or (not stats.sparse and settings.max_passes < cost.DUAL_FROM_MAX_PASSES):
        return False
    if not stats.contiguous_rows and stats.entries > cost.COPY_UP_TO_ENTRIES:
        return False                                                      # they would have to be copied
    m, smooth = stats.n_features, prices.dual_is_smooth(problem.loss)
    if are_reduced(stats):
        return m > cost.CHEAP_HESSIAN_COLUMNS \
            and prices.price_of_reducing(stats, smooth) > cost.DUAL_FROM_NEWTON_READS[1]
    if smooth:
        return m >= cost.SMOOTH_DUAL_FROM_COLUMNS \
            and (stats.sparse or stats.entries >= cost.SMOOTH_DUAL_FROM_ENTRIES)
    if not stats.sparse and m <= cost.CHEAP_HESSIAN_COLUMNS:
        return m >= cost.DUAL_FROM_COLUMNS and stats.entries >= cost.DUAL_FROM_ENTRIES \
            and stats.n_rows < cost.SUBSET_FROM_ROWS
    if prices.reads_of_newton(stats) <= cost.DUAL_FROM_NEWTON_READS[0]:
        return prices.sampled_reads(stats)[0] > 0 \
            and are_light(stats, problem, cost.LIGHT_SAMPLED_ROWS, outcome_of)
    if not stats.sparse:
        return not prices.subset_saves_evaluations(stats) or are_light(stats, problem, cost.LIGHT_MANY_ROWS, outcome_of)
    return m > cost.CHEAP_HESSIAN_COLUMNS or \
        (m >= cost.DUAL_FROM_COLUMNS and are_light(stats, problem, cost.LIGHT_SPARSE_ROWS, outcome_of))


def are_reduced(stats):
    """Whether these are dense rows that Newton's method sees in as many unknowns as there are rows."""
    return not stats.sparse and prices.reducing_pays_off(stats)


def chooses_rows(stats, problem, settings, outcomes):
    """Whether a seed chooses rows, or their order, in any stage that a fit may come to."""
    outcome_of = {outcome.what: outcome for outcome in outcomes}
    return bool(dual_is_tried(stats, problem, settings, outcome_of)) or stats.n_rows >= cost.SUBSET_FROM_ROWS \
        or prices.sampled_reads(stats)[0] > 0


def are_light(stats, problem, most, outcome_of):
    """Whether a row's dual variable, at its bound, moves the row's own margin by little: few sweeps then do."""
    if "row_lengths" not in outcome_of:
        return Stage("probe", "the dual is tried only where they are short beside the penalty",
                     what="row_lengths")
    total, seen = outcome_of["row_lengths"].numbers
    return total <= most * problem.penalty.l2 * stats.n_rows * seen


def dual_of_one_class(stats, problem, settings):
    """Sweeps over dual variables of a fixed sum, or None where the curvature of all columns costs little."""
    if not stats.here or stats.n_features < cost.SMOOTH_DUAL_FROM_COLUMNS \
            or not (stats.contiguous_rows or stats.entries <= cost.COPY_UP_TO_ENTRIES):
        return None
    by_products = prices.too_wide(stats.n_rows, stats.n_features) and not prices.reducing_pays_off(stats)
    price = cost.CG_NEWTON_READS if by_products else cost.SPARSE_NEWTON_READS
    reads = min(cost.DUAL_SHARE * price, settings.max_passes / 2)
    return Stage("dual", f"sweeps cost less than the curvature of {stats.n_features:,} columns",
                 f"after {reads:.3g} reads Newton's method takes over", start="warm" if problem.warm else "zero",
                 reads=reads, on_trial=True)


def dual_first(stats, problem, settings, outcome_of):
    """The dual, a probe that decides about it, or None where Newton's method comes first."""
    if problem.fixed_sum:
        return dual_of_one_class(stats, problem, settings)
    tried = dual_is_tried(stats, problem, settings, outcome_of)
    if tried is False or isinstance(tried, Stage):
        return tried or None
    if not tried:
        return None
    smooth, chooses, reads = prices.dual_is_smooth(problem.loss), settings.linear_solver == "auto", np.inf
    reduced = are_reduced(stats)
    if smooth and chooses and not reduced:
        reads = reads_foreseen(stats, outcome_of)
        if isinstance(reads, Stage):
            return reads
    if smooth and reads > 0:
        if "penalty_counts" not in outcome_of:
            return Stage("probe", "the dual has no use for a penalty beside which no row counts",
                         what="penalty_counts")
        reads = reads if outcome_of["penalty_counts"].numbers[0] else 0
    if not reads > 0:
        return None
    price = prices.reads_of_newton(stats, smooth)
    reads = min(reads, (cost.SMOOTH_DUAL_SHARE if smooth or reduced else cost.DUAL_SHARE) * price)
    last = settings.max_passes / 2
    if problem.loss.sides is not None and chooses:  # beside a weak penalty products end where sweeps do not
        reads = min(reads, cost.DUAL_SHARE * cost.CG_NEWTON_READS)
    elif few_sparse_rows(stats) and reads > last:   # nothing else ends sooner, however slow the sweeps seem for a while
        reads = last = max(last, settings.max_passes - cost.FEW_SPARSE_ROWS[1]) if smooth else np.inf
    if smooth and chooses and stats.sparse and (not few_sparse_rows(stats) or rows_are_alike(outcome_of)):
        reads = min(reads, cost.DUAL_SHARE * cost.SPARSE_NEWTON_READS)
    if np.isfinite(reads):
        reads = min(reads if chooses else np.inf, last)
    narrow = not stats.sparse and stats.n_features <= cost.CHEAP_HESSIAN_COLUMNS
    why = "linear_solver='dual' says so"
    if chooses:
        priced = f"is priced at {price:.3g} reads of the rows" if np.isfinite(price) else "has too many columns"
        why = f"Newton's method {priced}"
    limit = f"after {reads:.3g} reads Newton's method takes over" if np.isfinite(reads) else ""
    return Stage("dual", why, limit, start="warm" if problem.warm else "zero", reads=reads,
                 on_trial=chooses and np.isfinite(reads) and (
                     rows_are_alike(outcome_of) or (np.isfinite(price) and (reduced or not smooth))),
                 first_check=cost.NARROW_FIRST_CHECK if narrow else np.inf)


def few_sparse_rows(stats):
    """Whether sparse rows are so few beside their columns that few sweeps end the dual, as a rule, whatever kappa."""
    return stats.sparse and stats.n_rows <= cost.FEW_SPARSE_ROWS[0] * stats.n_features


def reads_foreseen(stats, outcome_of):
    """Reads after which the dual of a smooth loss may be known not to cost less; 0: it is not tried; or a probe.

    Newton's method on all columns needs few evaluations there, so that a trial of the dual would cost a good part of
    it. Sweeps need about

        6 + 5 kappa v reads,       kappa = mean |x|^2 / mean ridge,

    where v is the part of the rows that have no margin of 1; where these are few but kappa is large, clusters need few
    and other rows hundreds, which a trial finds out. Sparse rows of thousands of columns are told apart by their rare
    ones, as common columns slow the sweeps, and what a row has to itself hastens them: in place of kappa stands

        mean of |x_i|^2 / (ridge_i + sum_j x_ij^2 / n_j),       n_j rows with an entry in column j,

    and where that is large a trial finds out whether sweeps end at once, as they do where classes are apart. Where few
    entries are stored common columns are held near a centre, and sweeps end in fewer reads than a factor of thousands
    of columns is worth.
    """
    price, n, m = prices.reads_of_newton(stats, True), stats.n_rows, stats.n_features
    if stats.sparse and prices.too_wide(n, m) and not prices.reducing_pays_off(stats) \
            and stats.entries >= cost.WEIGHED_FROM_ENTRIES:
        if "own_part" not in outcome_of:
            return Stage("probe", "rows that are not told apart by columns of their own need many sweeps",
                         what="own_part")
        return np.inf
    if not np.isfinite(price) or few_sparse_rows(stats):
        return np.inf
    enough = cost.DUAL_SHARE * (min(price, cost.SPARSE_NEWTON_READS) if stats.sparse else price)
    if stats.sparse and stats.entries_per_row < DENSE * m and enough >= cost.SHORT_TRIAL_READS:
        return enough
    if stats.sparse and stats.entries < cost.WEIGHED_FROM_ENTRIES:
        return 0
    if "length_ratio" not in outcome_of:
        return Stage("probe", "their ratio tells how many sweeps the dual needs",
                     what="length_ratio")
    if outcome_of["length_ratio"].status == "none":
        return 0
    kappa, n_sample = outcome_of["length_ratio"].numbers
    if cost.SWEEPS_FIRST + cost.SWEEPS_EACH * kappa <= enough:
        return np.inf
    if stats.sparse:
        if enough < cost.SHORT_TRIAL_READS:
            return 0
        if "own_part" not in outcome_of:
            return Stage("probe", "rows with columns of their own need few sweeps whatever that ratio", what="own_part")
        return enough
    if "without_margin" not in outcome_of:
        return Stage("probe", "rows without a margin of 1 tell how many sweeps the dual needs", what="without_margin")
    moved, = outcome_of["without_margin"].numbers
    if cost.SWEEPS_FIRST + cost.SWEEPS_EACH * kappa * moved <= enough:
        return np.inf
    if moved > cost.FEW_WITHOUT_MARGIN * np.sqrt(m / n_sample):
        return 0
    no_sample = prices.sampled_reads(stats)[0] == 0
    return cost.SHORT_TRIAL_READS if no_sample else min(cost.SHORT_TRIAL_READS, enough)


def rows_are_alike(outcome_of):
    """Whether sparse rows have so little in columns of their own that products are quicker: the dual is on trial.

    Sweeps need reads as that ratio, products as the root of kappa.
    """
    probe = outcome_of.get("own_part")
    if probe is None or probe.status != "done":
        return False
    ratio, kappa = probe.numbers
    least, per_root = cost.ALIKE_FROM_RATIO
    return ratio > max(least, per_root * np.sqrt(kappa))


# ---------------------------------------------------------------- Newton's method

def is_reduced(stats, problem, settings):
    """Whether the problem is solved in as many unknowns as there are rows, those of linear constraints among them."""
    constraints = problem.penalty.constraints
    if stats.divided:
        return False
    return settings.linear_solver == "woodbury" or (
        settings.linear_solver == "auto" and stats.in_memory and settings.line_search == "exact"
        and (not problem.penalty.has_kinks or constraints is not None)
        and prices.reducing_pays_off(stats, 0 if constraints is None else len(constraints.b)))


def newton_next(stats, problem, settings, outcome_of):
    """The stage of Newton's method, or a probe that decides about it."""
    dual, start = outcome_of.get("dual"), "warm" if problem.warm else "zero"
    if dual is not None and dual.gap <= cost.GAP_TO_BEGIN_ANEW[stats.sparse] \
            and (problem.loss.sides is None or np.isfinite(prices.reads_of_newton(stats))):
        start = "last"
    smoothing = None if start == "zero" else min(settings.smoothing, cost.WARM_SMOOTHING)
    columns = prices.columns_limit(stats, problem, settings)
    products = columns or prices.products_limit(stats, problem, settings)
    if is_reduced(stats, problem, settings):
        if products and "products" not in outcome_of:
            return Stage("products", f"up to {products} products a step cost less than as many unknowns as rows",
                         "all goes on in as many unknowns as rows", start=start, products=products)
        return Stage("reduced", f"there are {stats.n_rows:,} rows and {stats.n_features:,} columns",
                     start="last" if "products" in outcome_of else start, smoothing=smoothing)
    if settings.line_search == "quadratic":
        return Stage("published", "line_search='quadratic' says so", start=start)
    sampled = prices.sample_for_products(stats, problem, settings)
    grows = settings.subset_growth == "auto" and start == "zero" and not products and settings.max_passes >= 2 \
        and (stats.in_memory or not stats.reads_are_shared or problem.n_problems == 1) \
        and prices.subset_is_large(stats.n_rows, problem.n_columns, problem.loss)
    working_set = problem.loss.name == "hinge" and problem.penalty.l2 > 0 and not problem.penalty.has_kinks \
        and problem.has_dual and sampled is None and stats.n_rows >= cost.WORKING_SET_FROM_ROWS \
        and prices.subset_is_large(stats.n_rows, problem.n_columns, HINGE)
    if grows or working_set:
        if "class_sizes" not in outcome_of:
            return Stage("probe", "rows of weight 0 are no part of a subset", what="class_sizes")
        counted = sum(outcome_of["class_sizes"].numbers)
        grows = grows and prices.subset_is_large(counted, problem.n_columns, problem.loss)
        working_set = working_set and prices.subset_is_large(counted, problem.n_columns, HINGE)
    if grows and "subset" not in outcome_of:
        return Stage("subset", f"a tenth of {stats.n_rows:,} rows, or fewer, settles most of {problem.n_columns:,} "
                               "unknowns")
    if grows and outcome_of["subset"].status == "done":
        wider = cost.WIDER_AFTER_SUBSET["hinge" if problem.loss.sides is None else "residuals"]
        start, smoothing = "last", wider * outcome_of["subset"].smoothing
    return Stage("newton", newton_reason(stats, problem, settings, products, columns, sampled), start=start,
                 smoothing=smoothing, products=products, columns=bool(columns),
                 row_unknowns=prices.has_row_unknowns(stats, problem, settings),
                 sampled=None if columns else sampled, working_set=working_set)


def newton_reason(stats, problem, settings, products, columns, sampled):
    """Why the steps on all rows are made as they are."""
    if columns:
        return f"l1 steps of up to {columns} reads of the columns in use cost less than {stats.n_features:,} unknowns"
    by = []
    if products:
        by.append(f"up to {products} Hessian-vector products a step")
    if sampled is not None:
        by.append(f"up to {sampled.products_limit} products a step, "
                  f"preconditioned by the Hessian of {sampled.rows:,} rows")
    if settings.linear_solver == "cg" or (settings.linear_solver != "cholesky" and not problem.penalty.has_kinks
                                          and prices.too_wide(stats.n_rows, problem.n_columns)):
        by.append("conjugate gradients")
    else:
        by.append(f"a Cholesky factor of {problem.n_columns:,} unknowns")
    return "the cheapest way to a step is by " + ", then by ".join(by)
