"""SmSVM as published: Algorithms 1-4 over the pass interface, to compare with; the steps are compiled."""

from cmargin._core.newton._published import PublishedNewton
from cmargin.solvers.newton.continuation import ContinuationNewton

WIDTH_MIN = 1e-6               # the paper's, for test runs


class PaperNewton(ContinuationNewton, PublishedNewton):
    """`ContinuationNewton` that takes the published steps (`cmargin._core.newton._published`)."""

    def __init__(self, rows, problem, settings, newton_tol, result, w=None):
        super().__init__(rows, problem, settings, result, w=w)
        self.way = (None, "paper")
        self.take_published_steps(newton_tol, WIDTH_MIN)
