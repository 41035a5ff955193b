"""What Newton's method costs in reads of the rows, about: its looks with curvature, its factors, its products.

Which way a fit goes is chosen by these prices, not by timings, so that it is the same on every machine.
"""

from typing import NamedTuple

import numpy as np

from cmargin._core.losses._losses import CALIBRATED, FACTS
from cmargin.data.memory.reduced_rows import MOST_NUMBERS, too_wide, worth_reducing

FEW_COLUMNS = 128      # up to which Newton's method is best, unless dense rows are few or sparse ones light,
NARROW_READS = 40      # what it costs there, for the hinge,
CG_READS = 1000        # and by products with rows
PRICES = {             # (smooth, sparse): looks of Newton's method, and what one costs in reads, doc/lab-notebook
    (False, False): (16, 5, 0.025, 0.02), (False, True): (10, 0, 0.36, 0.01),
    (True, False): (6, 0.4, 0.02, 0.02), (True, True): (6, 1, 0.04, 0.009)}
SUBSET_ROWS, SUBSET_LOOKS = 160, (2, 4)  # rows a column from which on a subset saves looks, of dense and sparse rows
SMALLEST = 20_000      # of all rows for that: a subset of fewer would save nothing worth having
CACHED = 16_000_000    # bytes of dense rows that the cache holds: products, not curvature, take half the time then
FEWEST_PRODUCTS, MOST_A_STEP = 4, 100            # that a step may take: fewer are not worth a trial, more never
OUTER = 0.2            # reads of columns, times the entries of a row: what the sum of outer products costs
BY_COLUMNS_FROM = 256  # columns of CSR rows: a block of fewer, with its factors, is cheap
PRODUCT_STEPS = 10     # a step may take this part of ``max_passes``
SAMPLE_ROWS = 8        # a column, whose curvature preconditions products,
SAMPLED_PART = 4       # where there are so many times more,
FEWEST_PASSES = 100    # and a fit is allowed as many passes
BLOCK_READS = 0.2      # reads of dense rows that the curvature of all costs, a column, times the bytes of a number,
CURVED = 0.6           # and part of that where rows beyond the margin have no curvature
STEP_READS = 4         # of a step by such products, beside the sample's curvature
SWEEP = 2.3            # reads by all threads that a sweep of the dual over dense rows takes as long as, by one
FEWEST_TRIED = 4       # products that rows are tried with without, beyond what the sample's curvature costs


def has_ridges(loss):
    """Whether the loss gives its dual variables ridges, as the squared hinge does: the dual without kinks."""
    return FACTS[loss]["dual_bend"] > 0


def entries_of_a_row(home):
    """At least 1."""
    return max(1.0, home.entries / max(1, home.n_rows))


def price_of_look(home, smooth):
    """One look with curvature, and the factor of that."""
    n, m = max(1, home.n_rows), home.n_features
    _, fixed, each_entry, factor = PRICES[smooth, home.sparse]
    if not home.sparse:
        return fixed + each_entry * m + factor * m**2 / n
    each = entries_of_a_row(home)
    return fixed + each_entry * each + factor * m**3 / (3 * n * each)


def price_of_step(home, smooth):
    """The same, or of a step by products that the curvature of a sample preconditions."""
    block, sampled = sampled_reads(home, smooth)                          # the dual is for no smooth loss but such
    if block == 0:
        return price_of_look(home, smooth)
    return min(price_of_look(home, smooth), (STEP_READS + sampled) / SWEEP)


def may_begin_on_few(home):
    """Whether there are so many rows a column that Newton's looks are nearly all at a subset of them."""
    return home.n_rows >= max(SMALLEST, SUBSET_ROWS * home.n_features)


def price_of_reducing(home, smooth):
    """X' = QR of dense rows, and all looks at so many unknowns."""
    n, m = home.n_rows, home.n_features
    return 0.2 * n + PRICES[smooth, False][0] * n / m * (5 + 0.045 * n)


