"""Solve on a subset of the rows first, then on all of them (the paper's own suggestion for later work)."""

from dataclasses import replace

import numpy as np

from cmargin.data.prices import SMALLEST
from cmargin.solvers.newton.continuation import ContinuationNewton, Result

FRACTION = 0.1
PILOT = 2000                   # rows that tell the mean squares of the columns
ROWS_PER_COLUMN = 20           # a subset thinner than this says little about the whole
OF_SMOOTH_LOSS = 16            # the same for a loss that needs no smoothing
# Later is worse: the subset's own noise is fitted. The whole starts wider again, so that rows which only the subset has
# settled may still move.
WIDTH_OF_HANDOVER = 0.02
WIDER = 5.0
NEAR_FROM = 40_000             # rows: of fewer a tenth tells too little of where the rest of the way leads


def shares(positives, negatives):
    """The part of either side that a subset takes: a rare class gets up to a quarter of the places."""
    size = int(FRACTION * (positives + negatives))
    few, many = min(positives, negatives), max(positives, negatives)
    n_few = min(few, max(int(FRACTION * few), size // 4))
    n_many = min(many, size - n_few)
    of_few, of_many = n_few / max(1, few), n_many / max(1, many)
    return (of_few, of_many) if positives < negatives else (of_many, of_few)


def worth_growing(rows, loss="hinge"):
    n = sum(rows.sides()[0]) if rows.n_rows >= SMALLEST else 0
    each = ROWS_PER_COLUMN if loss == "hinge" else min(ROWS_PER_COLUMN, OF_SMOOTH_LOSS)
    return n >= SMALLEST and FRACTION * n >= each * rows.n_columns


def subset_of(rows, seed):
    """About a tenth of the rows, chosen by ``seed``, each for as many as it stands for; and the reads that took.

    A few rows say how large each column is, so that long rows can be chosen more often whatever the scales. Either side
    then weighs what it weighs in the whole. None in place of the rows if chance chose none.
    """
    counts, weights = rows.sides()
    pilot, _ = rows.gather_sample(*[min(1.0, PILOT / sum(counts))] * 2, seed + PILOT)
    column_weight, reads = None, pilot.share
    if pilot.n_rows:
        squares = pilot.evaluate(np.zeros(rows.n_columns), True)[1][:rows.n_features] / pilot.total_weight
        there = np.isfinite(squares) & (squares > 0)
        column_weight = np.divide(1.0, squares * max(1, there.sum()), where=there, out=np.zeros(len(squares)))
    part, read = rows.gather_sample(*shares(*counts), seed, column_weight)
    chosen = part.sides()[1]
    part.weigh_sides(*(whole / there if there > 0 else 1.0 for whole, there in zip(weights, chosen, strict=True)))
    return (part if part.n_rows else None), reads + read


def may_near(newton, now=False):
    """Let ``newton`` step to the optimum of the rows near the hinge where reads of the rows are what a fit costs."""
    problem, rows = newton.problem, newton.home
    if problem.loss == "hinge" and problem.l2 and not problem.l1 and rows.n_rows >= NEAR_FROM and worth_growing(rows):
        newton.let_near(shares(*rows.sides()[0]), now)


def ways(rows, problem, settings, grow, seed, w=None, width=None, result=None, before=None, found=None,
         products=0, sampled=None):
    """Yield `ContinuationNewton`, on a subset first if ``grow`` and if it pays, each to be brought to its end.

    ``seed`` chooses the rows; ``w`` is a warm start, ``width`` the smoothing to start it with.
    ``before``: who gave up on the same problem; its time and reads count.
    ``found``: what the driver of the subset gave for a checkpoint, to go on from there.
    ``products``: in a step, that are tried before a factor, and in place of a subset.
    ``sampled``: for products of all rows, see `ContinuationNewton`.
    """
    result = Result(np.zeros(rows.n_columns)) if result is None else result
    n_iter, history = (result.n_iter, list(result.history)) if found is None else found["before"]
    first, subset = before, None
    if found is not None:
        subset, reads = subset_of(rows, int(seed))
    elif grow and w is None and not products and worth_growing(rows, problem.loss) \
            and settings.max_passes >= 2 * rows.share:
        subset, reads = subset_of(rows, int(seed))
    if subset is not None:
        inner = Result(np.zeros(rows.n_columns), passes=result.passes)

        def hand_over():                         # whoever looks in meanwhile finds the subset's point and counts,
            # neither objective nor gap: they are not the whole problem's. Of the driver, which calls it, it has nothing
            result.w, result.n_iter, result.passes = inner.w.copy(), n_iter + inner.n_iter, inner.passes
            result.history = history + [row[:5] + [np.nan, np.nan] + row[7:] for row in inner.history]

        def stop():
            hand_over()
            return settings.stop()

        part = settings.for_subset(WIDTH_OF_HANDOVER, rows.share)
        first = ContinuationNewton(subset, problem, replace(part, stop=settings.stop and stop), inner, before=before)
        first.way, first.more = (None, "subset"), {"before": (n_iter, history)}
        first.count(reads)
        first.begin_or_go_on(found)
        try:
            yield first
        finally:
            first.store(inner)
            hand_over()
        if first.left:
            result.status = first.status
            return
        w, width = result.w, WIDER * first.result.width
    newton = ContinuationNewton(rows, problem, settings, result, width, w, first, products, sampled=sampled)
    first = subset = None                        # what newton needs of them it has; their memory goes
    # from 0, over files, each problem would read its near rows apart; where curvature, not reads, is what a fit costs
    # products do better
    if (newton.has_scale or w is not None) and sampled is None:
        may_near(newton, newton.has_scale)
    newton.begin()
    yield newton
