"""What a Newton solver may ask of the rows of a data matrix, wherever they are: the one seam of the package.

A pass holds the rows of one binary problem, labels and sample weights folded into a code s_i y_i, and one number per
row besides: the deficit u_i = 1 - y_i <w, x_i>. The solver never sees a row. Whatever it is told is a **sum over all
rows**, so places compose: chunks in order, ranks by one reduction of a packed buffer, partitions folded in order.

A home promises the same bits for any number of threads; homes over ranks or workers promise equality to rounding.
"""

from typing import Protocol


class RowPass(Protocol):
    n_rows: int                 # rows read by one look
    n_columns: int              # features, and the column of ones if there is one (the last)
    total_weight: float         # sum of s
    share: float                # cost of one look in reads of the whole data

    def start(self, primal=False):
        """w = 0: u = 1 in every row."""

    def set_active(self, active):
        """Columns of the curvature block from the next look on: ascending indices, or None for all."""

    def look(self, direction, step, line_width, width, curvature_floor, with_hessian=True):
        """Move to u - step * y (X direction) and sum there; the only method, with `hessian_product`, that reads X.

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

    def measure_rows(self, weight):
        """Let the next look also sum weight_j x_ij^2 for every row; returns the array that it will fill."""

    def set_exact(self, mask):
        """Rows (uint8 mask) of no curvature, their dual variable the slope after the step: see `heavy_rows`."""

    def along(self, step, width):
        """(value, slope, curvature) of the smoothed hinge in the step along the last direction; no read of X."""

    def hessian_product(self, x, width, curvature_floor=0.0):
        """sum s h x_i <x_i, x> where the last look was, for x None the diagonal sum s h x_i^2; a new array.

        The second answer is the share of the rows that were read: CSR rows below the floor are left out.
        """

    def set_loss(self, name):
        """"hinge", smoothed as above; or "squared_hinge", "logistic", which are smooth: widths mean nothing then, the
        objective is where the hinge is among the sums, and two sums more say what the dual variables are worth."""

    def evaluate(self, w, squares=False):
        """Sum s F(y <w, x>) at ``w``, F not smoothed, and sum s x^2 or None: a read; the state stays as it is.

        A certificate rests on it: deficits followed step by step carry the rounding of every step.
        """

    def combine(self, c):
        """sum c_i x_i; for dual variables found elsewhere. A read; the state stays as it is."""

    def subset(self, rows, weights):
        """A pass over the given rows (ascending), their weights multiplied by ``weights``; nothing is copied."""
