"""Solve on a subset of the rows first, then on all of them (the paper's own suggestion for later work)."""

import numpy as np

from cmargin.solvers.continuation_newton import ContinuationNewton, Result

FRACTION = 0.1
SMALLEST = 20_000              # fewer rows than this are read whole: the subset would save nothing worth having
ROWS_PER_COLUMN = 20           # a subset thinner than this says little about the whole
# Later is worse: the subset's own noise is fitted. The whole starts wider again, so that rows which only the subset has
# settled may still move.
WIDTH_OF_HANDOVER = 0.02
WIDER = 5.0


def draw_rows(code, fraction, rng):
    """Rows of a subset and the factors of their weights: a rare class gets up to a quarter of the places."""
    positive, negative = np.flatnonzero(code > 0), np.flatnonzero(code < 0)
    size = int(fraction * (len(positive) + len(negative)))
    few, many = (positive, negative) if len(positive) < len(negative) else (negative, positive)
    n_few = min(len(few), max(int(fraction * len(few)), size // 4))
    n_many = min(len(many), size - n_few)
    rows = np.concatenate([rng.choice(few, n_few, replace=False), rng.choice(many, n_many, replace=False)])
    weights = np.repeat([len(few) / max(1, n_few), len(many) / max(1, n_many)], [n_few, n_many])
    order = np.argsort(rows, kind="stable")
    return rows[order].astype(np.intp), weights[order]


def worth_growing(rows):
    n = np.count_nonzero(rows.code) if rows.n_rows >= SMALLEST else 0
    return n >= SMALLEST and FRACTION * n >= ROWS_PER_COLUMN * rows.n_columns


def solve(rows, problem, settings, grow, seed, w=None, width=None, result=None):
    """Run `ContinuationNewton`, on a subset first if ``grow`` and if it pays; returns its `Result`.

    ``seed`` chooses the rows; ``w`` is a warm start, ``width`` the smoothing to start it with.
    """
    result = Result(np.zeros(rows.n_columns)) if result is None else result
    if not grow or w is not None or not worth_growing(rows) or settings.max_passes < 2 * rows.share:
        return ContinuationNewton(rows, problem, settings, result, width, w).run()
    subset = rows.subset(*draw_rows(rows.code, FRACTION, np.random.default_rng(seed)))

    def hand_over():                             # whoever looks in meanwhile finds the subset's point and counts
        result.w, result.n_iter, result.passes = first.w.copy(), first.result.n_iter, first.result.passes
        result.history = [row[:5] + [np.nan, np.nan] + row[7:] for row in first.result.history]

    def stop():                                  # neither the objective nor the gap is the whole problem's
        hand_over()
        return settings.stop is not None and settings.stop()

    first = ContinuationNewton(subset, problem, settings.for_subset(WIDTH_OF_HANDOVER, rows.share, stop))
    try:
        first.run()
    finally:
        hand_over()
    newton = ContinuationNewton(rows, problem, settings, result, WIDER * first.width, first.w, first)
    first = subset = None                        # what newton needs of them it has; their memory goes
    return newton.run()
