"""What data sources whose rows are not in memory have in common: refusals in words, and what is made of a few rows'
copies.
"""

import numpy as np

from cmargin.data.converted import AT_ONCE
from cmargin.data.memory.source import MemorySource
from cmargin.data.stats import Described


class RowsElsewhere(Described):
    """A subclass has ``refuse(what)``, which raises ValueError."""

    reads = 0.0                  # counted where one serves all who ask

    def visit(self, see):
        size = max(1, AT_ONCE // (self.dtype.itemsize * max(1, self.n_features)))
        for lo in range(0, self.n_rows, size):
            see(lo, self.take(slice(lo, lo + size), self.dtype))

    def reduced(self, least=0.0, beside=None):
        self.refuse("linear_solver='woodbury'")

    def sum_of_squares(self, most_rows):
        self.refuse("linear_solver='dual'")

    def dual_rows(self, intercept, free, weights, l2, loss):
        self.refuse("linear_solver='dual'")

    def gram_matrix(self, intercept, free, whole=True):
        self.refuse("The Gram matrix of all rows")

    def one_class_rows(self, weights, nu, least):
        self.refuse("SmSVMOneClass")

    def lane_rows(self, weights, l2, l2_bias, n_problems):
        self.refuse("Problems side by side")

    def joint_rows(self, labels, weight, n_classes, l2, intercept, free, stream):
        self.refuse("multi_class='crammer_singer'")

    def softmax_pass(self, labels, weight, n_classes, intercept, n_threads):
        self.refuse("The multinomial optimum")

    def class_columns(self, columns, labels, weight, n_classes, intercept, n_threads, grouped):
        self.refuse("The multinomial optimum")


class FewInMemory:
    """The part of `StochasticRows` that reads few rows: the second moment behind an inverse above all.

    A subclass has ``source``, whose `take` copies rows, ``dtype`` and ``n_threads``.
    """

    by_batches = True
    _few = None, None

    @property
    def rows(self):
        """Of compiled steps that read one row at a time."""
        self.source.refuse("A stochastic method, which reads one row at a time,")

    def few(self, subset):
        """`StochasticRows` in memory over the rows of ``subset``, in its order; the last ones are kept."""
        if self._few[0] is not subset:
            rows = MemorySource(self.source.take(subset, self.dtype)).stochastic_rows(self.n_threads)
            self._few = subset, rows
        return self._few[1]

    def scores(self, W, bias, subset):
        return self.few(subset).scores(W, bias, np.arange(len(subset)))

    def mean_row(self, subset, weight):
        return self.few(subset).mean_row(np.arange(len(subset)), weight)

    def leading_pairs(self, subset, curvature, k, n_values, centre=None):
        return self.few(subset).leading_pairs(np.arange(len(subset)), curvature, k, n_values, centre)

    def mean_square(self, inverse, subset, weight=None):
        return self.few(subset).mean_square(inverse, np.arange(len(subset)), weight)

    def as_they_are(self):
        return self.rows

    def column_scale(self, weight):
        self.source.refuse("Scaling of columns")

    def over_columns(self, scale):
        self.source.refuse("Scaling of columns")
