"""One call of `SmSVMClassifier.fit`: its data, its classes' results, and what becomes of them."""

import threading
from contextlib import suppress
from dataclasses import replace
from time import perf_counter

import numpy as np
from sklearn.utils import check_random_state

from cmargin._core.losses._losses import AT_ZERO
from cmargin._core.util._openmp import effective_n_threads
from cmargin._estimators.base import untrained
from cmargin._estimators.progress import say
from cmargin._runtime.checkpoint import NO_KEEPER
from cmargin._runtime.clock import RunClock, TimeUp
from cmargin.data.memory.dual_rows import BY_DUAL, FEWEST_READS, SMOOTH_SPARSE, worth_sweeping
from cmargin.data.memory.reduced_rows import worth_reducing
from cmargin.data.memory.row_pass import SMALL
from cmargin.data.prices import has_ridges, jumps, sample_for_products, sampled_reads, worth_columns, worth_products
from cmargin.solvers.dual.dual_newton import DualNewton
from cmargin.solvers.dual.smooth_choice import foreseen
from cmargin.solvers.newton.continuation import HISTORY, ContinuationNewton, Problem, Result, Settings
from cmargin.solvers.newton.growing import SMALLEST, may_near, ways
from cmargin.solvers.newton.parts import Parts
from cmargin.solvers.newton.published import PaperNewton
from cmargin.solvers.newton.slices import side_by_side

SMALLEST_NUMBER, LARGEST_NUMBER = float(np.finfo(float).tiny), float(np.finfo(float).max)
WARM_WIDTH = 0.1               # smoothing that a warm start begins with, at most
NOWHERE = {True: 0.5, False: 0.1}    # a gap that sweeps of sparse and of dense rows end with, too large for a start
UNFINISHED = ("waiting", "running", "stopped", "max_time")
FEW_NUMBERS = 100_000          # of X for all classes together: with fewer a fit takes a millisecond on one thread, two
                               # gain a tenth of it, and beside busy programs one may wait 4 ms for the other
LATE = 0.3                     # seconds that an interrupted fit may take to say how good the classes are


