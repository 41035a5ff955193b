"""The margin distribution of the training rows after every pass (margin pursuit, Figures 3 to 5)."""

import numpy as np

from cmargin._core.util._margin_summary import summarise_problems

LEVELS = np.array([0.05, 0.25, 0.75, 0.95])
# in the order of `summarise_problems`
TRACE = ("margin_mean", "margin_median", "margin_location", "margin_variance", "margin_skewness", "margin_q05",
         "margin_q25", "margin_q75", "margin_q95", "margin_share_negative")


class MarginTrace:
    """Statistics of the margins y_ic h_c(x_i) of every problem, rows not weighted, averaged over the problems.

    ``margin_location`` is Catoni's estimate at the scale of the problem, the minimiser of its Q over the level
    (margin pursuit, eq. 2 and 5); ``margin_share_negative`` is the share of margins <= 0.
    """

    names, levels = TRACE, LEVELS

    def __init__(self):
        self.total, self.n_problems = np.zeros(len(TRACE)), 0

    @staticmethod
    def of(margins, scale):
        """Numbers (n_problems, 10) of problems with margins (n_problems, n_rows), C order and finite, and scales."""
        numbers = np.empty((len(margins), len(TRACE)))
        summarise_problems(margins, LEVELS, np.ascontiguousarray(scale, float), numbers)
        return numbers

    def add(self, margins, scale):
        """Margins of more problems, as in `of`."""
        self.total += self.of(margins, scale).sum(axis=0)
        self.n_problems += len(margins)

    def take(self):
        """Means over the problems added since the last call, in the order of `TRACE`."""
        means = self.total / max(1, self.n_problems)
        self.__init__()
        return means.tolist()
