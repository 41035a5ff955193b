"""What Newton's method costs in reads of the rows, about: evaluations with curvature, factors, Hessian-vector products.

Which way a fit goes is chosen by these prices, not by timings, so that it is the same on every machine. ``stats`` is
the `DataStats` of the rows everywhere; `cmargin.solvers.cost` has the numbers.
"""

from typing import NamedTuple

import numpy as np

from cmargin._core.losses._losses import FACTS
from cmargin.solvers import cost

BY_DUAL = tuple(loss for loss, facts in FACTS.items() if not np.isnan(facts["dual_bend"]))     # names


class Sampled(NamedTuple):
    """Rows whose curvature preconditions Hessian-vector products of all rows."""

    rows: int
    products_limit: int        # products that a step may then take, in place of the curvature of all rows
    seed: int


# ---------------------------------------------------------------- what is known of a loss

def has_dual_steps(loss):
    """Whether the dual's own solver takes the loss: each dual variable adds a - bend a^2 / 2 to the bound, or the loss
    is two hinges of a residual."""
    return not np.isnan(loss.facts["dual_bend"]) or loss.sides is not None


def dual_is_smooth(loss):
    """Whether the conjugate of the loss bends, as that of the squared hinge does: the dual has no kinks then."""
    return loss.facts["dual_bend"] > 0


# ---------------------------------------------------------------- sizes

def too_wide(n_rows, n_columns):
    """True where a factor of the curvature, p^3 / 3, and its block, n p^2, cost too much for what the rows tell."""
    # few rows are no reason for conjugate gradients: where they lean on some common directions those took up to 45,000
    # reads for the 50 of a factor, and a reduced problem has a column more than rows
    return n_columns > (cost.FACTOR_UP_TO_COLUMNS if n_columns < n_rows else cost.REDUCE_UP_TO_ROWS + 1)


def reducing_pays_off(stats, n_constraints=0):
    """True for data with more columns than rows, those of constraints counted, which X' = QR gives as many unknowns."""
    n, m = stats.n_rows + n_constraints, stats.n_features
    return 1 < n <= cost.REDUCE_UP_TO_ROWS and m > n and n * m <= cost.COPY_UP_TO_ENTRIES


def subset_saves_evaluations(stats):
    """Whether there are so many rows a column that Newton's evaluations are nearly all of a subset."""
    return stats.n_rows >= cost.SUBSET_FROM_ROWS \
        and cost.SUBSET_SHARE * stats.n_rows >= cost.SMOOTH_SUBSET_ROWS_PER_COLUMN * stats.n_features


def subset_is_large(n_rows, n_columns, loss):
    """Whether a tenth of ``n_rows``, those whose weight is not 0, says enough about all of them."""
    each = cost.SUBSET_ROWS_PER_COLUMN
    if loss.facts["smooth"]:
        each = min(each, cost.SMOOTH_SUBSET_ROWS_PER_COLUMN)
    return n_rows >= cost.SUBSET_FROM_ROWS and cost.SUBSET_SHARE * n_rows >= each * n_columns


# ---------------------------------------------------------------- Newton's method

def price_of_evaluation(stats, smooth):
    """One evaluation with curvature, and the factor of that."""
    n, m = max(1, stats.n_rows), stats.n_features
    _, fixed, each_entry, factor = cost.NEWTON_COST[smooth, stats.sparse]
    if not stats.sparse:
        return fixed + each_entry * m + factor * m**2 / n
    each = stats.entries_per_row
    return fixed + each_entry * each + factor * m**3 / (3 * n * each)


def price_of_step(stats, smooth):
    """The same, or of a step by conjugate gradients that the curvature of a sample preconditions."""
    block, sampled = sampled_reads(stats)
    if block == 0:
        return price_of_evaluation(stats, smooth)
    return min(price_of_evaluation(stats, smooth), (cost.SAMPLED_STEP_READS + sampled) / cost.SWEEP_READS)


def price_of_reducing(stats, smooth):
    """X' = QR, and all evaluations in so many unknowns; sparse rows are made dense for it."""
    n, m = stats.n_rows, stats.n_features
    each_row, fixed, each_unknown = cost.REDUCTION_COST
    reads = each_row * n + cost.NEWTON_COST[smooth, False][0] * n / m * (fixed + each_unknown * n)
    return reads * m / stats.entries_per_row if stats.sparse else reads


