"""Solve on a subset of the rows first, then on all of them (the paper's own suggestion for later work)."""

from dataclasses import replace

import numpy as np

from cmargin.solvers.newton.continuation_newton import ContinuationNewton, Result

FRACTION = 0.1
SMALLEST = 20_000              # fewer rows than this are read whole: the subset would save nothing worth having
ROWS_PER_COLUMN = 20           # a subset thinner than this says little about the whole
# Later is worse: the subset's own noise is fitted. The whole starts wider again, so that rows which only the subset has
# settled may still move.
WIDTH_OF_HANDOVER = 0.02
WIDER = 5.0


def shares(positives, negatives):
    """The part of either side that a subset takes: a rare class gets up to a quarter of the places."""
    size = int(FRACTION * (positives + negatives))
    few, many = min(positives, negatives), max(positives, negatives)
    n_few = min(few, max(int(FRACTION * few), size // 4))
    n_many = min(many, size - n_few)
    of_few, of_many = n_few / max(1, few), n_many / max(1, many)
    return (of_few, of_many) if positives < negatives else (of_many, of_few)


def worth_growing(rows):
    n = sum(rows.sides()) if rows.n_rows >= SMALLEST else 0
    return n >= SMALLEST and FRACTION * n >= ROWS_PER_COLUMN * rows.n_columns


def subset_of(rows, seed):
    """About a tenth of the rows, chosen by ``seed``, each for as many as it stands for; None if chance chose none."""
    part = rows.gather_sample(*shares(*rows.sides()), int(seed))
    return part if part.n_rows else None


def ways(rows, problem, settings, grow, seed, w=None, width=None, result=None, before=None):
    """Yield `ContinuationNewton`, on a subset first if ``grow`` and if it pays, each to be brought to its end.

    ``seed`` chooses the rows; ``w`` is a warm start, ``width`` the smoothing to start it with.
    ``before``: who gave up on the same problem; its time and reads count.
    """
    result = Result(np.zeros(rows.n_columns)) if result is None else result
    n_iter, history = result.n_iter, list(result.history)
    first, subset = before, None
    if grow and w is None and worth_growing(rows) and settings.max_passes >= 2 * rows.share:
        subset = subset_of(rows, seed)
    if subset is not None:
        def hand_over():                         # whoever looks in meanwhile finds the subset's point and counts,
            found = first.result                 # neither objective nor gap: they are not the whole problem's
            result.w, result.n_iter, result.passes = found.w.copy(), n_iter + found.n_iter, found.passes
            result.history = history + [row[:5] + [np.nan, np.nan] + row[7:] for row in found.history]

        def stop():
            hand_over()
            return settings.stop()

        part = settings.for_subset(WIDTH_OF_HANDOVER, rows.share)
        first = ContinuationNewton(subset, problem, replace(part, stop=settings.stop and stop), before=before)
        first.begin()
        try:
            yield first
        finally:
            first.store(first.result)
            hand_over()
        if first.left:
            result.status = first.status
            return
        w, width = result.w, WIDER * first.result.width
    newton = ContinuationNewton(rows, problem, settings, result, width, w, first)
    first = subset = None                        # what newton needs of them it has; their memory goes
    newton.begin()
    yield newton
