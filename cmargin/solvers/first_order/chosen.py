"""What margin pursuit takes from a few rows before its first step: the units of the columns, and l2 where it is to."""

from dataclasses import replace

import numpy as np

from cmargin.data.columns import columns_of, without_digits
from cmargin.solvers import cost
from cmargin.solvers.first_order.leave_one_out import best_penalty

FEWEST, NUMBERS = 100, 1 << 22   # fewer, where they hold more than 32 MB of float64


def sample_size(blocks):
    width = max(1, blocks.source.entries // max(1, blocks.n_rows))
    size = min(max(cost.MOMENT_ROWS, 20 * blocks.n_problems), 2 * cost.MOMENT_ROWS)     # more for many classes
    return max(FEWEST, min(size, NUMBERS // width))


def settled(blocks, settings):
    """`PursuitSettings` with what the rows of ``blocks`` say: ``columns``, and ``l2`` where it is chosen by them."""
    X, labels, weights = blocks.some_rows(sample_size(blocks))
    columns = columns_of(X, settings.fit_intercept, np.float64)
    settings = replace(settings, columns=columns, lost=tuple(without_digits(X, blocks.source.dtype).tolist()))
    if not settings.chooses_l2:
        return settings
    counted = weights > 0
    found = best_penalty(X[counted], labels[:, counted], weights[counted], settings.fit_intercept, columns is not None)
    l2 = float(found / blocks.n_rows)
    return replace(settings, l2=l2 if np.isfinite(l2) else 0.0)              # beyond the range of numbers
