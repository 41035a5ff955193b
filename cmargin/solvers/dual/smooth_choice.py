"""Whether the dual is worth its sweeps where the loss is smooth, foreseen from a sweep over a sample of the rows.

Newton's method on all columns needs few looks there, so that a trial of the dual would cost a good part of it. Sweeps
need about

    6 + 5 kappa v reads,       kappa = mean |x|^2 / mean ridge,

where v is the part of the rows that have no margin of 1, and few, whatever kappa, where these are hardly more than the
columns; where they are some more, clusters need few and other rows hundreds, which a trial tells. v is the part of the
sample's second half that a sweep moves, each row when it is first met, so that it tells of rows to come rather than of
those that w was made of.
"""

import numpy as np

from cmargin._core.rows._dual_sweeps import DualSweeps
from cmargin.data.prices import reads_of_newton, sampled_reads
from cmargin.solvers.dual.dual_newton import stream_of

ROWS_A_COLUMN, PART = 5, 16    # of the sample, at least, and a row of so many;
SPARSE_ROWS = 500              # of sparse rows, which are not swept, at most
SEED = 31                      # of the order of its sweep
FEW = 0.4                      # part of the rows that is few if the sample has a row a column: of a larger one, whose w
                               # knows more, less as its root
FEW_A_COLUMN, SHORT_TRIAL = 4.0, 20      # of more rows a column than this so many reads tell; nor is it
MORE, MORE_A_COLUMN = 0.42, 1.4          # many if it is a larger part, and at most so many rows a column
FEW_SPARSE = 2.0               # sparse rows a column that are few
SPARSE_NUMBERS = 50_000        # entries from which on a sample is taken of more, since that costs as much
GAIN = 0.6                     # part of what Newton's method costs that the dual may be foreseen to cost
BY_PRODUCTS = 200              # reads that this costs of sparse rows at most
FIRST, EACH = 6.0, 5.0         # the 6 and 5 above


def few_rows(home):
    """Whether they are sparse and hardly more than their columns: few sweeps do, as a rule, whatever kappa."""
    return home.sparse and home.n_rows <= FEW_SPARSE * home.n_features


def foreseen(home, code, l2, loss, intercept, free):
    """Reads after which problem ``code`` (n_rows,) may be known not to cost less by the dual; 0: it is none to try."""
    enough = reads_of_newton(home, True)
    if not np.isfinite(enough) or few_rows(home):
        return np.inf
    if home.sparse and home.entries < SPARSE_NUMBERS:
        return 0
    enough = GAIN * (min(enough, BY_PRODUCTS) if home.sparse else enough)
    n, m = home.n_rows, home.n_features
    wanted = SPARSE_ROWS if home.sparse else max(ROWS_A_COLUMN * m, n // PART)
    picked = slice(None) if n <= wanted else spread(wanted, n)
    weights = np.abs(code[picked])
    if not weights.any():
        return 0
    try:
        with np.errstate(over="ignore"):
            sample = home.keep(picked).dual_rows(intercept, free, weights, l2 * n / weights.sum(), loss)
    except FloatingPointError:                   # Newton's method scales columns
        return 0
    if not sample.ridge.any():                   # nothing costs anything beside such a penalty
        return 0
    kappa = (sample.square - sample.ridge).mean() / sample.ridge.mean()
    if FIRST + EACH * kappa <= enough:
        return np.inf
    if home.sparse:
        return 0
    moved = part_moved(sample.row_pass(code[picked]))
    if FIRST + EACH * kappa * moved <= enough or (moved <= MORE and moved * n <= MORE_A_COLUMN * m):
        return np.inf
    if moved > FEW * np.sqrt(m / len(weights)):
        return 0
    if moved * n <= FEW_A_COLUMN * m:
        return np.inf
    return SHORT_TRIAL if sampled_reads(home, True)[0] == 0 else min(SHORT_TRIAL, enough)


def spread(count, n):
    """Some of n rows in steps of the golden section, which has no period; drawing them takes ten times as long."""
    return (np.arange(count) * 2_654_435_769 % 2**32 * n) >> 32


def part_moved(rows):
    """Of the rows that a first sweep meets last."""
    n = len(rows.code)
    a, half = np.zeros(n), n // 2
    sweeps = DualSweeps(rows, a, np.zeros(rows.shared.n_features + 1), stream_of(SEED).copy(), np.inf)
    sweeps.run(1, 0.0, half, np.inf, np.inf)
    before = a > 0
    sweeps.run(1, 0.0, np.inf, np.inf, np.inf)
    return np.count_nonzero((a > 0) & ~before) / (n - half)
