"""The stages of one SmSVM problem: drivers, made one after the other as `cmargin.solvers.plan` says."""

from dataclasses import replace

import numpy as np

from cmargin.solvers import cost
from cmargin.solvers.dual.dual_newton import DualNewton
from cmargin.solvers.dual.one_class_dual import OneClassDual
from cmargin.solvers.dual.sample import SampleOfDual
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.newton.published import PaperNewton
from cmargin.solvers.newton.subset import shares, subset_of
from cmargin.solvers.plan import AGAIN, Outcome, next_stage
from cmargin.solvers.result import Result

# What a checkpoint calls a stage; one that has no name in it is never gone on from.
NAMES = {"dual": "dual", "products": "products", "reduced": "narrow", AGAIN: "narrow again", "subset": "subset",
         "newton": "whole", "published": "paper"}


class Shared:
    """What the problems of a fit have in common; views of the rows are made by the first that wants them.

    ``weights`` (n_rows,) of the rows, or None.
    """

    def __init__(self, source, problem, about, weights, intercept):
        self.source, self.problem, self.about, self.stats = source, problem, about, source.describe()
        self.weights, self.intercept = weights, intercept
        self.known = []                          # outcomes of probes that concern all problems
        self._dual, self._reduced = None, {}

    rms = scale = None                           # of all columns root mean squares and curvature, if these are known
    near = None                                  # curvature, with l2, about where a warm start begins

    def hear(self, driver):
        """A driver on all rows has ended."""

    def learn(self, settings):
        """Measure what decides for all problems alike."""
        stage = next_stage(self.stats, self.about, settings, self.known)
        if stage is not None and stage.what == "row_lengths":
            self.known.append(Outcome("probe", what=stage.what, numbers=self.source.sum_of_squares(cost.ROWS_WEIGHED)))

    def dual_rows(self):
        """`DualRows`."""
        if self._dual is None:
            self._dual = self.source.dual_rows(self.intercept, self.problem.free is not None, self.weights,
                                               self.problem.penalty.l2, self.problem.loss)
        return self._dual

    def reduced(self, least, beside=None):
        """`WideRows`; ``beside`` is the same for all problems."""
        if least not in self._reduced:
            self._reduced[least] = self.source.reduced(least, beside)
        return self._reduced[least]


