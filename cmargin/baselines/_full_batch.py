"""What the estimators on all rows of one problem at a time share."""

from cmargin._estimators.margin_trace import MarginTrace
from cmargin._estimators.one_vs_rest import LinearOneVsRest
from cmargin._estimators.validation import check_flag, check_parameter
from cmargin.solvers.full_batch import FullBatch
from cmargin.solvers.margin_pursuit import Settings, Start


class FullBatchClassifier(LinearOneVsRest):
    """Base of these estimators; a subclass gives ``_objective(blocks, problem, width)`` and ``_widths``."""

    _widths = (0.0,)
    _scale = 1.0         # of the location estimate in the trace
    _solver = FullBatch

    def _check_shared(self, **real):
        for name, interval in real.items():
            check_parameter(self, name, getattr(self, name), real=interval)
        check_flag(self, "trace", self.trace)
        self._check_common()

    def _train(self, blocks, start, deadline):
        settings = Settings("", 1.0, float(self._scale), False, float(self.l2), None, self.tol, self.max_passes,
                            self.fit_intercept, deadline)
        run = self._solver(blocks, lambda c, width: self._objective(blocks, c, width), self._widths, settings,
                           Start() if start is None else Start(*start), MarginTrace() if self.trace else None)
        fit, interruption = run.run(self._watch(blocks.X.dtype))
        self._store(fit, blocks.X.dtype)
        if interruption is None:
            self._warn(fit)
        return interruption
