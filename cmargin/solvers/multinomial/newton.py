"""The regularised multinomial objective to its optimum, with a certificate: truncated Newton steps (ours).

    P(W, b) = (1/N) sum_i s_i [ln sum_c exp(h_c(x_i)) - h_{y_i}(x_i)] + (l2/2) |W|^2,   h_c(x) = <w_c, x> + b_c

that of scikit-learn's LogisticRegression at l2 = 1 / (C N), or 2 / (C N) of two classes, for which that has one row of
weights, w_1 - w_0. A Newton system is solved roughly by conjugate gradients,
preconditioned (`multinomial_inverse`); the step along the direction is found on scores, without reading the rows.
Products are made in the type of the rows; where that no longer suffices, in float64.
Its gap is certified (`multinomial.certificate`).
"""

from dataclasses import dataclass, field, replace

import numpy as np

from cmargin._core.multinomial._newton import ASTRAY, NEAR, ONWARD, SLICE_OVER, MultinomialNewton
from cmargin._core.multinomial._step import MultinomialStep, penalised
from cmargin._core.util._arrays import copied, transposed
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.checkpoint import NO_CHECKPOINTER, Resumable
from cmargin._runtime.clock import RunClock, TimeUp
from cmargin._runtime.deferred import Deferred
from cmargin.solvers import cost
from cmargin.solvers.history import MULTINOMIAL_OPTIMUM, add_entry
from cmargin.solvers.multinomial.certificate import dual_point
from cmargin.solvers.multinomial.inverse import (
    FIRST,
    LITTLE_READS,
    MOST_FLOPS,
    MOST_NUMBERS,
    PLENTY,
    RANK,
    SAMPLE,
    ClassInverse,
    KroneckerInverse,
    centred_pairs,
    class_inverse_cost,
    class_inverse_sample,
    no_pairs,
    pairs_cost,
    pairs_pay_off,
    rows_that_count,
    without_mean,
)

MOST_PRODUCTS = 60           # of one Newton system
TINY = np.finfo(float).tiny  # the objective of a single class is 0
ALL_OF_THEM = 1 << 60        # steps, products: no limit
BALANCED = 1e-5              # of tol and the objective: slope, in shares of a class, that an intercept may be left with
TELLING = 4096               # rows, about, whose probabilities tell the curvature of the classes
VAIN = 5                     # float64 certificates in a row that do not halve the gap: then it is rounding's
SHARPER = 0.1                # of tol, after each: the gradient tells the gap to first order in the intercepts
ABSENT = -60.0               # intercept of a class without rows: exp of it adds nothing to a float64 sum


@dataclass
class Settings:
    """What a run is to reach, and with what means."""

    l2: float                           # > 0; 1 / (C N) for scikit-learn's C, of two classes 2 / (C N)
    tol: float = 1e-4                   # relative duality gap, (P - D) / P, that ends the run
    fit_intercept: bool = True
    max_newton: int = 200
    # otherwise the gradient says when the gap is within tol, but for what the intercepts are off their best by
    certified: bool = True
    deadline: float | None = None       # on the clock of `time.perf_counter`
    n_threads: int = 1
    l1: float = 0.0                     # above 0: by `ColumnRun`, and l2 may be 0
    grouped: bool = False               # l1 weighs norms of columns, of the weights in all classes

    def __post_init__(self):
        if not (np.isfinite(self.l2 + self.l1) and self.l2 + self.l1 > 0 and min(self.l2, self.l1) >= 0):
            raise ValueError(f"l2 or l1 must be positive and finite for an optimum to exist, got {self.l2}, {self.l1}")
        if not self.tol > 0:
            raise ValueError(f"tol must be positive, got {self.tol}")


@dataclass
class Result:
    """What a run leaves; complete at every moment."""

    W: np.ndarray                    # (n_classes, n_features) float64
    bias: np.ndarray                 # (n_classes,) float64
    objective: float = np.inf        # P at W and bias; in float64, on the rows as given, where ``gap`` is finite
    gap: float = np.inf              # (P - D) / P there; infinite where the run ended before a certificate
    stopped: str = "max_newton"      # or "tol", "rounding", "max_time", "callback", "interrupted"
    from_ridge: bool = False         # stopped before a step had ended, and no better than ridge regression was then
    n_newton: int = 0
    # E and -V (n_classes, n_features) of the dual point behind ``gap``, which hold for every l2
    total: float = -np.inf
    v: np.ndarray | None = None
    reads: float = 0.0               # of all rows; what making preconditioners cost is counted in
    # one entry a Newton step, whose gap is an estimate from the gradient
    history: dict = field(default_factory=lambda: {name: [] for name in MULTINOMIAL_OPTIMUM})