def reads_of_newton(home, smooth=False):
    """What a fit on all columns costs."""
    n, m = home.n_rows, home.n_features
    looks = SUBSET_LOOKS[home.sparse] if smooth and may_begin_on_few(home) else PRICES[smooth, home.sparse][0]
    if not home.sparse:
        if m <= FEW_COLUMNS and not smooth:
            return NARROW_READS
        if worth_reducing(home, 0.0, "auto", "exact"):                    # as many unknowns as rows, through X' = QR
            return price_of_reducing(home, smooth)
    if too_wide(n, m):
        return np.inf if home.sparse else CG_READS
    return looks * price_of_step(home, smooth)


def may_choose(home, problem, settings):
    """Whether a smooth loss on rows in memory may go another way than by a factor."""
    return settings.linear_solver == "auto" and home.in_memory and home.agreed is None and problem.loss != "hinge"


class Sampled(NamedTuple):
    """Rows whose curvature preconditions products with all rows."""

    rows: int
    worth: int                 # products that a step may then take, in place of a look with the curvature of all
    seed: int


def jumps(loss):
    """Whether rows beyond the margin have no curvature."""
    return loss not in CALIBRATED and loss != "hinge"                     # which is smoothed


def sampled_reads(home, jumping):
    """What the curvature of all dense rows costs, and that of a sample; (0, 0) where a sample saves nothing."""
    n, m = home.n_rows, home.n_features
    sample = SAMPLE_ROWS * m
    here = home.in_memory and home.agreed is None
    if home.sparse or not here or m < FEW_COLUMNS or n < SAMPLED_PART * sample or too_wide(n, m):
        return 0.0, 0.0
    block = BLOCK_READS / home.dtype.itemsize * m * (CURVED if jumping else 1)
    sampled = block * sample / n
    return (block, sampled) if block - sampled >= FEWEST_PRODUCTS else (0.0, 0.0)


def sample_for_products(home, problem, settings, seed):
    """`Sampled`, or None where the curvature of all rows is cheaper."""
    block, sampled = sampled_reads(home, jumps(problem.loss))
    worth = int(min(block - sampled, MOST_A_STEP, settings.max_passes / PRODUCT_STEPS))
    if settings.linear_solver != "auto" or problem.l1 > 0 or not problem.l2 > 0 or worth < FEWEST_PRODUCTS \
            or settings.max_passes < FEWEST_PASSES:
        return None
    return Sampled(SAMPLE_ROWS * home.n_features, worth, seed + SAMPLE_ROWS)      # not the rows of a subset


def worth_columns(home, problem, settings):
    """Reads of columns that a step with l1 may take in place of a block, factors not counted; 0: none."""
    if not may_choose(home, problem, settings):
        return 0
    if not problem.l1 > 0 or not home.sparse or home.n_features <= BY_COLUMNS_FROM or home.entries > MOST_NUMBERS:
        return 0                                                          # they are copied
    return max(FEWEST_PRODUCTS, int(OUTER * entries_of_a_row(home)))


def worth_products(home, problem, settings):
    """Products with the rows that a step may take in place of a look with curvature and its factor; 0: none."""
    if not may_choose(home, problem, settings):
        return 0
    if problem.l1 > 0 or not problem.l2 > 0 or (problem.loss not in CALIBRATED and not home.sparse):
        return 0                                                          # a curvature that jumps asks for more steps
    if worth_reducing(home, 0.0, "auto", "exact"):
        stored = home.n_features / entries_of_a_row(home)                 # they are made dense for it
        price = price_of_reducing(home, True) * stored / 4
    elif too_wide(home.n_rows, home.n_features):
        return 0                                                          # there is nothing but products
    else:
        price = price_of_look(home, True)
    if not home.sparse and home.entries * home.dtype.itemsize <= CACHED:
        price *= 2
    block, sampled = sampled_reads(home, jumps(problem.loss))
    if block > 0 and settings.max_passes >= FEWEST_PASSES:                # there are better products than these
        price = min(price, FEWEST_TRIED + sampled)
    price = min(price, MOST_A_STEP, settings.max_passes / PRODUCT_STEPS)
    return int(price) if price >= FEWEST_PRODUCTS else 0
