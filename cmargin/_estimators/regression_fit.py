"""One call of `SmSVMRegressor.fit`: `SmSVMFit` of targets in units of their spread (`targets`)."""

from copy import copy
from dataclasses import replace

import numpy as np

from cmargin._estimators.smsvm_fit import SmSVMFit
from cmargin.solvers.history import SMSVM

OBJECTIVE, SMOOTHING = SMSVM.index("objective"), SMSVM.index("smoothing")


class RegressionFit(SmSVMFit):
    """``labels``: `Targets`, or `AgreedTargets` of rows in several places."""

    kind = "targets"

    def _loss(self):
        return self.labels[0].loss

    def _penalty_of(self, c):
        return self.labels[c].penalty(self.problem.penalty)

    def _warm_start(self, p):
        e = self.estimator
        if not e._goes_on:
            return None
        coef = np.atleast_2d(e._last_coef)
        coef = coef if self.occurring is None else coef[:, self.occurring]
        intercept = np.atleast_1d(e._last_intercept)
        return np.stack([target.into_units(*last)[:p] for target, *last in zip(self.labels, coef, intercept,
                                                                             strict=True)])

    def start_all(self, out_of_time):
        """Nothing: no start is shared by targets; weights 0 are that of each."""

    def best_of(self, c):
        result = self.results[c]
        at_zero = result.status == "waiting" and not result.w.any()
        return result.w, (self._at_zero(c) if at_zero else result.objective)

    def _at_zero(self, c):
        """The objective of weights 0, in units."""
        if self.source.agreed is not None:
            return sum(self.source.call("losses_at_zero", c)) / self.source.n_rows
        return float(np.average(self.labels.losses_at_zero(c), weights=self.weights))

    def shared_of(self, c):
        target, shared = self.labels[c], copy(self.shared)
        shared.problem = replace(self.problem, penalty=self._penalty_of(c), loss=target.loss)
        shared.about = replace(shared.about, penalty=shared.problem.penalty, loss=target.loss)
        return shared

    def offset_of(self, c):
        return self.labels.offset_of(c)

    def _name(self, c):
        return f"target {c}: " if len(self.labels) > 1 else ""

    def _counted(self):
        return f"{len(self.labels)} targets" if len(self.labels) > 1 else "one target"

    def _in_units(self, c, row):
        row, target = list(row), self.labels[c]
        row[OBJECTIVE] *= target.unit_of_objective
        row[SMOOTHING] *= target.unit
        return row

    def _teller(self, c):
        tell = super()._teller(c)
        if tell is None:
            return None
        return lambda result: tell(replace(result, history=[self._in_units(c, result.history[-1])]))

    def publish(self):
        """Set the fitted attributes to the best points so far, in the targets' own numbers."""
        e, m, every = self.estimator, self.m, range(len(self.labels))
        best = [self.best_of(c) for c in every]
        coef, b = self.kept.joined({
            c: (w[:m] * target.unit, w[m] * target.unit + target.centre if self.intercept else 0.0)
            for c, ((w, _), target) in enumerate(zip(best, self.labels, strict=True))})
        rows = [self._in_units(c, row) for c in every for row in self.results[c].history]
        columns = np.array(rows, float).reshape(-1, len(SMSVM)).T
        of_target = np.repeat(np.arange(len(best)), [len(r.history) for r in self.results])
        vars(e).update(
            coef_=coef[0].copy() if self.labels.flat else coef, intercept_=float(b[0]) if self.labels.flat else b,
            duality_gap_=np.array([r.gap for r in self.results]),
            objective_=np.array([value * target.unit_of_objective
                                 for (_, value), target in zip(best, self.labels, strict=True)]),
            n_iter_=max(r.n_iter for r in self.results), n_passes_=float(max(r.passes for r in self.results)),
            n_passes_per_target_=np.array([r.passes for r in self.results], float),
            history_={**dict(zip(SMSVM, columns, strict=True)), "target": of_target},
        )

    def _unbegun(self, waiting):
        if not waiting:
            return ""
        return f" {len(waiting)} of the targets were not reached; their weights are 0."