def solve(source, labels, weight, n_classes, settings, start=None, on_step=None, checkpointer=NO_CHECKPOINTER,
          kind=None):
    """Minimise P over the rows of ``source``, from ``start``, a pair (W, bias), or None.

    ``labels`` (n_rows,) are 0 .. n_classes - 1; a class without rows gets weights 0 and an intercept that keeps it from
    being predicted. ``weight`` (n_rows,), or None for ones, is given a mean of 1. ``on_step`` is called with the
    `Result` so far after every Newton step, and stops the run by a true answer. Returns the `Result`, and the
    KeyboardInterrupt that ended the run, `Deferred` until the result is stored, or None.
    """
    return Optima(source, labels, weight, n_classes, settings, start, kind).found(on_step, checkpointer)


class Optima:
    """Of one set of rows at one penalty and then, from there, at another one; parameters are those of `solve`."""

    def __init__(self, source, labels, weight, n_classes, settings, start=None, kind=None):
        self.n_classes = n_classes
        if source.agreed is not None:
            self.met = np.flatnonzero(source.agreed.class_weights > 0)
            self.run = (kind or Run)(source, self.met, None, len(self.met), settings)
        else:
            labels = np.asarray(labels, dtype=np.int64)
            s = np.ones(len(labels)) if weight is None else np.asarray(weight, dtype=np.float64)
            if not (np.all(np.isfinite(s)) and np.all(s >= 0) and s.sum() > 0):
                raise ValueError("weights must be finite, not negative, and not all zero")
            s = s * (len(s) / s.sum())
            self.met = np.flatnonzero(np.bincount(labels, s, n_classes) > 0)
            place = np.zeros(n_classes, np.int64)
            place[self.met] = np.arange(len(self.met))
            self.run = (kind or Run)(source, place[labels], s, len(self.met), settings)
        if start is not None:
            self.run.begin_at(start[0][self.met], start[1][self.met])

    def found(self, on_step=None, checkpointer=NO_CHECKPOINTER):
        """What `solve` returns."""
        run, interrupted = self.run, None
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):     # numbers too large are refused
            try:
                run.go(None if on_step is None else lambda result: on_step(self.of_all_classes(result)), checkpointer)
            except TimeUp:
                run.result.stopped = "max_time"
            except KeyboardInterrupt as interruption:
                run.result.stopped, interrupted = "interrupted", Deferred(interruption)
        checkpointer.end(run.result.stopped)
        return self.of_all_classes(run.result), interrupted

    def weights_and_gradient(self):
        """(n_features, n_classes met) weights at the point to begin at, and the risk's gradient by them; one read."""
        run, n = self.run, self.run.source.n_features
        with single_threaded_blas():
            run.here = run.source.risk(run.V)
        return run.V[:n], run.here[1][:n]

    def of_all_classes(self, result):
        return result if len(self.met) == self.n_classes else spread(result, self.met, self.n_classes)

    def at(self, l2, before=None):
        """The same at another penalty, from the last point; or, where ``before`` is V at a penalty before that, from
        the best point on the line through both."""
        run, spent = self.run, self.run.spent
        run.pose(l2)
        if before is not None:
            # products along a path count together: once they cost as much, blocks of the classes serve all that follow
            run.before, run.spent = before, spent
        return self.found()


def spread(part, met, n_classes):
    """The result over all classes, from that over the classes that have rows."""
    W, bias = np.zeros((n_classes, part.W.shape[1])), np.full(n_classes, ABSENT)
    W[met], bias[met] = part.W, part.bias
    v = part.v
    if v is not None:
        v = np.zeros_like(W)
        v[met] = part.v
    return replace(part, W=W, bias=bias, v=v)


