"""Margin pursuit by Newton's method, on the row pass of the smoothed hinge: what Python does of it.

The steps are compiled (``_core/newton/_driver.pyx``). Many rows are begun on a tenth of them. Classes advance
side by side; with a callback after every pass, one after the other.
"""

import time
from dataclasses import replace

import numpy as np

from cmargin._core.newton._pursuit import PursuitSteps
from cmargin._runtime.checkpoint import NO_CHECKPOINTER
from cmargin._runtime.clock import RunClock, TimeUp
from cmargin._runtime.deferred import Deferred
from cmargin.data.loss import Loss
from cmargin.data.memory.row_pass import SMALL
from cmargin.solvers import cost
from cmargin.solvers.first_order.chosen import settled
from cmargin.solvers.first_order.margin_pursuit import Fit, one_shot_scale
from cmargin.solvers.newton.continuation import limits
from cmargin.solvers.newton.parts import Parts
from cmargin.solvers.newton.slices import InSlices, side_by_side
from cmargin.solvers.newton.subset import subset_of
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.plan import Outcome, ProblemStats
from cmargin.solvers.problem import Problem, Settings
from cmargin.solvers.pursuit_plan import next_pursuit_stage
from cmargin.solvers.result import Result

SEED_OF_SUBSET = 11          # the rows read first change the result within tol only
LATE = 0.3                   # seconds that a fit that was stopped may take to say how good the ridge regression is
UNFINISHED = ("waiting", "running", "max_time", "callback", "interrupted")
ORDER = ("interrupted", "diverged", "max_time", "callback", "stalled", "max_passes", "tol")     # the worst first


class PursuitNewton(InSlices, PursuitSteps):
    """One binary problem on its way; `run` does the work.

    ``rows``: `RowPass` with ``pursue`` and ``margins``. ``after_pass``, of the driver: called after every pass; a true
    answer ends the work. ``before``: the `PursuitNewton` of a tenth of the rows, to go on from. ``units``: `Columns` of
    ``rows``, where they are very different.
    """

    of_subset = False

    def __init__(self, rows, settings, start=None, *, result=None, trace=None, after_pass=None, before=None,
                 units=None, started=0.0):
        self.settings, self.trace, self.after_pass = settings, trace, after_pass
        self.result = Result(status="waiting") if result is None else result
        p, tol = rows.n_columns, cost.PURSUIT_SUBSET_GRADIENT if self.of_subset else settings.tol
        spent = {}
        if before is not None:
            spent["spent_seconds"] = before.result.seconds[0], 0.0, 0.0
            if before.status != "diverged":
                start, spent["fall"] = before.result.w, np.inf
        super().__init__(
            rows, Problem(ElasticNet(settings.l2), p - 1 if settings.fit_intercept else None,
                          Loss("margin_pursuit", (settings.level, settings.scale))),
            Settings(tol=tol, max_passes=settings.max_passes, clock=RunClock(settings.deadline)),
            Result(passes=0 if before is None else before.result.reads), np.zeros(p) if start is None else start,
            limits(), by_cg=p > cost.PURSUIT_FACTOR_UP_TO_COLUMNS, levels=None if trace is None else trace.levels,
            started=started, units=units, **spent)
        self.pauses = self.pauses_anyway

    def begin(self):
        self.source.pursue(self.settings.level, self.settings.scale)
        super().begin()

    @property
    def pauses_anyway(self):
        return self.after_pass is not None or self.settings.one_shot

    def attend(self):
        """What the compiled steps leave to Python, between two slices."""
        if self.asks == "margins":
            self.tell(self.trace.of(np.ascontiguousarray(self.source.margins())[None], [self.scale])[0])
        elif self.asks == "pause":
            self.look_in()
        elif self.asks is not None and self.settings.deadline is not None:
            self.leave_with("max_time" if time.perf_counter() > self.settings.deadline else None)
        if self.asks is None:
            self.store(self.result)

    def look_in(self):
        if self.after_pass is not None and self.status != "diverged":
            self.store(self.result)
            if self.after_pass(self):
                self.leave("callback")
                return
        if self.settings.one_shot and self.passes == 1 and self.status != "diverged":
            scale = one_shot_scale(self.source.margins(), self.settings.l2, self.source.n_rows)
            self.source.pursue(self.settings.level, scale)
            self.rescale(scale)
        else:
            self.go_on()


class OnSubset(PursuitNewton):
    """The same problem on a tenth of the rows, whose objective and gradient are not those of all."""

    of_subset, way = True, (None, "subset")

    def store(self, result):
        super().store(result)
        result.objective = result.gradient_norm = np.inf
        result.passes, result.status, result.history = 0, "running", []


