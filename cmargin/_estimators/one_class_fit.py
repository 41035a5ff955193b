"""One call of `SmSVMOneClass.fit`: rows opened and checked, the problem solved, what becomes of it."""

import threading
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from cmargin._estimators.base import IN_MEMORY_OF_RANKS
from cmargin._estimators.labels import of_mean_1, product_in_range
from cmargin._estimators.progress import say
from cmargin._estimators.shards import over_ranks
from cmargin._estimators.smsvm_fit import occurring_columns, settings_of, threads_of
from cmargin._estimators.validation import (
    check_elsewhere,
    check_set_by_hand,
    check_structure,
    clean,
    effective_n_threads,
    in_our_words,
    is_elsewhere,
    refuse_partitions,
    rows_wanted,
    take_as_given,
)
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.clock import RunClock, TimeUp
from cmargin._runtime.deferred import Deferred
from cmargin._runtime.fit_slots import FitSlot
from cmargin.data.open_here import opened, source_of
from cmargin.solvers.explain import description, explanation, sentence
from cmargin.solvers.history import SMSVM
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.newton.stages import Shared, Stages
from cmargin.solvers.one_class import OneClass, row_sum
from cmargin.solvers.plan import ProblemStats
from cmargin.solvers.problem import Problem, Settings
from cmargin.solvers.result import Result

ENDS = ("converged", "decrement")


@contextmanager
def open_unlabelled(estimator, X, sample_weight, comm=None):
    """A context with the data source of rows that are checked and their weights of mean 1, (n_rows,).

    Of ranks the weights are None; and the source, too, elsewhere than on rank 0, where all has been done by then.
    """
    if comm is not None:
        def rows():
            X_here, given = _checked(estimator, X, sample_weight, 0)
            source = source_of(X_here, np.ones(X_here.shape[0], np.intp))
            if not source.in_memory:
                raise ValueError(IN_MEMORY_OF_RANKS)
            return source, given

        with over_ranks(estimator, rows, comm) as (source, _, _):
            yield source, None
        return
    with FitSlot(waits=estimator.max_time is None):
        X, given = _checked(estimator, X, sample_weight)
        weights = np.ones(X.shape[0])
        if given is not None:
            given = _check_sample_weight(given, weights, dtype=np.float64, ensure_non_negative=True)
            weights = of_mean_1(product_in_range([given])[0])
        source = source_of(X)
        try:
            yield source, weights
        finally:
            source.let_go()


def _checked(estimator, X, sample_weight, least=1):
    """Rows, at least so many, in memory or elsewhere, and weights, whose numbers are not checked; parameters are."""
    estimator._check_parameters()
    refuse_partitions(estimator, X)
    X, _, sample_weight = opened(X, None, sample_weight)
    check_structure(X)
    if is_elsewhere(X):
        return check_elsewhere(estimator, X, True), sample_weight
    if not (clean(X, effective_n_threads(estimator.n_jobs)) and take_as_given(estimator, X, True)):
        X = in_our_words(validate_data)(estimator, X, ensure_min_samples=least, **rows_wanted(X))
    return X, sample_weight if X.shape[0] else None


