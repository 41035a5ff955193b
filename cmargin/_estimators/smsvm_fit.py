"""One call of `fit` of SmSVM: its data, the results of its problems, one a class, and what becomes of them."""

import threading
from contextlib import suppress
from dataclasses import fields, replace
from time import perf_counter

import numpy as np
from sklearn.utils import check_random_state

from cmargin._core.util._openmp import effective_n_threads
from cmargin._estimators.base import untrained
from cmargin._estimators.by_column import (
    check_bounds,
    check_weight_of_columns,
    is_by_column,
    penalty_in_columns,
    refuse_by_column,
)
from cmargin._estimators.column_groups import check_groups, grouped
from cmargin._estimators.kept_weights import KeptWeights
from cmargin._estimators.linear_constraints import (
    check_constraints,
    is_constrained,
    missed_constraints,
    penalty_within,
)
from cmargin._estimators.progress import say
from cmargin._estimators.pruned import dtype_of, keep_alone, refuse_stored, stores_as_usual, training_tol, within
from cmargin._estimators.share_kept import ShareKept, keep_the_rest, said_of_pruning
from cmargin._estimators.together import solve_all_together
from cmargin._estimators.validation import NOT_NEGATIVE, InvalidParameterError, check_parameter
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.checkpoint import NO_CHECKPOINTER
from cmargin._runtime.clock import RunClock, TimeUp
from cmargin._runtime.deferred import Deferred
from cmargin.data.arrays import plain
from cmargin.data.memory.row_pass import SMALL
from cmargin.solvers import cost
from cmargin.solvers.explain import description, explanation, sentence
from cmargin.solvers.history import SMSVM
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.newton.parts import Parts
from cmargin.solvers.newton.slices import bytes_of_columns, side_by_side
from cmargin.solvers.newton.stages import Shared, Stages
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.plan import ProblemStats, chooses_rows, dual_is_tried, refuse
from cmargin.solvers.problem import Problem, Settings
from cmargin.solvers.result import Result

SMALLEST_NUMBER, LARGEST_NUMBER = float(np.finfo(float).tiny), float(np.finfo(float).max)
CHOSEN = {field.name for field in fields(Settings)}
UNFINISHED = ("waiting", "running", "stopped", "max_time")
COLUMN_VECTORS = 22            # with a number for every column, that a driver of steps by conjugate gradients has
LATE = 0.3                     # seconds that an interrupted fit may take to say how good the classes are


def check_penalty(estimator):
    """Raise unless ``l2`` or ``C``, ``l1``, bounds, ``groups`` and ``constraints`` are what they must be."""
    check_groups(estimator)
    check_weight_of_columns(estimator, "l2", estimator.l2, none=True)
    check_parameter(estimator, "C", estimator.C, real=(0.0, np.inf, "(0.0, inf]"), none=True)
    if estimator.l2 is not None and estimator.C is not None:
        raise InvalidParameterError(f"Give l2 or C, not both; got l2={estimator.l2!r} and C={estimator.C!r}.")
    check_weight_of_columns(estimator, "l1", estimator.l1)
    check_bounds(estimator)
    check_l1_ratio(estimator)
    check_constraints(estimator)
    if getattr(estimator, "groups", None) is not None:
        refuse_by_column(estimator, "groups=")


def check_l1_ratio(estimator):
    """Raise unless ``l1_ratio`` is None or a share that ``l2`` and ``l1`` do not contradict."""
    ratio, l2 = getattr(estimator, "l1_ratio", None), estimator.l2
    check_parameter(estimator, "l1_ratio", ratio, real=(NOT_NEGATIVE[0], 1.0, "[0.0, 1.0]"), none=True)
    if ratio is None:
        return
    if np.any(np.asarray(estimator.l1, float)):
        raise InvalidParameterError(f"Give l1 or l1_ratio, not both; got l1={estimator.l1!r} and l1_ratio={ratio!r}.")
    if l2 is not None and ratio > 0 and not (ratio < 1 and np.any(np.asarray(l2, float))):
        raise InvalidParameterError(f"l1_ratio={ratio!r} says which l1 goes with an l2 above 0, and l1_ratio=1 that "
                                    f"there is none; got l2={l2!r}. Give C, or l1 and l2.")