class NewtonClasses:
    """All one-vs-rest problems, each with numbers of its own per row."""

    def __init__(self, blocks, settings, start, trace):
        self.blocks, self.settings, self.start, self.trace = blocks, settings, start, trace
        self.clock = RunClock(settings.deadline)
        K, d = blocks.n_problems, blocks.n_features
        W = np.zeros((K, d)) if start.W is None else start.W.astype(float)
        bias = np.zeros(K) if start.bias is None else start.bias.astype(float)
        self.fit = Fit(W, bias, np.full(K, settings.scale), np.full(K, np.inf), np.full(K, np.inf))
        self.results = [Result(status="waiting") for _ in range(K)]
        self.reported = [0] * K                  # passes of every class that are in the fit's history
        self.seconds = np.zeros((K, 2))          # in steps and in the trace, of the classes taken in,
        self.seconds_in_all = np.zeros(2)        # and their sum
        self.reads_of_all = np.zeros(K)          # to choose a tenth of them
        self.ridge, self.reads_before, self.stops = None, 0.0, False
        self.units = None

    def run(self, on_pass=None, checkpointer=NO_CHECKPOINTER):
        """Train; returns the fit and the KeyboardInterrupt that ended it, `Deferred`, or None."""
        interruption, parts = None, Parts(checkpointer, self.rest)     # no attribute: it would be held by what it holds
        if checkpointer.found is not None:
            self.go_on_from(checkpointer.found)
        self.blocks.source.between_chunks = self.clock.watch
        try:
            if not self.clock.late:
                self.settings = settled(self.blocks, self.settings)
                self.fit.l2, self.fit.lost = self.settings.l2, self.settings.lost
            if self.settings.deadline is not None or on_pass is not None:
                self.use_ridge(self.clock)
            self.begin_plan()
            self.units = self.blocks.units(self.settings.columns, self.settings.fit_intercept)
            if on_pass is not None:              # and classes are brought to their end one after the other
                for c in self.trained():
                    self.take_in(c)
            self.solve(on_pass, parts)
        except KeyboardInterrupt as ended:
            interruption = Deferred(ended)
        self.publish(interruption)
        checkpointer.end(self.fit.stopped)
        return self.fit, interruption

    def rest(self, at_work):
        """What a checkpoint holds besides the problems at work: results of those that have come to their end."""
        ended = [None if c in at_work or result.status in UNFINISHED else result
                 for c, result in enumerate(self.results)]
        return {"results": ended, "reads_of_all": self.reads_of_all, "seconds": self.clock.seconds}

    def go_on_from(self, found):
        self.reads_of_all, self.clock.begin = found["reads_of_all"], time.perf_counter() - found["seconds"]
        self.results = [own if ended is None else ended
                        for own, ended in zip(self.results, found["results"], strict=True)]

    def begin_plan(self):
        """What is known of all problems, and what is done for all of them."""
        self.stats, s = self.blocks.source.describe(), self.settings
        self.about = ProblemStats(Loss("margin_pursuit"), ElasticNet(s.l2), self.stats.n_features + s.fit_intercept,
                                  len(self.results), self.start.W is not None)
        stage = next_pursuit_stage(self.stats, self.about, s, [])
        self.known = [Outcome("reduced")] if stage.kind == "reduced" else []
        self.reads_before = self.blocks.reduce(stage.kind == "reduced")

    def solve(self, on_pass, parts):
        blocks, n_problems = self.blocks, self.blocks.n_problems
        n_threads = blocks.n_threads
        together = blocks.source.shares_reads      # all share every read, and a thread is one of those who read
        many = n_problems >= max(2, 1 if together else n_threads)
        if blocks.n_rows * blocks.n_features < SMALL and not many:
            n_threads = 1
        if many and on_pass is None:
            side_by_side((self.ways(c, n_threads if together else 1, parts) for c in range(n_problems)), n_threads,
                         "interrupted", at_once=blocks.source.problems_at_once(n_problems) if together else None,
                         parts=parts)
            return
        for c in range(n_problems):
            for driver in self.ways(c, n_threads, parts, on_pass):
                driver.finish(parts)

    def ways(self, c, n_threads, parts, on_pass=None):
        """Yield what brings problem ``c`` to its end, driver after driver, each to be finished before the next."""
        result = self.results[c]
        if self.stops or self.clock.late or result.status != "waiting":             # ended before a checkpoint
            return
        for driver in self.drivers(c, n_threads, on_pass, parts.begin(c)):
            yield driver.of_problem(c, parts)
        parts.end(c, result.status)

    def drivers(self, c, n_threads, on_pass, found):
        """``found``: what the problem gave for the checkpoint that the fit goes on from, or None."""
        result, settings, stage = self.results[c], self.settings, None if found is None else found["stage"]
        w = np.append(self.fit.W[c], self.fit.bias[c]) if self.start.W is not None else None
        rows, w = self.blocks.row_pass(c, settings.fit_intercept, n_threads, w)
        result.status, result.w = "running", np.zeros(rows.n_columns) if w is None else w
        part, outcomes = None, list(self.known)
        if stage == "whole":
            outcomes.append(Outcome("subset", "skipped"))
        while (follows := next_pursuit_stage(self.stats, self.about, settings, outcomes)) is not None:
            if follows.kind == "probe":
                outcomes.append(Outcome("probe", what=follows.what, numbers=rows.sides()[0]))
            elif follows.kind == "subset":
                try:
                    chosen, self.reads_of_all[c] = subset_of(rows, SEED_OF_SUBSET)
                except TimeUp:
                    result.status = "max_time"
                    return
                outcomes.append(Outcome("subset", "done" if chosen is not None else "empty"))
                if chosen is not None:
                    part = OnSubset(chosen, settings, result=result, units=self.units)
                    part.begin_or_go_on(found)
                    found = None
                    yield part
            else:
                after_pass = None if on_pass is None else lambda driver: self.asked_to_stop(on_pass, c, driver)
                newton = PursuitNewton(rows, self.settings, w, result=result, trace=self.trace, after_pass=after_pass,
                                       before=part, units=self.units, started=self.clock.begin)
                part = None                      # what newton needs of it it has; its memory goes
                newton.begin_or_go_on(found)
                yield newton
                outcomes.append(Outcome("pursuit"))

    def asked_to_stop(self, on_pass, c, driver):
        self.take_in(c)
        self.count_reads()
        began = self.clock.begin
        self.stops = bool(self.clock.asked_to_stop(on_pass, self.fit))
        driver.pass_over(self.clock.begin - began)       # a callback's time is nobody's
        self.settings = driver.settings = replace(self.settings, deadline=self.clock.deadline)
        return self.stops

    # ------------------------------------------------------------ what is left

    def trained(self):
        """Classes that were evaluated, if only on a tenth of the rows."""
        return [c for c, result in enumerate(self.results) if result.reads > 0]

    def take_in(self, c):
        """What is known of class ``c`` into the fit; its passes follow those of the classes before."""
        fit, result, d, intercept = self.fit, self.results[c], self.blocks.n_features, self.settings.fit_intercept
        w = self.blocks.out_of(result.w, intercept)
        fit.W[c], fit.bias[c] = w[:d], w[d] if intercept else 0.0
        fit.objective[c], fit.gradient_norm[c], fit.scale[c] = result.objective, result.gradient_norm, result.scale
        fit.passes = max(fit.passes, result.passes)
        steps, trace = (self.seconds_in_all - self.seconds[c]).tolist()
        self.seconds_in_all += result.seconds - self.seconds[c]
        self.seconds[c] = result.seconds
        for row in result.history[self.reported[c]:]:
            reads = self.reads_before + self.reads_of_all[c] + row[1]
            fit.add_to_history(self.trace, (int(row[0]), c, reads, row[2], steps + row[3], trace + row[4], *row[5:]))
        self.reported[c] = len(result.history)

    def count_reads(self):
        reads = self.reads_of_all.sum() + sum(result.reads for result in self.results)
        self.fit.reads = self.reads_before + reads / len(self.results)

    def publish(self, interruption):
        fit, trained = self.fit, self.trained()
        fit.name_history(self.trace)
        for c in trained:
            self.take_in(c)
        self.count_reads()
        stopped = [self.results[c].status for c in trained]
        if interruption is not None:
            stopped = ["interrupted"]
        elif len(trained) < len(self.results) and not self.stops:
            stopped.append("max_time")
        fit.stopped = min(stopped, key=ORDER.index)                  # the worst of what became of the classes
        if fit.stopped in ("interrupted", "max_time", "callback"):
            clock = RunClock(time.perf_counter() + LATE)
            self.blocks.source.between_chunks = clock.watch
            self.keep_the_better(trained, clock)

    def keep_the_better(self, trained, clock):
        """Of what a class has reached and the ridge regression; its own where time is too short to tell."""
        fit = self.fit
        own = np.isin(np.arange(len(fit.W)), trained) & np.isinf(fit.objective)        # reached on a tenth of the rows
        if own.any():
            fit.objective[own] = self.objectives(fit.W, fit.bias, clock)[own]
        self.use_ridge(clock)
        fit.untrained = [c for c in range(len(fit.W)) if c not in trained]
        if self.ridge is not None:
            W, bias, value = self.ridge
            fit.keep_best(W, bias, np.where(own & np.isinf(fit.objective), np.inf, value))

    def use_ridge(self, clock):
        """Weights for classes not trained: a ridge regression of all, drawn to the level; Q there until it is late."""
        if self.ridge is not None or self.start.W is not None:
            return
        fit, s = self.fit, self.settings
        try:
            W, bias = (s.level * part for part in self.blocks.ridge_start(s.fit_intercept, s.l2))
        except TimeUp:
            return
        self.ridge = W, bias, self.objectives(W, bias, clock)
        waiting = ~np.isin(np.arange(len(W)), self.trained())
        fit.W[waiting], fit.bias[waiting] = W[waiting], bias[waiting]

    def objectives(self, W, bias, clock):
        """Q of all problems at weights in the columns of X; inf where the clock's time was over first."""
        s, value, losses = self.settings, np.full(len(W), np.inf), iter(())      # of rows in files each is a read
        if self.blocks.source.in_memory or not self.blocks.source.shares_reads:
            losses = self.blocks.mean_losses(W, bias, s.loss, s.level, self.fit.scale)
        while not clock.late and (found := next(losses, None)) is not None:
            value[found[0]] = found[1]
        return value + s.l2 / 2 * (W * W).sum(axis=1)