class OneClassFit:
    """Nothing of the estimator is touched before `publish`; w, rho, objective and dual are as users see them."""

    def __init__(self, estimator, source, weights, started):
        self.estimator, self.weights, self.all_columns = estimator, weights, source.n_features
        clock = RunClock(None if estimator.max_time is None else started + estimator.max_time)
        self.interrupted = threading.Event()
        self.settings = replace(settings_of(estimator, clock=clock), between=self._between_slices,
                                tell=self._tell if estimator.verbose else None)
        self.result, self.one = Result(np.zeros(source.n_features + 1)), None
        self.w, self.rho, self.objective, self.gap = np.zeros(source.n_features), 0.0, 0.0, 0.0
        self.occurring, self.source, self.history = None, source, []
        self.signed_weight = weights if source.agreed is None else 0     # ranks know their problem by its number

    def run(self):
        """Solve; whatever ends it, the result is that of the best point so far. Returns a `Deferred` or None."""
        e, interruption = self.estimator, None
        rows = self._row_pass(self.source)
        with np.errstate(over="ignore", invalid="ignore"):
            self.one = one = OneClass.of_rows(float(e.nu), rows)
        self.source.between_chunks = self.settings.clock.watch
        if not np.isfinite(one.mean_square) or not np.isfinite(one.unit):
            raise ValueError("X holds values so large that sums of their squares overflow; scale the features.")
        if one.mean_square == 0:                 # every row is the origin
            self.result.status = "converged"
        elif one.nu == 1:
            self._all_rows(rows)
        else:
            try:
                self._solve(rows)
            except KeyboardInterrupt as stop:
                interruption = Deferred(stop)
            except FloatingPointError:
                raise ValueError("X holds values so large that sums of their squares overflow; scale the features.") \
                    from None
            self._take(self.result)
        return interruption

    def _row_pass(self, source):
        return source.row_pass(self.signed_weight, intercept=True, n_threads=threads_of(self.estimator, source, 1))

    def _all_rows(self, rows):
        """nu = 1: every dual variable is 1, w the mean of the rows, and rho any number from the largest score on."""
        m, n = rows.n_features, rows.total_weight
        self.w = row_sum(rows)[:m] / n
        size = float(self.w @ self.w) or 1.0              # margins keep the digits of scores that are about 1
        rows.evaluate(np.append(self.w / size, 0.0), 1.0, 1.0, 1.0, 0.0, with_hessian=False)
        scores = size * rows.margins()
        weights = self.weights if self.source.agreed is None else np.ones(len(scores))
        self.rho = float(scores[weights > 0].max())
        # of ranks, which have their weights, the mean score is |w|^2 by the choice of w
        mean = float(self.w @ self.w) if self.source.agreed is not None else \
            float(weights[weights > 0] @ scores[weights > 0]) / n
        self.objective = float(self.w @ self.w) / 2 - mean
        self.gap = self.one.gap(self.objective, -float(self.w @ self.w) / 2)
        self.result.status, self.result.passes = "converged", 3.0

    def _solve(self, rows):
        source = self.source
        self.occurring = occurring_columns(source, self.one.penalty)
        if self.occurring is not None:
            source = source.of_columns(self.occurring)
            rows = self._row_pass(source)
        warm, by_dual = self._warm_start(), True
        while True:
            self._solve_in_units(source, rows, warm, by_dual)
            one = self.one.finer(self.one.outside(self.result.dual)) if self.result.status == "stalled" else None
            if one is None:
                return
            warm, by_dual = self.result.w * (self.one.unit / one.unit), False
            warm[-1] = 1 - (1 - self.result.w[-1]) * (self.one.unit / one.unit)
            self._keep_history()
            self.one, self.result = one, Result(warm, passes=self.result.passes, n_iter=self.result.n_iter)

    def _solve_in_units(self, source, rows, warm, by_dual):
        """Bring the problem in the present units to its end, or to that of the time."""
        e, one, m = self.estimator, self.one, source.n_features
        problem = Problem(one.penalty, m, one.loss, one)
        about = ProblemStats(problem.loss, problem.penalty, m + 1, warm=warm is not None, has_dual=False,
                             fixed_sum=by_dual)
        self.result.w = np.zeros(m + 1)
        shared = Shared(source, problem, about, self.weights, True)
        shared.learn(self.settings)
        self._say_the_plan(shared)
        stages = Stages(shared, self.signed_weight, self.settings, self.result, self._seed(), w=warm, rows=rows,
                        note=lambda stage: say(e, sentence(stage)) if e.verbose >= 2 else None)
        with single_threaded_blas():
            try:
                for driver in stages.drivers():
                    driver.finish()
            except TimeUp:                       # while rows of a subset were gathered
                self.result.status = "max_time"
            finally:
                far = not source.in_memory and self.settings.clock.late          # a read of files takes long
                if not far and not np.isfinite(self.result.objective):           # it stopped on a subset: evaluate it
                    last = ContinuationNewton(stages.rows, problem, Settings(), self.result, w=self.result.w)
                    last.certify(self.result.status)
                    last.finish()

    def _say_the_plan(self, shared):
        if self.estimator.verbose >= 2:
            for line in (description(shared.stats, shared.about),
                         *explanation(shared.stats, shared.about, self.settings, shared.known)):
                say(self.estimator, f"plan: {line}")

    def _seed(self):
        state = self.estimator.random_state
        return 0 if state is None else int(check_random_state(state).randint(2**31 - 1))

    def _warm_start(self):
        """The last fit's weights in the driver's units, or None."""
        e = self.estimator
        if not (e.warm_start and hasattr(e, "coef_")):
            return None
        check_set_by_hand(e, "warm_start", ("coef_", "intercept_"))
        coef, intercept = np.asarray(e.coef_, float), np.asarray(e.intercept_, float)
        if coef.shape != (1, self.all_columns):
            raise ValueError(f"X has {self.all_columns} features, but the fit to go on from has coef_ of shape "
                             f"{coef.shape}")
        if intercept.shape != (1,) or not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise ValueError("warm_start needs finite coef_ of shape (1, n_features) and intercept_ of shape (1,).")
        kept = coef[0] if self.occurring is None else coef[0, self.occurring]
        return np.append(kept / self.one.unit, 1 + intercept[0] / self.one.unit)

    def _between_slices(self):
        return "max_time" if self.settings.clock.late else None

    def _tell(self, result):
        last = dict(zip(SMSVM, result.history[-1], strict=True))
        say(self.estimator, f"{last['passes']:.2f} passes, objective {self.one.outside(last['objective']):.6g}, "
                            f"gap {last['gap']:.2g}, {last['seconds']:.2f} s")

    # ------------------------------------------------------------ what is left

    def _take(self, result):
        """The driver's numbers as users see them."""
        one, m = self.one, len(result.w) - 1
        w = one.unit * result.w[:m]
        if self.occurring is None:
            self.w = w
        else:
            self.w[self.occurring] = w
        self.rho = one.unit * (1 - result.w[m])
        self.objective, dual = one.outside(result.objective), one.outside(result.dual)
        self.gap = one.gap(self.objective, dual) if np.isfinite(dual) else np.inf

    def _keep_history(self):
        """Note the entries of the result, with objectives as users see them."""
        columns = np.array(self.result.history, float).reshape(-1, len(SMSVM))
        columns[:, SMSVM.index("objective")] = self.one.outside(columns[:, SMSVM.index("objective")])
        self.history, self.result.history = [*self.history, columns], []

    def publish(self):
        """Set the fitted attributes."""
        self._keep_history()
        history = dict(zip(SMSVM, np.concatenate(self.history).T, strict=True))
        vars(self.estimator).update(
            coef_=self.w[None, :], offset_=np.array([self.rho]), intercept_=np.array([0.0 - self.rho]),
            duality_gap_=np.array([self.gap]), objective_=np.array([self.objective]),
            n_iter_=int(self.result.n_iter), n_passes_=float(self.result.passes), history_=history,
        )

    @property
    def surrounds(self):
        """Whether rows surround the origin: certified, and the optimum no larger than a gap is relative to."""
        return self.result.status in ENDS and -self.objective <= self.one.least

    def shortfall(self):
        """A sentence on a fit that stopped short of the tolerance, or None."""
        if self.result.status in ENDS:
            return None
        e = self.estimator
        why = {"max_passes": f"max_passes={e.max_passes:g}", "max_time": f"max_time={e.max_time} s"}.get(
            self.result.status, "rounding: the width is at its smallest")
        return (f"{type(e).__name__} stopped at {why} with a relative duality gap of {self.gap:.1e} where "
                f"tol={e.tol:g} was asked. Try a larger max_passes, max_time or tol, or scaled features.")
