"""A subset of the rows, to solve on first (the paper's own suggestion for later work)."""

import numpy as np

from cmargin.solvers import cost


def shares(positives, negatives, n_columns):
    """The part of either side that a subset takes: a rare class gets up to a quarter of the places.

    Of rows on one side alone, those of a regression or of one class, none is rare, and the geometric mean of a tenth
    of all rows and the fewest that say enough are taken (smsvm.md, "Fewer rows in the subset of a regression").
    """
    few, many = min(positives, negatives), max(positives, negatives)
    size = int(cost.SUBSET_SHARE * (positives + negatives))
    if few == 0:
        size = int(min(size, np.sqrt(float(size) * cost.SUBSET_ROWS_PER_COLUMN * n_columns)))
    n_few = min(few, max(int(cost.SUBSET_SHARE * few), size // 4))
    n_many = min(many, size - n_few)
    of_few, of_many = n_few / max(1, few), n_many / max(1, many)
    return (of_few, of_many) if positives < negatives else (of_many, of_few)


def subset_of(rows, seed):
    """A tenth of the rows or fewer, chosen by ``seed``, each for as many as it stands for; and the reads that took.

    A few rows say how large each column is, so that long rows can be chosen more often whatever the scales. Either side
    then weighs what it weighs in the whole. None in place of the rows if chance chose none.
    """
    counts, weights = rows.sides()
    pilot, _ = rows.gather_sample(*[min(1.0, cost.PILOT_ROWS / sum(counts))] * 2, seed + cost.PILOT_ROWS)
    column_weight, reads = None, pilot.share
    if pilot.n_rows:
        squares = pilot.objective(np.zeros(rows.n_columns), True)[1][:rows.n_features] / pilot.total_weight
        there = np.isfinite(squares) & (squares > 0)
        column_weight = np.divide(1.0, squares * max(1, there.sum()), where=there, out=np.zeros(len(squares)))
    part, read = rows.gather_sample(*shares(*counts, rows.n_columns), seed, column_weight)
    chosen = part.sides()[1]
    part.weigh_sides(*(whole / there if there > 0 else 1.0 for whole, there in zip(weights, chosen, strict=True)))
    return (part if part.n_rows else None), reads + read