class Stages:
    """One problem on its way through its stages.

    ``result``, of the problem, is kept up to date by every stage. ``seed``: of the rows of a subset, of a sample, and
    of the order of sweeps. ``w``: a warm start. ``found``: what the problem gave for the checkpoint that the fit goes
    on from. ``rows``, its `RowPass`, is made when a stage first wants it. ``note(stage)`` is called when one begins.
    """

    def __init__(self, shared, signed_weight, settings, result, seed, n_threads=1, w=None, found=None, rows=None,
                 note=lambda stage: None, a=None, offset=None):
        self.shared, self.signed_weight, self.settings = shared, signed_weight, settings
        self.result, self.seed = result, seed
        self.n_threads, self.w, self.found, self._rows, self.note = n_threads, w, found, rows, note
        self.offset = offset                     # (n_rows,) where slacks begin, see `DataSource.row_pass`; None: at 1
        self.a = a                               # dual variables to begin with, and those that the dual has ended with
        self.before = None                       # the last driver, from whose end the next goes on
        self.claim = self.sample = None          # what is to be certified; a few rows that were measured

    @property
    def rows(self):
        if self._rows is None:
            self._rows = self.shared.source.row_pass(self.signed_weight, intercept=self.shared.intercept,
                                                     n_threads=self.n_threads, offset=self.offset)
        return self._rows

    @property
    def rows_made(self):
        """`rows` where a stage has wanted them; None: none has."""
        return self._rows

    def drivers(self):
        """Yield what brings the problem to its end, driver after driver, each to be finished before the next."""
        shared, outcomes = self.shared, list(self.shared.known)
        if self.w is not None:
            self.result.w = np.array(self.w, float)
        if self.found is not None and self.found["stage"] != "dual":
            outcomes.append(Outcome("dual", "skipped"))
        while (stage := next_stage(shared.stats, shared.about, self.settings, outcomes)) is not None:
            if stage.kind == "probe":
                outcomes.append(self.probe(stage))
            elif self.found is not None and NAMES.get(stage.what or stage.kind) != self.found["stage"]:
                outcomes.append(Outcome(stage.kind, "skipped", stage.what))
            else:
                self.sample = None
                self.note(stage)
                outcomes.append((yield from getattr(self, stage.kind)(stage)))

    # ------------------------------------------------------------ numbers that only rows can tell

    def probe(self, stage):
        numbers = getattr(self, stage.what)()
        return Outcome("probe", "none" if numbers is None else "done", stage.what, numbers=numbers or ())

    def class_sizes(self):
        return self.rows.sides()[0]

    def penalty_counts(self):
        """Whether there is a row that costs anything beside the penalty of a smooth loss."""
        try:
            with np.errstate(over="ignore"):
                return (bool(self.shared.dual_rows().ridge.any()),)
        except FloatingPointError:               # squares of rows overflow; Newton's method scales columns
            if self.settings.linear_solver == "dual":
                raise
            return (False,)

    def length_ratio(self):
        s = self.shared
        self.sample = SampleOfDual(s.source, s.stats, self.signed_weight, s.problem.penalty.l2, s.problem.loss,
                                   s.intercept, s.problem.free is not None)
        return self.sample.length_ratio()

    def own_part(self):
        s = self.shared
        sample = SampleOfDual(s.source, s.stats, self.signed_weight, s.problem.penalty.l2, s.problem.loss,
                              s.intercept, s.problem.free is not None)
        return sample.own_part(s.source)

    def without_margin(self):
        return (self.sample.without_margin(),)

    # ------------------------------------------------------------ stages

    def begin(self, driver, kind):
        """Begin a stage, or go on with the one that a checkpoint is of."""
        driver.way = (None, NAMES[kind])
        driver.begin_or_go_on(self.found)
        self.found = None
        return driver

    def tell(self, driver):
        """A driver on all rows, before it begins, how large the columns are, where that is known. Returns it."""
        if self.shared.rms is not None:
            driver.take_rms(self.shared.rms)
        return driver

    def start_of(self, stage):
        """Weights to begin with, or None; what a stage before has reached counts only where one goes on from it."""
        if stage.start == "last":
            return self.result.w
        self.result.objective = np.inf
        return self.w if stage.start == "warm" else None

    def dual(self, stage):
        if self.shared.problem.one_class is not None:
            return (yield from self.dual_of_one_class(stage))
        rows = self.shared.dual_rows().row_pass(self.signed_weight, self.offset)
        driver = DualNewton(rows, self.shared.problem, self.settings, self.result, self.seed, self.w,
                            stage.reads, stage.on_trial, stage.first_check, self.a)
        yield self.begin(driver, "dual")
        self.a = driver.a / np.where(driver.source.shared.cost > 0, driver.source.shared.cost, 1.0)
        self.before = driver
        if self.result.status == "left":
            self.result.status = "running"
            return Outcome("dual", "left", gap=self.result.gap)
        self.claim = self.result.w, self.result.status, driver.dual_variables
        return Outcome("dual", "done" if driver.certain() else "uncertain")

    def dual_of_one_class(self, stage):
        one = self.shared.problem.one_class
        rows = self.shared.source.one_class_rows(self.signed_weight, one.nu, one.least)
        driver = OneClassDual(rows, one, self.settings, self.result, self.seed, self.w, stage.reads)
        yield self.begin(driver, "dual")
        self.before = driver
        if self.result.status == "left":
            self.result.status = "running"
            return Outcome("dual", "left", gap=driver.gap)
        return Outcome("dual")

    def products(self, stage):
        driver = ContinuationNewton(self.rows, self.shared.problem, self.settings, self.result, None,
                                    self.start_of(stage), self.before, stage.products, True)
        self.before = driver
        yield self.begin(self.tell(driver), "products")
        self.shared.hear(driver)
        if self.result.status == "left":
            self.result.status = "running"
            return Outcome("products", "left")
        return Outcome("products")

    def reduced(self, stage):
        """In as many unknowns as there are rows; what is reported is evaluated on the rows themselves.

        What a row has of its own beside others, of length e, adds 2 e^2 / l2 of the objective to the gap at most
        (losses are at most 1 in the mean, and so are sums of dual variables, about): up to tol it may be left out.
        """
        result, intercept, problem = self.result, self.shared.intercept, self.shared.problem
        settings, w, l2 = self.settings, self.start_of(stage), problem.penalty.l2
        if stage.what == AGAIN:
            settings, l2 = replace(settings, tol=settings.tol / 2), 0.0
        constraints = problem.penalty.constraints
        if constraints is None:
            wide = self.shared.reduced(np.sqrt(settings.tol * l2))
        else:                                    # the optimum is a combination of the rows and of theirs, every digit
            wide = self.shared.reduced(0.0, constraints.A[:, :self.shared.source.n_features])
        small = wide.rows(self.signed_weight, intercept, self.n_threads, self.offset)
        n_penalised = small.n_columns - (problem.free is not None)
        inner = replace(problem, free=None if problem.free is None else n_penalised,
                        penalty=problem.penalty.of_reduced(wide.beside, n_penalised))
        t = None if w is None else wide.into(w, intercept)
        inside = Result(np.zeros(small.n_columns) if t is None else t.copy(), passes=result.passes,
                        n_iter=result.n_iter, history=list(result.history))
        driver = ContinuationNewton(small, inner, settings, inside, stage.smoothing, t, self.before)
        self.before, left = driver, True
        self.begin(driver, stage.what or stage.kind)
        try:
            yield driver
            left = False
        finally:
            driver.store(inside)
            result.history, result.n_iter, result.passes = inside.history, inside.n_iter, inside.passes
            result.objective, result.dual = np.inf, 0.0
            status = inside.status
            if constraints is not None and status in ("stalled", "rounding"):
                status = "converged"             # the rows themselves then say that it is not, and go on
            self.claim = wide.out_of(inside.w, intercept), status, \
                small.dual_variables if inside.n_iter else lambda: None
            if left:
                self.certificate().finish()
        return Outcome("reduced", what=stage.what)

    def certificate(self):
        """The driver that makes a certificate anew on the rows as they are."""
        w, status, dual_variables = self.claim
        driver = ContinuationNewton(self.rows, self.shared.problem, self.settings, self.result,
                                    min(self.settings.smoothing, cost.WARM_SMOOTHING), w, self.before)
        driver.certify_with(status, dual_variables())
        self.before, self.claim = driver, None
        return driver

    def certify(self, stage):
        yield self.certificate()
        return Outcome("certify", "running" if self.result.status == "running" else "done")

    def subset(self, stage):
        """On a tenth of the rows, for as many as there are."""
        result, settings, rows, found = self.result, self.settings, self.rows, self.found
        self.start_of(stage)                     # what sweeps of the dual have reached is no more
        n_iter, history = (result.n_iter, list(result.history)) if found is None else found["before"]
        subset, reads = subset_of(rows, int(self.seed))
        if subset is None:
            return Outcome("subset", "empty")
        inner = Result(np.zeros(rows.n_columns), passes=result.passes)

        def hand_over():                         # a callback meanwhile finds the subset's point and counts,
            # neither objective nor gap: they are not the whole problem's. Of the driver, which calls it, it has nothing
            result.w, result.n_iter, result.passes = inner.w.copy(), n_iter + inner.n_iter, inner.passes
            result.history = history + [row[:5] + [np.nan, np.nan] + row[7:] for row in inner.history]

        def stop():
            hand_over()
            return settings.stop()

        part = settings.for_subset(cost.SUBSET_SMOOTHING_END, rows.share)
        driver = ContinuationNewton(subset, self.shared.problem, replace(part, stop=settings.stop and stop), inner,
                                    before=self.before)
        driver.more = {"before": (n_iter, history)}
        driver.count(reads)
        self.begin(driver, "subset")
        self.before = driver
        try:
            yield driver
        finally:
            driver.store(inner)
            hand_over()
        if driver.left:
            result.status = driver.status
            return Outcome("subset", "stopped")
        return Outcome("subset", smoothing=inner.width)

    def newton(self, stage):
        """On all rows."""
        if stage.start == "resume" and self.found is None:
            self.before.resume()
            driver, self.before = self.before, None
            yield driver
            return Outcome("newton")
        rows, seed, w = self.rows, self.seed, None
        if stage.columns:
            rows.take_columns(self.shared.source.columns())
        if stage.row_unknowns:
            rows.take_unknowns()
        given = {}
        if self.found is None:
            w, sampled = self.start_of(stage), stage.sampled
            scale = self.shared.scale if stage.working_set and stage.start == "warm" else None
            near = self.shared.near if stage.start == "warm" else None
            given = {"width": stage.smoothing, "w": w, "before": self.before, "products": stage.products,
                     "scale": scale, "near": near, "sampled": sampled and sampled._replace(seed=seed + sampled.seed)}
        driver = ContinuationNewton(rows, self.shared.problem, self.settings, self.result, **given)
        self.before = given = None               # what the driver needs of it it has; the memory goes
        if stage.working_set and (self.found is not None or w is not None):
            # from 0, over files, each problem would read its working set apart
            driver.let_use_working_set(shares(*rows.sides()[0], rows.n_columns), driver.has_scale)
        yield self.begin(self.tell(driver), "newton")
        self.shared.hear(driver)
        return Outcome("newton")

    def published(self, stage):
        """Algorithms 1 to 4."""
        driver = PaperNewton(self.rows, self.shared.problem, self.settings, self.settings.newton_tol, self.result,
                             self.start_of(stage))
        yield self.begin(driver, "published")
        return Outcome("published")
