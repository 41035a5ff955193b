"""The margin distribution of the training rows after every pass (margin pursuit, Figures 3 to 5)."""

import numpy as np

from cmargin.margins.summary import summary_of

LEVELS = np.array([0.05, 0.25, 0.75, 0.95])
TRACE = ("margin_mean", "margin_median", "margin_location", "margin_variance", "margin_skewness", "margin_q05",
         "margin_q25", "margin_q75", "margin_q95", "margin_share_negative")
OF_SUMMARY = ("mean", "median", "location", "variance", "skewness")


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
        """Numbers of one problem, in the order of `TRACE`; margins (n_rows,), contiguous and finite."""
        found = summary_of(margins, float(scale), 0.05, LEVELS)
        return [*(found[name] for name in OF_SUMMARY), *found["quantiles"], found["share_nonpositive"]]

    def add(self, margins, scale):
        """Margins of one more problem."""
        self.total += self.of(margins, scale)
        self.n_problems += 1

    def take(self):
        """Means over the problems added since the last call, in the order of `TRACE`."""
        means = self.total / max(1, self.n_problems)
        self.__init__()
        return means.tolist()
