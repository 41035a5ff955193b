"""Solve on a subset of the rows first, then on all of them (the paper's own suggestion for later work)."""

import numpy as np

from cmargin.solvers.continuation_newton import ContinuationNewton, Result

FRACTION = 0.1
SMALLEST = 20_000              # fewer rows than this are read whole: the subset would save nothing worth having
ROWS_PER_COLUMN = 20           # a subset thinner than this says little about the whole
WIDTH_OF_HANDOVER = 0.05       # later is worse: the subset's own noise is fitted, and the whole problem must undo it


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
    return rows.n_rows >= SMALLEST and FRACTION * rows.n_rows >= ROWS_PER_COLUMN * rows.n_columns


def solve(rows, problem, settings, grow, rng, w=None, width=None, result=None):
    """Run `ContinuationNewton`, on a subset first if ``grow`` and if it pays; returns its `Result`.

    ``rng`` is a numpy Generator; ``w`` a warm start, ``width`` the smoothing to start it with.
    """
    result = Result(np.zeros(rows.n_columns)) if result is None else result
    scout = None
    if grow and w is None and worth_growing(rows):
        chosen, weights = draw_rows(rows.code, FRACTION, rng)
        scout = rows.subset(chosen, weights)

        def stop():                              # whoever looks in meanwhile finds the subset's point
            result.w = first.w.copy()
            return settings.stop is not None and settings.stop()

        first = ContinuationNewton(scout, problem, settings.for_subset(WIDTH_OF_HANDOVER, stop))
        try:
            first.run()
        finally:
            result.w = first.w.copy()
        w, width = first.w, first.width
        result.passes, result.history = first.result.passes, first.result.history
        for row in result.history:               # neither the objective nor the gap is the whole problem's
            row[5] = row[6] = np.nan
    newton = ContinuationNewton(rows, problem, settings, result, width, w, scout)
    if scout is not None:
        newton.started, newton.seconds, newton.spent = first.started, first.seconds, first.spent
    if scout is not None and first.hessian is not None:
        newton.column_scale = np.diag(first.hessian) / scout.total_weight + newton.l2_each
    return newton.run()