class SmSVMFit:
    """Nothing of the estimator is touched before `publish`."""

    def __init__(self, estimator, home, labels, weights, total_weight, started, keeper=NO_KEEPER):
        """``weights``: of mean 1, or None; ``total_weight``: their sum as they were given."""
        self.estimator, self.home, self.labels, self.weights = estimator, home, labels, weights
        self.n, self.m = home.n_rows, home.n_features
        e = estimator
        self.l2 = 1e-4 if e.l2 is None else float(e.l2)
        if e.C is not None:
            self.l2 = 0.0 if np.isinf(e.C) else 1 / min(max(float(e.C) * total_weight, SMALLEST_NUMBER), LARGEST_NUMBER)
        threads = effective_n_threads(estimator.n_jobs) if home.agreed is None else 1     # ranks have their own
        several = len(labels) >= threads > 1 and self.n * self.m * len(labels) >= FEW_NUMBERS
        self.n_threads = threads if self.n * self.m >= SMALL or several else 1
        self.intercept = bool(estimator.fit_intercept)
        self.free = self.m if self.intercept and not estimator.penalize_intercept else None    # column, not penalised
        self.problem = Problem(self.l2, float(e.l1), self.free, e.loss)
        self.clock = RunClock(None if estimator.max_time is None else started + estimator.max_time)
        self.interrupted = threading.Event()
        p = self.m + self.intercept
        self.warm = self._warm_start(p)
        self.results = [Result(np.zeros(p), status="waiting") for _ in range(len(labels))]
        self.start = self.reduced = self.dual = None
        self.keeper = keeper
        if e.linear_solver == "cg" and e.l1 > 0:
            raise ValueError("linear_solver='cg' needs l1=0: an l1 model is solved on its active block, by 'cholesky'.")
        if e.line_search != "exact" and e.loss != "hinge":
            raise ValueError("line_search='quadratic' needs loss='hinge'.")
        if e.linear_solver == "dual" and e.loss not in BY_DUAL:
            raise ValueError(f"linear_solver='dual' needs loss={' or '.join(map(repr, BY_DUAL))}.")
        self.by_dual = self.by_rows = False
        if home.agreed is not None:          # sums over all rows only
            return
        self.by_dual = e.loss in BY_DUAL and (home.in_memory or e.linear_solver == "dual") and \
            worth_sweeping(home, self.l2, e.l1, e.linear_solver, e.line_search, e.loss)
        if e.linear_solver == "auto" and not home.sparse and e.max_passes < FEWEST_READS:
            self.by_dual = False
        self.by_rows = worth_reducing(home, e.l1, e.linear_solver, e.line_search)
        if not home.in_memory and e.linear_solver == "auto":
            self.by_rows = False

    def _draw_seeds(self):
        """One seed a class, drawn only where rows will be, or their order; always the same for None."""
        random_state = self.estimator.random_state
        draws = self.by_dual or self.n >= SMALLEST or sampled_reads(self.home, jumps(self.estimator.loss))[0] > 0 \
            or not isinstance(random_state, int)
        if random_state is None or not draws:
            return np.zeros(len(self.labels), np.intp)
        return check_random_state(random_state).randint(2**31 - 1, size=len(self.labels))

    def _warm_start(self, p):
        e = self.estimator
        return np.hstack([e.coef_, np.asarray(e.intercept_)[:, None]], dtype=float)[:, :p] if e._goes_on else None

    # ------------------------------------------------------------ all classes

    def run(self):
        """Solve every class; whatever ends it, the results are those of the best points so far."""
        e, n_classes = self.estimator, len(self.labels)
        if self.warm is not None:                # what an interrupt leaves of a class not begun
            for result, w in zip(self.results, self.warm, strict=True):
                result.w = w.copy()
        self.home.between_chunks = self.clock.watch
        if n_classes > 1 and (e.max_time is not None or e.callback is not None):
            self.start_all(lambda: self.clock.late)
        self.seeds = self._draw_seeds()
        if self.keeper.found is not None:
            self._go_on_from(self.keeper.found)
        parts = Parts(self.keeper, self._rest)   # no attribute: it would be held by what it holds
        try:
            if self.home.shares_reads and n_classes > 1 and e.callback is None:
                side_by_side((self.ways(c, self.n_threads, parts) for c in range(n_classes)), 1, "stopped",
                             self.interrupted.set, self.home.problems_at_once(n_classes), parts)
            elif self._one_by_one():
                for c in range(n_classes):
                    for driver in self.ways(c, self.n_threads, parts):
                        driver.finish(parts)
            else:
                side_by_side((self.ways(c, 1, parts) for c in range(n_classes)), self.n_threads, "stopped",
                             self.interrupted.set, parts=parts)
        finally:
            self.use_the_start()

    def _one_by_one(self):
        """Whether one class is solved after the other, by all threads: the dual's sweeps have no use for several."""
        n_classes = len(self.labels)
        if n_classes < 2 or self.n_threads == 1 or self.estimator.callback is not None:
            return True
        return n_classes < self.n_threads and not self.by_dual

    def start_all(self, out_of_time):
        e = self.estimator
        if self.warm is not None:
            return                               # the last fit's weights are a start of their own
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"), suppress(TimeUp):
            weights = self.weights
            if weights is None and self.home.agreed is None:
                weights = np.ones(self.n)
            self.start = self.home.shared_start(self.labels, weights, self.intercept, self.l2, e.loss)
            self.start.evaluate(out_of_time)

    # ------------------------------------------------------------ a checkpoint

    def _rest(self, at_work):
        """What it holds besides the problems at work: seeds, and the results of those that have come to their end."""
        ended = [None if c in at_work or result.status in UNFINISHED else result
                 for c, result in enumerate(self.results)]
        return {"seeds": self.seeds, "results": ended}

    def _go_on_from(self, found):
        self.seeds = found["seeds"]
        self.results = [own if ended is None else ended
                        for own, ended in zip(self.results, found["results"], strict=True)]

    def ended(self):
        """How the fit ended, for `Keeper.end`."""
        late = any(result.status in UNFINISHED for result in self.results) and not self.interrupted.is_set()
        return "max_time" if late else "converged"

    # ------------------------------------------------------------ what is left of a fit that was stopped

    def use_the_start(self):
        """Weights of the shared start for classes that have nothing better."""
        stopped = [c for c, r in enumerate(self.results) if r.status in UNFINISHED]
        if not stopped:
            return
        if self.start is None:
            clock = RunClock(perf_counter() + LATE)
            self.home.between_chunks = clock.watch
            self.start_all(lambda: clock.late)
        for c in stopped:
            self.results[c].w, self.results[c].objective = self.best_of(c)

    def best_of(self, c):
        """Weights of class c and their objective: its own, or those of the shared start where they are better."""
        result = self.results[c]
        if self.start is None:
            at_zero = result.status == "waiting" and not result.w.any()        # every margin is 0
            return result.w, (AT_ZERO[self.estimator.loss] if at_zero else result.objective)
        if result.status not in UNFINISHED:
            return result.w, result.objective
        w = self.start.W[c]
        known = self.start.objective[c] + self.estimator.l1 * np.abs(w[:self.m]).sum()
        if self.intercept and self.free is None:
            known += self.l2 / 2 * w[self.m]**2 + self.estimator.l1 * abs(w[self.m])
        better = known < result.objective or not np.isfinite(result.objective) or not result.w.any()
        return (w, known) if better else (result.w, result.objective)

    # ------------------------------------------------------------ one class

    def ways(self, c, n_threads, parts):
        """Yield what brings problem c to its end, driver after driver, each to be finished before the next.

        ``parts``: the `Parts` of the fit's checkpoint.
        """
        result = self.results[c]
        if self.interrupted.is_set() or self.clock.late or result.status != "waiting":     # ended before a checkpoint
            return
        found = parts.begin(c)
        result.status = "running"
        code = self.labels.code(c, self.weights)
        made = []

        def rows():
            if not made:
                made.append(self.home.row_pass(code, intercept=self.intercept, n_threads=n_threads))
            return made[0]

        try:
            for driver in self.drivers(c, code, rows, n_threads, result, found):
                yield driver.of_problem(c, parts)
        except TimeUp:                           # while rows of a subset were gathered
            result.status = "max_time"
        stopped_on_a_subset = not np.isfinite(result.objective)
        if stopped_on_a_subset and (self.home.in_memory or not self.clock.late):
            last = ContinuationNewton(rows(), self.problem, Settings(), result, w=result.w)
            last.certify(result.status)
            yield last.of_problem(c, parts)
        parts.end(c, result.status)

    def drivers(self, c, code, rows, n_threads, result, found):
        """``rows()``: the pass over them, made when Newton's method first wants it.
        ``found``: what the problem gave for the checkpoint that the fit goes on from, or None."""
        e, stage = self.estimator, None if found is None else found["stage"]
        settings = Settings(e.tol, e.max_passes, e.smoothing, e.smoothing_decay, e.linear_solver, self.clock,
                            None if e.callback is None else self._asked_to_stop, tell=self._teller(c),
                            between=self._between_slices)
        w, before = None if self.warm is None else self.warm[c], None
        if w is not None:
            result.w = np.array(w, float)
        reads = self.reads_to_try(code) if self.by_dual and stage in (None, "dual") else 0
        if reads > 0:
            on_trial = e.linear_solver == "auto" and not self.home.sparse and not has_ridges(e.loss)
            before = DualNewton(self.dual_rows().row_pass(code), self.problem, settings, result, self.seeds[c], w,
                                reads, on_trial)
            before.begin_or_go_on(found)
            stage = found = None
            yield before
            if result.status != "left":
                if not before.certain():
                    yield from self.certified(before, rows(), settings, result)
                return
            result.status = "running"
            if result.gap <= NOWHERE[self.home.sparse]:
                w = result.w
            else:
                result.objective = np.inf        # what comes next begins anew
        rows, width, sampled = rows(), None if w is None else min(e.smoothing, WARM_WIDTH), None
        if self.problem.l1 > 0:
            products = worth_columns(self.home, self.problem, settings)
            if products > 0:
                rows.take_columns(self.home.columns())
        else:
            products = worth_products(self.home, self.problem, settings)
            sampled = sample_for_products(self.home, self.problem, settings, self.seeds[c])
        if stage == "whole":
            newton = ContinuationNewton(rows, self.problem, settings, result)
            may_near(newton)
            newton.go_on_from(found)
            yield newton
        elif self.by_rows:
            if stage in (None, "products") and products > 0:
                before = ContinuationNewton(rows, self.problem, settings, result, None, w, before, products, True)
                before.way = (None, "products")
                before.begin_or_go_on(found)
                stage = found = None
                yield before
                if result.status != "left":
                    return
                result.status, w = "running", result.w
            yield from self.reduced_drivers(rows, code, settings, result, w, width, n_threads, before, found)
        elif e.line_search == "quadratic":
            newton = PaperNewton(rows, self.problem, settings, e.newton_tol, result, w)
            newton.begin_or_go_on(found)
            yield newton
        else:
            # over files a subset each would be a read each, where all problems share every read
            grow = e.subset_growth == "auto" and (self.home.in_memory or not self.home.shares_reads
                                                  or len(self.labels) == 1)
            yield from ways(rows, self.problem, settings, grow, self.seeds[c], w, width, result, before, found,
                            products, sampled)

    def reads_to_try(self, code):
        """Reads that the dual may take before Newton's method goes on; 0: it is not begun with."""
        e, smooth, chooses = self.estimator, has_ridges(self.estimator.loss), self.estimator.linear_solver == "auto"
        reads = np.inf
        if smooth and chooses:
            reads = foreseen(self.home, code, self.l2, e.loss, self.intercept, self.free is not None)
        if reads == 0 or (smooth and not self.any_row_counts()):
            return 0
        reads = min(reads, self.dual_rows().enough_reads)
        if smooth and chooses and self.home.sparse:
            reads = min(reads, SMOOTH_SPARSE)
        if not np.isfinite(reads):
            return np.inf
        return min(reads if chooses else np.inf, e.max_passes / 2)

    def certified(self, before, rows, settings, result):
        """Yield what makes the dual's certificate anew on the rows as they are, for where rounding may matter."""
        whole = ContinuationNewton(rows, self.problem, settings, result, min(self.estimator.smoothing, WARM_WIDTH),
                                   result.w, before)
        whole.certify_with(result.status, before.dual_variables())
        yield whole
        if result.status == "running":
            whole.resume()
            yield whole

    def any_row_counts(self):
        """Whether there is a row that costs anything beside the penalty of a smooth loss."""
        try:
            with np.errstate(over="ignore"):
                return self.dual_rows().ridge.any()
        except FloatingPointError:               # squares of rows overflow; Newton's method scales columns
            if self.estimator.linear_solver == "dual":
                raise
            return False

    def dual_rows(self):
        """`DualRows`, made by the first class that wants them."""
        if self.dual is None:
            self.dual = self.home.dual_rows(self.intercept, self.free is not None, self.weights, self.l2,
                                            self.estimator.loss)
        return self.dual

    def wide_rows(self):
        """`WideRows`, made by the first class that wants them."""
        if self.reduced is None:
            self.reduced = self.home.reduced()
        return self.reduced

    def reduced_drivers(self, rows, code, settings, result, w, width, n_threads, before, found):
        """In as many unknowns as there are rows; what is reported is evaluated on the rows themselves."""
        e = self.estimator
        wide = self.wide_rows()
        small = wide.rows(code, self.intercept, n_threads)
        inner = replace(self.problem, free=None if self.problem.free is None else small.n_columns - 1)
        t = None if w is None else wide.into(w, self.intercept)
        inside = Result(np.zeros(small.n_columns) if t is None else t.copy(), passes=result.passes,
                        n_iter=result.n_iter, history=list(result.history))
        newton = ContinuationNewton(small, inner, settings, inside, width, t, before)
        newton.way = (None, "narrow")
        newton.begin_or_go_on(found)
        whole, left = None, True
        try:
            yield newton
            left = False
        finally:
            newton.store(inside)
            at = wide.out_of(inside.w, self.intercept)
            result.history, result.n_iter, result.passes = inside.history, inside.n_iter, inside.passes
            result.objective, result.dual = np.inf, 0.0
            whole = ContinuationNewton(rows, self.problem, settings, result, min(e.smoothing, WARM_WIDTH), at, newton)
            whole.certify_with(inside.status, small.dual_variables() if inside.n_iter else None)
            if left:
                whole.finish()
        yield whole
        if result.status == "running":           # nearly dependent rows: go on where nothing was lost
            whole.resume()
            yield whole

    def _between_slices(self):
        """The status to leave with, or None."""
        return "stopped" if self.interrupted.is_set() else "max_time" if self.clock.late else None

    def _asked_to_stop(self):
        if self.interrupted.is_set():
            return True
        self.publish()
        if self.clock.asked_to_stop(self.estimator.callback, self.estimator):
            self.interrupted.set()
        return self.interrupted.is_set()

    def _teller(self, c):
        """Prints a line a look, or None."""
        if not self.estimator.verbose:
            return None
        name = f"class {self.labels.classes[self.labels.of_problem(c)]!r}: " if len(self.labels) > 1 else ""

        def tell(result):
            last = dict(zip(HISTORY, result.history[-1], strict=True))
            say(self.estimator, f"{name}{last['passes']:.2f} passes, objective {last['objective']:.6g}, "
                                f"gap {last['gap']:.2g}, {last['seconds']:.2f} s")

        return tell

    # ------------------------------------------------------------ what is left

    def publish(self):
        """Set the fitted attributes to the best points so far."""
        e, results = self.estimator, self.results
        W = np.stack([self.best_of(c)[0] for c in range(len(results))])
        rows = [row for r in results for row in r.history]
        columns = np.array(rows, float).reshape(-1, len(HISTORY)).T
        of_class = np.repeat(np.arange(len(results)), [len(r.history) for r in results])
        vars(e).update(
            classes_=self.labels.classes, _multilabel=self.labels.multilabel,
            coef_=np.ascontiguousarray(W[:, :self.m]),
            intercept_=W[:, self.m].copy() if self.intercept else np.zeros(len(W)),
            duality_gap_=np.array([r.gap for r in results]),
            objective_=np.array([self.best_of(c)[1] for c in range(len(results))]),
            n_iter_=max(r.n_iter for r in results), n_passes_=float(sum(r.passes for r in results)),
            history_={**dict(zip(HISTORY, columns, strict=True)), "class": of_class},
        )

    def shortfall(self):
        """A sentence on all classes that stopped short of the tolerance, naming the worst gap; None for none."""
        short = [c for c, r in enumerate(self.results) if r.status not in ("converged", "decrement")]
        if self.interrupted.is_set() or not short:
            return None
        worst = max(short, key=lambda c: self.results[c].gap)
        result, e = self.results[worst], self.estimator
        reason = {"max_passes": f"max_passes={e.max_passes:g}", "max_time": f"max_time={e.max_time} s",
                  "waiting": f"max_time={e.max_time} s"}
        rounding = "rounding: the width is at its smallest" if e.loss == "hinge" else "rounding: no step gains any more"
        why = reason.get(result.status, rounding)
        gap = "no gap known (l1 = l2 = 0)" if np.isnan(result.gap) else f"a relative duality gap of {result.gap:.1e}"
        waiting = [c for c, r in enumerate(self.results) if r.status == "waiting"]
        unbegun = untrained(self.labels.classes, waiting, len(self.results))
        return (f"{type(e).__name__} stopped at {why} with {gap} where tol={e.tol:g} was asked ({len(short)} of "
                f"{len(self.results)} binary problems).{unbegun} Try a larger max_passes, max_time or tol, "
                "scaled features, or a larger l2.")
