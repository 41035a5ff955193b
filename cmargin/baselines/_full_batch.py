"""What the estimators on all rows of one problem at a time share."""

from cmargin._estimators.one_vs_rest import LinearOneVsRest
from cmargin._estimators.validation import check_parameter
from cmargin.solvers.first_order.full_batch import FullBatch
from cmargin.solvers.first_order.margin_pursuit import Start
from cmargin.solvers.problem import PursuitSettings


class FullBatchClassifier(LinearOneVsRest):
    """Base of these estimators; a subclass gives ``_objective(blocks, problem, width)``."""

    _intervals: dict[str, tuple] = {}      # of its own parameters, as `check_parameter` has them
    _widths = (0.0,)     # of the smoothing, one after the other
    _scale = 1.0         # of the location estimate in the trace
    _solver = FullBatch

    def _check_parameters(self):
        for name, interval in self._intervals.items():
            check_parameter(self, name, getattr(self, name), real=interval)
        super()._check_parameters()

    def _run(self, blocks, start, deadline):
        settings = PursuitSettings("", 1.0, float(self._scale), False, float(self.l2), None, self.tol, self.max_passes,
                                   self.fit_intercept, deadline)
        return self._solver(blocks, lambda c, width: self._objective(blocks, c, width), self._widths, settings,
                            Start(*start), self._margin_trace())