class Run(Resumable):
    """The data of `Optima`, its point, its clock."""

    made_again = ("settings", "source", "share", "order", "newton", "inverse", "kronecker", "mean", "class_rows",
                  "class_copy", "here")

    def __init__(self, source, labels, weight, n_classes, settings):
        self.settings, self.clock = settings, RunClock(settings.deadline)
        self.source = source.softmax_pass(labels, weight, n_classes, settings.fit_intercept, settings.n_threads)
        self.source.between_slices = self.clock.watch
        self.share = self.source.shares
        self.V = np.zeros((self.source.n_columns, n_classes))
        if settings.fit_intercept:
            self.V[-1] = np.log(self.share) - np.log(self.share).mean()
        self.stride = max(1, self.source.n_rows // TELLING)
        self.order = np.random.default_rng(0).permutation(self.source.n_rows)      # of rows in subsets
        self.inverse = self.kronecker = self.class_rows = self.class_copy = self.class_sums = None
        self.plain, self.mean = False, None      # whether the Kronecker inverse has no pairs; mean row of a sample
        self.here, self.start = None, self.V.copy()      # risk and its gradient at V if known; a point without weights
        self.before = None                               # V at the penalty before the last, to lead on from
        self.pose(settings.l2)

    def pose(self, l2):
        """Begin at V, with this penalty."""
        source, self.settings = self.source, replace(self.settings, l2=l2)
        known = self.kronecker
        if known is not None:
            self.kronecker = None if self.plain else KroneckerInverse(source, known.pairs, l2)
            if self.inverse is known:
                self.inverse = self.kronecker
        self.spent, self.products, self.built = 0, 0, 0.0
        self.newton = MultinomialNewton(MultinomialStep(source.kernel, l2, MOST_PRODUCTS, source.per_call),
                                        self.settings.tol, self.stride, cost.MULTINOMIAL_SINGLE_STEPS)
        self.newton.standing = np.inf, self.V, np.inf, 0         # the lowest point as long as there is no other
        self.best, self.vain, source.reads = np.inf, 0, 0.0
        self.result = Result(*self.split(self.V))

    def begin_at(self, W, bias):
        self.V[:self.source.n_features] = W.T
        if self.settings.fit_intercept:
            self.V[-1] = bias
        self.V = without_mean(self.V)
        self.result = Result(*self.split(self.V))

    def split(self, V):
        W = transposed(V[:self.source.n_features])
        return W, V[-1].copy() if self.settings.fit_intercept else np.zeros(V.shape[1])

    def looked_at(self, risk, gradient):
        """(P, its gradient, the gap left to features) at V, from the risk's."""
        source = self.source
        penalty, G, gap = penalised(self.V, gradient, self.settings.l2, source.n_features, self.mean)
        return risk + penalty, G, gap

    def go(self, on_step, checkpointer=NO_CHECKPOINTER):
        if checkpointer.found is not None:
            self.go_on_from(checkpointer.found)
        most = ALL_OF_THEM if on_step is None and checkpointer.path is None else 1
        if checkpointer.found is None and self.before is not None:
            self.lead_on()
        ended = checkpointer.found is None and self.arrive(*(self.here or self.source.risk(self.V)), on_step)
        while not ended:
            checkpointer.offer(self.result.reads, self.snapshot)
            n, limit = self.result.n_newton, self.settings.max_newton
            if not self.source.precise and n < cost.MULTINOMIAL_SINGLE_STEPS:
                limit = min(limit, cost.MULTINOMIAL_SINGLE_STEPS)
            found = self.steps(min(most, limit - n))
            ended = self.arrive(self.newton.step.risk, self.newton.step.gradient, on_step, found)

    def lead_on(self):
        """Move V on, along the line from the point ``before``, to about the lowest objective there; a read at most.

        A path is nearly a line in the logarithm of the penalty: the first point of a fit is closer by far.
        """
        source, step, D = self.source, self.newton.step, self.V - self.before
        self.before, self.here = None, self.here or source.risk(self.V)
        value, G, _ = self.looked_at(*self.here)
        if not np.sum(D * G) < 0:
            return
        self.here = None                         # scores and V part until both have moved
        step.begin(None, None, self.V, G, value, 0.0, source.scores, source.probs, source.change, D)
        while not source.go(step):
            self.clock.watch()
        self.V, self.here = self.V + step.step * D, (step.risk, copied(step.gradient))
        source.reads += 1.0

    def arrive(self, risk, gradient, on_step, found=None):
        """Look at the point V, with its risk and gradient; whether this is the end. ``found``: what it is, if known."""
        source, s, result = self.source, self.settings, self.result
        self.here = risk, gradient
        value, G, gap = self.looked_at(risk, gradient)
        found = self.newton.judged(self.V, value, gap) if found is None else found
        if found != ONWARD:
            if found != ASTRAY and not s.certified:
                self.note(value, gap)
                result.stopped = "tol" if found == NEAR else "rounding"
                return True
            if self.turn_back() if found == ASTRAY else self.certify(VAIN if found == NEAR else 1):
                return True
            value, G, gap = self.looked_at(*source.risk(self.V))
        elif result.n_newton >= cost.MULTINOMIAL_SINGLE_STEPS and not source.precise:
            source.keep(np.float64)
            self.here = source.risk(self.V)
            value, G, gap = self.looked_at(*self.here)
        self.note(value, gap)
        if on_step is not None and self.clock.asked_to_stop(on_step, result):
            result.stopped = "callback"
            return True
        if result.n_newton == s.max_newton:
            self.certify()
            return True
        self.value, self.G = value, G
        return False

    def turn_back(self):
        """To the lowest point, or to the start where even that one is wrong in float64: with columns of far too unequal
        size the scores that steps are found on are not those of the weights. Is this the end?"""
        for V in (self.newton.low_V.copy(), self.start):
            self.V = V
            ended = self.certify()
            if self.newton.may_be(self.result.objective):
                break
        if not np.isfinite(self.result.objective):
            raise ValueError("X holds values so large that sums over its rows are not finite; scale the features.")
        self.newton.standing = self.result.objective, self.V, np.inf, 0
        return ended

    # ---- a checkpoint

    def snapshot(self):
        source, inverse = self.source, self.inverse
        return {**super().snapshot(), "reads": source.reads, "of_rows": source.kept(),
                "standing": self.newton.standing, "prepared": self.kronecker is not None,
                "n_class_rows": 0 if self.class_rows is None else len(self.class_rows),
                "probs_of_inverse": None if inverse is self.kronecker else inverse.probs}

    def go_on_from(self, state):
        source, reads = self.source, state.pop("reads")
        self.clock.go_on_from(state.pop("clock"))
        of_rows = state.pop("of_rows")
        prepared, probs, n = state.pop("prepared"), state.pop("probs_of_inverse"), state.pop("n_class_rows", 0)
        self.newton.standing = state.pop("standing")
        super().go_on_from(state)
        source.take_back(of_rows)
        if prepared:
            self.prepare(self.plain)
            self.class_rows = np.sort(self.order[:n]) if n else self.class_rows
        if probs is not None:
            self.take_rows(len(probs))
            self.inverse = ClassInverse(source, self.class_copy, self.class_rows, self.settings.l2, probs)
        source.reads = reads

    # ---- steps

    def note(self, value, gap):
        self.result_here(value)
        self.enter(value, gap, self.source.reads, self.products, self.clock.seconds)

    def result_here(self, value):
        self.result.W, self.result.bias = self.split(self.V)
        self.result.objective, self.result.gap, self.result.reads = value, np.inf, self.source.reads + self.built

    def enter(self, value, gap, reads, products, seconds):
        """A line of the history."""
        entry = (-1, reads + self.built, seconds, value, gap / max(value, TINY), products)
        add_entry(self.result.history, entry)

    def certify(self, vain=VAIN):
        """Objective and gap in float64 at the point, its intercepts first made the best; is this the end?

        It is within tol, or as the ``vain``-th certificate that does not halve the gap: one step may not halve what is
        left for the intercepts, whose slope ends no system of conjugate gradients.
        """
        source, s, result, self.here = self.source, self.settings, self.result, None
        self.V, risk, entropy, gradient = source.exact(self.V, BALANCED * min(s.tol, 1e-4) * min(1.0, self.newton.low))
        value = self.looked_at(risk, gradient)[0]
        if self.class_sums is None and s.fit_intercept:
            self.class_sums = source.class_sums()
        result.total, v = dual_point(entropy, gradient, self.class_sums, self.share, s.fit_intercept)
        result.v = transposed(v)
        bound = result.total - np.sum(v**2) / (2 * s.l2)
        result.W, result.bias = self.split(self.V)
        result.objective, result.gap = value, max(0.0, value - bound) / max(value, TINY)
        if not np.isfinite(value - bound):
            result.gap = np.inf
        result.reads = source.reads + self.built
        result.stopped = "tol" if result.gap <= s.tol else "max_newton"
        if result.gap <= s.tol:
            self.here = risk, gradient           # another penalty begins here
            return True
        if not source.precise:
            source.keep(np.float64)
        else:
            self.vain = 0 if result.gap < 0.5 * self.best else self.vain + 1
            if self.vain >= vain:
                result.stopped = "rounding"
                return True
        self.best = min(self.best, result.gap)
        return False

    def steps(self, most):
        """Newton steps until Python has something to decide, or there were ``most``; what the point V then is."""
        source, newton = self.source, self.newton
        self.clock.watch()
        self.renew_inverse()
        newton.tol = self.settings.tol * SHARPER**self.vain
        self.here = None                         # scores and V part until a step has ended
        newton.begin(self.inverse, self.mean, self.V, self.G, self.value, source.scores, source.probs, source.change,
                     self.products_left(), self.result.n_newton)
        try:
            while (found := source.go_on(newton, most)) == SLICE_OVER:
                self.clock.watch()
        finally:
            self.take_over()
        return found

    def take_over(self):
        """What the steps have come to, those that were passed noted; a step under way is none."""
        source, newton, result = self.source, self.newton, self.result
        for value, gap, reads, products, when in newton.noted[:newton.n_noted]:
            self.enter(value, gap, source.reads + reads, self.products + int(products), when - self.clock.begin)
        source.reads += newton.products + newton.n_taken
        self.spent, self.products = self.spent + newton.products, self.products + newton.products
        self.V, result.n_newton = copied(newton.V), result.n_newton + newton.n_taken
        if newton.n_noted == newton.n_taken > 0:
            self.result_here(value)

    def renew_inverse(self):
        """A preconditioner at the present point; a better one once as much has been spent as it costs."""
        source, s = self.source, self.settings
        if self.kronecker is None:
            self.prepare(None)
        elif self.products_left() <= 0 and self.plain:
            self.prepare(False)
            self.spent = 0
        elif self.products_left() <= 0:
            self.inverse = self.kronecker                    # what was in use need not be kept beside the new one
            self.take_enough_rows()
            inverse = ClassInverse(source, self.class_copy, self.class_rows, s.l2)
            self.spent, self.built = 0, self.built + inverse.cost
            self.inverse = inverse if inverse.sound else self.kronecker
        if self.inverse is self.kronecker:
            self.inverse.update(source.class_curvature(self.stride))

    def products_left(self):
        """How many more there may be before pairs, or then blocks of the classes, cost no more than products so far."""
        if self.plain:
            return int(np.ceil(pairs_cost(self.source) - self.products))
        if self.class_rows is None or not len(self.class_rows):
            return ALL_OF_THEM
        price = self.inverse.cost or max(FIRST, class_inverse_cost(self.source, len(self.class_rows)))
        return int(np.ceil(price - self.spent))

    def take_enough_rows(self):
        """Behind the blocks of the classes: as many of them as it takes for enough to count, the sample at least; as
        many as there were where more would make the blocks too dear, take too much memory or too long."""
        source, known, least = self.source, len(self.class_rows), class_inverse_sample(self.source)
        count = rows_that_count(source.probs_of(self.class_rows), source.weight_of(self.class_rows))
        n = int(min(source.n_rows, max(least, np.ceil(known * (PLENTY * source.n_features / max(count, 1e-9))))))
        dear = class_inverse_cost(source, count * n / known) > max(LITTLE_READS, class_inverse_cost(source, least))
        slow = count * n / known * source.n_features**2 > MOST_FLOPS
        if n > known and (dear or slow or n * source.n_features > MOST_NUMBERS):
            n = known
        if n != known or self.class_copy is None:
            self.take_rows(n)

    def take_rows(self, n):
        """Behind the blocks of the classes: the first ``n`` of the random order; and a dense copy of them."""
        source, self.class_rows = self.source, np.sort(self.order[:n])
        self.class_copy = None                                    # no two copies at a time
        self.class_copy = source.in_single_precision() if n == source.n_rows else source.dense_copy_of(self.class_rows)

    def prepare(self, plain):
        """What preconditioners have of the rows; pairs of their second moment, None where they cost more than they
        save."""
        source, l2, subset = self.source, self.settings.l2, np.sort(self.order[:SAMPLE])
        X, weight, pairs = source.copy_of(subset), source.weight_of(subset), None
        if plain is not False:
            pairs, total = no_pairs(X, weight, source.intercept)
            if plain is None:
                plain = not pairs_pay_off(source, total, source.class_curvature(self.stride), l2)
        self.plain = plain
        if not plain:
            pairs = centred_pairs(X, weight, RANK, source.intercept)
        self.kronecker = self.inverse = KroneckerInverse(source, pairs, l2)
        self.mean = self.kronecker.mean if source.intercept else None
        self.class_rows = np.sort(self.order[:class_inverse_sample(source)])