def reads_of_newton(stats, smooth=False):
    """What a fit on all columns costs."""
    n, m = stats.n_rows, stats.n_features
    evaluations = cost.NEWTON_COST[smooth, stats.sparse][0]
    if smooth and subset_saves_evaluations(stats):
        evaluations = cost.EVALUATIONS_AFTER_SUBSET[stats.sparse]
    if not stats.sparse:
        if m <= cost.CHEAP_HESSIAN_COLUMNS and not smooth:
            return cost.NARROW_NEWTON_READS
    if reducing_pays_off(stats):                                          # as many unknowns as rows, through X' = QR
        price = price_of_reducing(stats, smooth)
        return np.inf if stats.sparse and price > cost.CG_NEWTON_READS else price
    if stats.sparse and n <= m:
        return np.inf
    if too_wide(n, m):
        return np.inf if stats.sparse else cost.CG_NEWTON_READS
    return evaluations * price_of_step(stats, smooth)


# ---------------------------------------------------------------- products in place of a factor

def sampled_reads(stats):
    """What the curvature of all dense rows costs, and that of a sample; (0, 0) where a sample saves nothing."""
    n, m = stats.n_rows, stats.n_features
    sample = cost.SAMPLE_ROWS_PER_COLUMN * m
    if stats.sparse or not stats.here or m < cost.CHEAP_HESSIAN_COLUMNS or n < sample or too_wide(n, m):
        return 0.0, 0.0
    block = cost.HESSIAN_READS_PER_COLUMN / stats.itemsize * m
    sampled = block * sample / n
    return (block, sampled) if block - sampled >= cost.FEWEST_PRODUCTS else (0.0, 0.0)


def sample_for_products(stats, problem, settings, seed=0):
    """`Sampled`, or None where the curvature of all rows is cheaper."""
    block, sampled = sampled_reads(stats)
    products_limit = int(min(block - sampled, cost.MOST_PRODUCTS, settings.max_passes / cost.TRIAL_STEPS))
    if settings.linear_solver != "auto" or problem.penalty.has_kinks or not problem.penalty.l2 > 0 \
            or products_limit < cost.FEWEST_PRODUCTS:
        return None
    rows = cost.SAMPLE_ROWS_PER_COLUMN
    return Sampled(rows * stats.n_features, products_limit, seed + rows)  # not the rows of a subset


def may_choose(stats, problem, settings):
    """Whether a smooth loss on rows in memory may go another way than by a factor."""
    return settings.linear_solver == "auto" and stats.here and problem.loss.facts["smooth"]


def columns_limit(stats, problem, settings):
    """Reads of columns that a step with l1 may take in place of a block, factors not counted; 0: none."""
    if not may_choose(stats, problem, settings):
        return 0
    if not problem.penalty.has_kinks or problem.penalty.groups is not None or problem.penalty.by_column \
            or not stats.sparse or stats.n_features <= cost.L1_BLOCK_UP_TO_COLUMNS \
            or stats.entries > cost.COPY_UP_TO_ENTRIES:
        return 0
    return max(cost.FEWEST_PRODUCTS, int(cost.OUTER_PRODUCT_READS * stats.entries_per_row))


def has_row_unknowns(stats, problem, settings):
    """Whether a step with l1 may have the unknowns of the rows, where more columns are in use than there are rows."""
    return settings.linear_solver == "auto" and stats.here and not stats.sparse and problem.penalty.has_kinks \
        and problem.penalty.groups is None and problem.penalty.has_one_l2 and problem.penalty.l2 > 0 \
        and stats.n_rows < stats.n_features \
        and 0 < stats.n_rows <= cost.REDUCE_UP_TO_ROWS


def may_project(stats, penalty):
    """Whether steps by products know the penalty: one without kinks, or bounds, at which their directions end.

    More columns than dense rows have the rows' unknowns, or a block that is dear to begin with after a trial in vain.
    """
    if not penalty.by_column:
        return not penalty.has_kinks
    return penalty.constraints is None and (stats.sparse or stats.n_features <= stats.n_rows)


def products_limit(stats, problem, settings):
    """Hessian-vector products that a step may take in place of an evaluation with curvature and its factor; 0: none."""
    if not may_choose(stats, problem, settings):
        return 0
    by_column = problem.penalty.by_column
    if not may_project(stats, problem.penalty) or not problem.penalty.l2 > 0 \
            or (not problem.loss.facts["calibrated"] and not stats.sparse and not by_column):
        return 0                                                          # discontinuous curvature asks for more steps
    if by_column:                                                         # where no other way is open
        price = price_of_evaluation(stats, True)
    elif reducing_pays_off(stats):
        price = price_of_reducing(stats, True)
    elif too_wide(stats.n_rows, stats.n_features):
        return 0                                                          # there is nothing but products
    else:
        price = price_of_evaluation(stats, True)
    if not stats.sparse and stats.entries * stats.itemsize <= cost.CACHED_BYTES:
        price *= 2
    block, sampled = sampled_reads(stats)
    if block > 0:                                                         # there are better products than these
        price = min(price, cost.FEWEST_PRODUCTS + sampled)
    price = min(price, cost.MOST_PRODUCTS, settings.max_passes / cost.TRIAL_STEPS)
    return int(price) if price >= cost.FEWEST_PRODUCTS else 0