def weights_of_penalty(estimator, total_weight):
    """(l2, l1), each a number or (n_features,), that ``l2`` or ``C`` and ``l1`` or ``l1_ratio`` say."""
    strength = 1e-4 if estimator.C is None else l2_of(estimator.C, total_weight)
    ratio = getattr(estimator, "l1_ratio", None)
    if ratio is None:
        return strength if estimator.l2 is None else estimator.l2, estimator.l1
    if estimator.l2 is None:
        return (1 - ratio) * strength, ratio * strength
    return estimator.l2, np.asarray(estimator.l2, float)[()] * l1_over_l2(ratio)


def l1_over_l2(ratio):
    """Of an elastic net in which l1 is that part of l1 + l2; less than all of it."""
    return ratio / (1 - ratio)


def refuse_solver_over_places(estimator, how):
    """Raise where ``linear_solver`` reads single rows; ``how``: "with comm=", say."""
    if estimator.linear_solver in ("dual", "woodbury"):
        raise ValueError(f"linear_solver={estimator.linear_solver!r} needs all rows in one place; {how} use "
                         "'auto', 'cholesky' or 'cg'.")


def penalty_of(estimator, total_weight, n_features):
    """The penalty that ``l2`` or ``C``, ``l1`` or ``l1_ratio`` and bounds say for sample weights of that sum."""
    l2, l1 = weights_of_penalty(estimator, total_weight)
    if is_constrained(estimator):
        return penalty_within(estimator, l2, n_features)
    if is_by_column(estimator):
        return penalty_in_columns(estimator, l2, l1, n_features)
    return ElasticNet(float(l2), float(l1))


def l2_of(C, total_weight):
    """The l2 that stands for ``C``; 0 for infinity."""
    return 0.0 if np.isinf(C) else 1 / min(max(float(C) * total_weight, SMALLEST_NUMBER), LARGEST_NUMBER)


def settings_of(estimator, **more):
    """`Settings`: every field that the estimator has by the same name, and ``more``."""
    return Settings(**{name: value for name, value in vars(estimator).items() if name in CHOSEN}, **more)


def occurring_columns(source, penalty):
    """The columns of CSR rows in memory that a fit is made of, ascending, those in which no row has an entry left out.

    Hashed texts leave most of a million columns empty. A penalty holds their weights at 0, and a driver has vectors of
    all columns, which one thread goes through between two reads: 50 reads of 300,000 rows of 18 entries and 2^20
    columns took 2.7 s of one thread, over the 280,000 that occur 1.9. None: all columns, as where the entries' columns,
    of which a copy is made, are more numbers than those vectors have.
    """
    if not (source.in_memory and source.sparse and penalty.has_bound and penalty.holds_zero) \
            or source.agreed is not None or source.n_features <= cost.FACTOR_UP_TO_COLUMNS \
            or COLUMN_VECTORS * source.n_features <= source.entries:
        return None
    occurring = source.occurring(1)
    return occurring if COLUMN_VECTORS * (source.n_features - len(occurring)) > source.entries else None


def threads_of(estimator, source, n_problems):
    """Threads that a fit of so many problems uses."""
    threads = effective_n_threads(estimator.n_jobs) if source.agreed is None else 1     # ranks have their own
    entries = source.n_rows * source.n_features
    several = n_problems >= threads > 1 and entries * n_problems >= cost.THREADS_FROM_ENTRIES_OF_ALL_CLASSES
    return threads if entries >= SMALL or several else 1


