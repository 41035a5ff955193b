"""What a Newton solver may ask of the rows of a data matrix, wherever they are: the one seam of the package.

A pass holds the rows of one binary problem, labels and sample weights folded into a code s_i y_i, and what it keeps of
every row besides: the deficit u_i = 1 - y_i <w, x_i>, its change, a dual variable. None of that crosses the seam, in
either direction, but for `margins`. What a solver is told is a **sum over all rows**, so places compose: chunks in
order, ranks by one reduction of a packed buffer, partitions folded in order (`tests/elsewhere.py` is a home made of
homes). What it gathers are a few rows, in memory on its own side.

A home promises the same bits for any number of threads; homes over ranks or workers promise equality to rounding.
"""

from typing import Protocol


class RowPass(Protocol):
    n_rows: int                 # rows read by one look
    n_columns: int              # features, and the column of ones if there is one (the last)
    n_features: int
    total_weight: float         # sum of s
    share: float                # cost of one look in reads of the whole data

    # ------------------------------------------------------------ sums

    def start(self, primal=False):
        """w = 0: u = 1 in every row."""

    def set_loss(self, name):
        """"hinge", smoothed; or "squared_hinge", "logistic", which are smooth: widths mean nothing then, the objective
        is where the hinge is among the sums, and two sums more say what the dual variables are worth."""

    def pursue(self, level, scale):
        """Of margin pursuit, with this level and scale, instead: line value, slope and curvature are among the sums, no
        dual, and the gradient's second row is sum s y x in the first look after `start`."""

    def set_active(self, active):
        """Columns of the curvature block from the next look on: ascending indices, or None for all."""

    def look(self, direction, step, line_width, width, curvature_floor, with_hessian=True):
        """Move to u - step * y (X direction) and sum there; a read of X.

        ``direction`` is a Newton step; None: no new direction, another part of the last one, whose change is still
        known per row.

        Returns ``(sums, gradient, hessian)``. sums: smoothed hinge at ``line_width`` and its slope in the step,
        hinge, smoothed hinge at ``width``, predicted dual variables of the positive and of the negative rows, number
        of curvature rows, curvature of all rows. gradient: (3, n_columns), the sum of r x for r = s y a at ``width``
        and for the predicted dual variables clip(a + h du, 0, 1) of the positive and negative rows, where a, h belong
        to the rows before the step at ``line_width`` and du is the change of the full direction. hessian: upper
        triangle of sum s h x x' over the active columns, rows with h <= ``curvature_floor`` left out; None if not
        asked for. All three may be overwritten by the next call.

        h is the curvature with the dual variable as an unknown of its own; rows carry that variable from look to
        look. The first look after `start` knows none and takes F''(u), as every look does after start(primal=True).
        """

    def along(self, step, width):
        """(value, slope, curvature) of the loss in the step along the last direction; no read of X."""

    def hessian_product(self, x, width, curvature_floor=0.0):
        """sum s h x_i <x_i, x> where the last look was, for x None the diagonal sum s h x_i^2; a new array; a read.

        The second answer is the share of the rows that were read: CSR rows below the floor are left out.
        """

    def evaluate(self, w, squares=False):
        """Sum s F(y <w, x>) at ``w``, F not smoothed, and sum s x^2 or None: a read; the state stays as it is.

        A certificate rests on it: deficits followed step by step carry the rounding of every step.
        """

    def margins(self):
        """y <w, x> where the last look was, (n_rows,); no read of X. For the trace of margin pursuit and its one-shot
        scale, which are order statistics: nothing else asks for an array of the rows' length."""

    def sides(self):
        """How many rows are positive, and how many negative."""

    # ------------------------------------------------------------ a few rows, in memory where the solver is

    def gather_sample(self, positives, negatives, seed):
        """A pass over rows of either side chosen with these probabilities, their weights divided by them.

        A row is chosen by the hash of the seed and its place in the whole data: the choice does not depend on how
        rows are split.
        """

    def measure_rows(self, weight):
        """Let the next look also sum weight_j x_ij^2 for every row; the home keeps them."""

    def gather_heavy(self):
        """After that look: a pass over the rows with the largest such sums, few and far larger than the others, or
        None; and the mean of the sums. From the next look on these rows stay out of the curvature, and their dual
        variable is the slope after the step: the solver treats them exactly."""