class SmSVMFit:
    """Nothing of the estimator is touched before `publish`."""

    kind = "binary problems"

    def __init__(self, estimator, source, labels, weights, total_weight, started, checkpointer=NO_CHECKPOINTER,
                 l2_factor=1.0):
        """``weights``: of mean 1, or None; ``total_weight``: their sum as they were given."""
        e, penalty, self.all_columns = estimator, penalty_of(estimator, total_weight, source.n_features), \
            source.n_features
        penalty = grouped(penalty, getattr(e, "groups", None), source.n_features,
                          e.fit_intercept and e.penalize_intercept)
        if l2_factor != 1:
            penalty = penalty.in_units(l2_factor, 1.0, 1.0)
        self.occurring = occurring_columns(source, penalty)        # of X; None: all
        if self.occurring is not None:
            source = source.of_columns(self.occurring)
            penalty = penalty.of_columns(self.occurring, self.all_columns)
        self.estimator, self.source, self.labels, self.weights = estimator, source, labels, weights
        self.n, self.m = source.n_rows, source.n_features
        self.n_threads = threads_of(estimator, source, len(labels))
        self.intercept = bool(estimator.fit_intercept)
        self.free = self.m if self.intercept and not estimator.penalize_intercept else None    # column, not penalised
        self.problem = Problem(penalty, self.free, self._loss())
        self.clock = RunClock(None if estimator.max_time is None else started + estimator.max_time)
        self.interrupted = threading.Event()
        p = self.m + self.intercept
        every, warm = range(len(labels)), self._warm_start(p)
        self.warm = None if warm is None else [self._penalty_of(c).start(warm[c]) for c in every]
        zero = np.zeros(p)                       # of all: a solver that goes further has weights of its own
        zero.setflags(write=False)
        self.results = [Result(self._penalty_of(c).start(zero), status="waiting") for c in every]
        self.start, self.checkpointer = None, checkpointer
        if not source.in_memory:
            refuse_stored(e, "Training on rows that are not in memory")
        self.prune = within(e)
        self.kept = KeptWeights(len(labels), self.all_columns, self.occurring, dtype_of(e), self.prune is not None)
        self.in_vain: dict[int, float] = {}      # reads of problems that were not proven side by side
        self.settings = replace(settings_of(e, clock=self.clock), tol=training_tol(e))
        about = ProblemStats(self.problem.loss, self.problem.penalty, p, len(labels), self.warm is not None,
                             may_share=e.callback is None and not checkpointer.active)
        refuse(about, self.settings, source.describe())
        self.shared = Shared(source, self.problem, about, weights, self.intercept)
        self.shared.learn(self.settings)
        self.share = ShareKept(self) if self.prune == np.inf else None

    def _loss(self):
        """`Loss` of the problems; where they differ, of the first."""
        return self.estimator._loss()

    def _penalty_of(self, c):
        return self.problem.penalty

    def _draw_seeds(self):
        """One seed a class, drawn only where rows will be, or their order; always the same for None."""
        random_state = self.estimator.random_state
        s = self.shared
        draws = chooses_rows(s.stats, s.about, self.settings, s.known)
        if random_state is None or not (draws or not isinstance(random_state, int)):
            return np.zeros(len(self.labels), np.intp)
        return check_random_state(random_state).randint(2**31 - 1, size=len(self.labels))

    def _warm_start(self, p):
        e = self.estimator
        if not e._goes_on:
            return None
        coef = e.coef_ if self.occurring is None else e.coef_[:, self.occurring]
        return np.hstack([coef, np.asarray(e.intercept_)[:, None]], dtype=float)[:, :p]

    # ------------------------------------------------------------ all classes

    def trained(self):
        """`run`, with the checkpoint's end: what an estimator's `_leave` takes."""
        interruption = None
        try:
            with single_threaded_blas():
                self.run()
            self.checkpointer.end(self.ended())
        except KeyboardInterrupt as stop:
            interruption = Deferred(stop)
        except FloatingPointError:
            raise ValueError("X holds values so large that sums of their squares overflow; scale the features.") \
                from None
        return self, interruption, type(self).publish, type(self).shortfall

    def run(self):
        """Solve every class; whatever ends it, the results are those of the best points so far."""
        e, n_classes = self.estimator, len(self.labels)
        if self.warm is not None:                # what an interrupt leaves of a class not begun
            for result, w in zip(self.results, self.warm, strict=True):
                result.w = w.copy()
        self.source.between_chunks = self.clock.watch
        if n_classes > 1 and (e.max_time is not None or e.callback is not None):
            self.start_all(lambda: self.clock.late)
        self.seeds = self._draw_seeds()
        self._say_the_plan()
        if self.checkpointer.found is not None:
            self._go_on_from(self.checkpointer.found)
        parts = Parts(self.checkpointer, self._rest)   # no attribute: it would be held by what it holds
        try:
            solve_all_together(self)
            if self.source.shares_reads and n_classes > 1 and e.callback is None:
                each = bytes_of_columns(self.source.n_rows, self.source.n_features + 1)
                side_by_side((self.ways(c, self.n_threads, parts) for c in range(n_classes)), 1, "stopped",
                             self.interrupted.set, self.source.problems_at_once(n_classes, each), parts)
            elif self._one_by_one():
                for c in range(n_classes):
                    for driver in self.ways(c, self.n_threads, parts):
                        driver.finish(parts)
            else:
                side_by_side((self.ways(c, 1, parts) for c in range(n_classes)), self.n_threads, "stopped",
                             self.interrupted.set, parts=parts)
            if self.share is not None:
                self.share.finish()
        finally:
            self.use_the_start()
            keep_the_rest(self, [c for c, result in enumerate(self.results) if result.status not in UNFINISHED])
            self.share = None                    # it holds this, which would else outlive the fit

    def _one_by_one(self):
        """Whether one class is solved after the other, by all threads: the dual's sweeps have no use for several."""
        n_classes = len(self.labels)
        if n_classes < 2 or self.n_threads == 1 or self.estimator.callback is not None:
            return True
        s = self.shared
        return n_classes < self.n_threads and not dual_is_tried(s.stats, s.about, self.settings,
                                                                {outcome.what: outcome for outcome in s.known})

    def start_all(self, out_of_time):
        if self.warm is not None or self.problem.penalty.by_column:
            return                               # the last fit's weights are a start of their own; it knows no bounds
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"), suppress(TimeUp):
            weights = self.weights
            if weights is None and self.source.agreed is None:
                weights = np.ones(self.n)
            self.start = self.source.shared_start(self.labels, weights, self.intercept,
                                                  self.problem.penalty.l2, self.problem.loss)
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
        """How the fit ended, for `Checkpointer.end`."""
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
            self.source.between_chunks = clock.watch
            self.start_all(lambda: clock.late)
        for c in stopped:
            self.results[c].w, self.results[c].objective = self.best_of(c)
            if self.results[c].status != "waiting" and not stores_as_usual(self.estimator):
                keep_alone(self, c)

    def best_of(self, c):
        """Weights of class c and their objective: its own, or those of the shared start where they are better."""
        result = self.results[c]
        if c in self.kept.kept:
            w, b = self.kept.of(c)
            return np.append(w, b) if self.intercept else w, result.objective
        if self.start is None:
            at_zero = result.status == "waiting" and not result.w.any()        # every margin is 0
            return result.w, (self.problem.loss.facts["at_zero"] if at_zero else result.objective)
        if result.status not in UNFINISHED:
            return result.w, result.objective
        w = self.start.W[c]
        known = self.start.risk[c] + self.problem.penalty.value(w[:self.free])
        better = known < result.objective or not np.isfinite(result.objective) or not result.w.any()
        return (w, known) if better else (result.w, result.objective)

    # ------------------------------------------------------------ one class

    def shared_of(self, c):
        """`Shared`, where problem c is the one to be solved."""
        return self.shared

    def offset_of(self, c):
        """(n_rows,) where the slacks of problem c begin, or None: at 1."""
        return None

    def ways(self, c, n_threads, parts):
        """Yield what brings problem c to its end, driver after driver, each to be finished before the next, and tell
        who watches classes.

        ``parts``: the `Parts` of the fit's checkpoint.
        """
        yield from self._ways(c, n_threads, parts)
        self.results[c].passes += self.in_vain.pop(c, 0)
        if c not in self.kept.kept and self.results[c].status not in UNFINISHED and not stores_as_usual(self.estimator):
            keep_alone(self, c) if self.share is None else self.share.hear_alone(c)
        on_class = getattr(self.estimator, "_on_class", None)
        if on_class is not None:
            on_class(self.results[c].gap)

    def _ways(self, c, n_threads, parts):
        result = self.results[c]
        if self.interrupted.is_set() or self.clock.late or result.status != "waiting":     # ended before a checkpoint
            return
        found = parts.begin(c)
        result.status = "running"
        stop = None if self.estimator.callback is None else self._asked_to_stop      # no attributes: they hold ``self``
        settings = replace(self.settings, stop=stop, tell=self._teller(c), between=self._between_slices)
        stages = Stages(self.shared_of(c), self.labels.signed_weight(c, self.weights), settings, result, self.seeds[c],
                        n_threads, None if self.warm is None else self.warm[c], found, note=self._note(c),
                        offset=self.offset_of(c))
        try:
            for driver in stages.drivers():
                yield driver.of_problem(c, parts)
        except TimeUp:                           # while rows of a subset were gathered
            result.status = "max_time"
        stopped_on_a_subset = not np.isfinite(result.objective)
        if stopped_on_a_subset and (self.source.in_memory or not self.clock.late):
            last = ContinuationNewton(stages.rows, stages.shared.problem, Settings(), result, w=result.w)
            last.certify(result.status)
            yield last.of_problem(c, parts)
        parts.end(c, result.status)

    def _say_the_plan(self):
        """Where ``verbose`` is 2 or more, print the stages that a class is expected to go through, and why."""
        if self.estimator.verbose >= 2:
            s = self.shared
            said = description(s.stats, s.about, self._counted())
            stages = explanation(s.stats, s.about, self.settings, s.known)
            for line in (said, *stages, *said_of_pruning(self.estimator)):
                say(self.estimator, f"plan: {line}")

    def _counted(self):
        """How many problems there are, in words; None: as binary problems."""
        return None

    def _note(self, c):
        """Prints a line a stage, or nothing."""
        def note(stage):
            if self.estimator.verbose >= 2:
                say(self.estimator, f"{self._name(c)}{sentence(stage)}")

        return note

    def _name(self, c):
        return f"class {plain(self.labels.classes[self.labels.of_problem(c)])!r}: " if len(self.labels) > 1 else ""

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
        """Prints a line an evaluation, or None."""
        if not self.estimator.verbose:
            return None
        name = self._name(c)

        def tell(result):
            last = dict(zip(SMSVM, result.history[-1], strict=True))
            say(self.estimator, f"{name}{last['passes']:.2f} passes, objective {last['objective']:.6g}, "
                                f"gap {last['gap']:.2g}, {last['seconds']:.2f} s")

        return tell

    # ------------------------------------------------------------ what is left

    def publish(self):
        """Set the fitted attributes to the best points so far."""
        e, results = self.estimator, self.results
        best = {c: self.best_of(c) for c in range(len(results)) if c not in self.kept.kept}
        coef, intercept = self.kept.joined({c: (w[:self.m], w[self.m] if self.intercept else 0.0)
                                            for c, (w, _) in best.items()})
        rows = [row for r in results for row in r.history]
        columns = np.array(rows, float).reshape(-1, len(SMSVM)).T
        of_class = np.repeat(np.arange(len(results)), [len(r.history) for r in results])
        vars(e).update(
            classes_=self.labels.classes, _multilabel=self.labels.multilabel,
            coef_=coef, intercept_=intercept,
            duality_gap_=np.array([r.gap for r in results]),
            objective_=np.array([best[c][1] if c in best else r.objective for c, r in enumerate(results)]),
            n_iter_=max(r.n_iter for r in results), n_passes_=float(max(r.passes for r in results)),
            n_passes_per_class_=np.array([r.passes for r in results], float),
            history_={**dict(zip(SMSVM, columns, strict=True)), "class": of_class},
        )

    def _unbegun(self, waiting):
        """A sentence on the problems that time did not reach, or no words for none."""
        return untrained(self.labels.classes, waiting, len(self.results))

    def _said_of_no_minimum(self):
        """A sentence where the objective comes ever nearer 0 and is never there: classes apart, no penalty, and a loss
        that is nowhere 0; else None."""
        apart = [r for r in self.results if np.isfinite(r.gap)]
        if self.problem.penalty.has_bound or self.problem.loss.name != "logistic" or not apart \
                or self.interrupted.is_set():
            return None
        return (f"{type(self.estimator).__name__} has no minimum: classes are separable ({len(apart)} of "
                f"{len(self.results)} {self.kind}), and without a penalty the logistic loss falls towards 0 for ever "
                "longer weights. These reach it to rounding; give an l2 or l1 for weights that mean something.")

    def shortfall(self):
        """What is to be said of constraints that are missed, and of classes that stopped short; None for nothing."""
        said = [each for each in (missed_constraints(self), self._short_of_tol()) if each is not None]
        return " ".join(said) or None

    def _short_of_tol(self):
        """A sentence on all classes that stopped short of the tolerance, naming the worst gap; None for none."""
        short = [c for c, r in enumerate(self.results) if r.status not in ("converged", "decrement")]
        if self.interrupted.is_set() or not short:
            return self._said_of_no_minimum()
        worst = max(short, key=lambda c: self.results[c].gap)
        result, e = self.results[worst], self.estimator
        reason = {"max_passes": f"max_passes={e.max_passes:g}", "max_time": f"max_time={e.max_time} s",
                  "waiting": f"max_time={e.max_time} s", "rounded": f"coef_dtype={dtype_of(e)!r}"}
        smooth = self.problem.loss.facts["smooth"]
        rounding = "rounding: no step gains any more" if smooth else "rounding: the width is at its smallest"
        why = reason.get(result.status, rounding)
        unknown = "weights without a penalty" if self.problem.penalty.by_column else "l1 = l2 = 0"
        gap = f"no gap known ({unknown})" if np.isnan(result.gap) else f"a relative duality gap of {result.gap:.1e}"
        waiting = [c for c, r in enumerate(self.results) if r.status == "waiting"]
        unbegun = self._unbegun(waiting)
        return (f"{type(e).__name__} stopped at {why} with {gap} where tol={e.tol:g} was asked ({len(short)} of "
                f"{len(self.results)} {self.kind}).{unbegun} Try a larger max_passes, max_time or tol, "
                "scaled features, or a larger l2.")
