"""Fits of the same problems at one penalty after the other, each certified, and only where no earlier fit certifies it.

`PathSolver` has the rows of all binary problems of a fit (or of a fold: rows that it leaves out weigh 0), and is asked
for penalties in any order, or for all at once, which takes fewer fits:

    path = PathSolver(source, labels, weights, loss=HINGE, settings=Settings(tol=1e-3), n_threads=2)
    path.solve_all(l2s)                              # fits where they prove most; `solve` is then arithmetic
    for l2 in l2s:
        for certified in path.solve(l2):             # one `Certified` a problem, in their order
            certified.w, certified.objective, certified.gap
    path.certify(l2)                                 # the same of what is known, whatever the gap is
    path.passes, path.n_solved                       # reads of the data and fits so far, of all problems

``certified.w``, made anew when it is asked for, is (n_features + intercept,), the intercept last. Its gap is at most
``settings.tol`` unless the fit behind it fell short or was stopped (``path.stopped``: "max_time", "stopped" or None).
A pair of points at other penalties is used where it proves ``tol`` (`cmargin.solvers.certified`); fits are made to
`DEEPER` times ``tol``, so that there is something left of it beside them, and begin at the best weights that the pairs
beside them prove.
"""

import copy
from dataclasses import replace
from itertools import islice

import numpy as np

from cmargin._runtime.clock import TimeUp
from cmargin._runtime.fit_slots import give_way
from cmargin.data.loss import HINGE
from cmargin.solvers import cost
from cmargin.solvers.certified import Pair, Pairs
from cmargin.solvers.column_path import ColumnFits, ColumnWays, goes_by_columns
from cmargin.solvers.history import SMSVM
from cmargin.solvers.newton.continuation import ContinuationNewton
from cmargin.solvers.newton.parts import NO_PARTS
from cmargin.solvers.newton.slices import bytes_of_columns, side_by_side
from cmargin.solvers.newton.stages import Shared, Stages
from cmargin.solvers.newton.working_set import DEEPER
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.plan import ProblemStats, refuse
from cmargin.solvers.problem import Problem, Settings
from cmargin.solvers.result import Result
from cmargin.solvers.rows_at_end import rows_at_end

ACTIVE_ROWS = SMSVM.index("active_rows")      # those whose curvature was summed


class PathSolver:
    """Binary problems on the same rows, at any penalties.

    ``labels``: `Labels`, or whatever has a length and ``signed_weight(c, weights)``; ``weights`` (n_rows,) of the rows,
    or None. ``settings``: `Settings`, of which ``tol`` is what is proven at every penalty. ``seeds``: (n_problems,) or
    None, 0. ``one_by_one``: a problem after the other by all threads, and not several side by side by a thread each.
    ``l2_min``: the least that will be asked, where it is known: wide rows are reduced once, for that.
    ``keeps_rows``: what is kept of every row, about ten numbers for each problem, stays from fit to fit.
    ``note(c, penalty, result)`` is called after every fit.
    ``beside``: `Pairs` of as many problems of nearly the same rows, another fold's, from which fits begin.
    """

    def __init__(self, source, labels, weights=None, *, loss=HINGE, intercept=True, penalize_intercept=False,
                 settings=None, n_threads=1, seeds=None, one_by_one=True, l2_min=None, keeps_rows=True, note=None,
                 beside=None):
        self.source, self.labels, self.weights = source, labels, weights
        self.settings = Settings() if settings is None else settings
        self.intercept, self.n_threads, self.one_by_one = bool(intercept), n_threads, one_by_one
        self.keeps_rows = keeps_rows and not source.shares_reads           # whose fits are made at once
        self.seeds = np.zeros(len(labels), np.intp) if seeds is None else seeds
        self.p, self.note = source.n_features + self.intercept, note
        free = source.n_features if intercept and not penalize_intercept else None
        problem = Problem(ElasticNet(0.0 if l2_min is None else l2_min), free, loss)
        about = ProblemStats(loss, problem.penalty, self.p, len(labels))
        least = None if l2_min is None else np.sqrt(DEEPER * self.settings.tol * l2_min)
        self.shared = SharedByPenalties(source, problem, about, weights, self.intercept, least)
        tall = source.in_memory and not source.shares_reads and self.p**2 <= cost.MODEL_UP_TO_PART * source.entries
        self.shared.keeps_model = tall and loss.facts["smooth"]
        self.shared.keeps_rows = tall and loss.facts["dual_smallest"] == 0               # a loss of a margin
        fits = self.shared.keeps_rows and beside is not None and len(beside) == len(labels) and all(map(len, beside))
        self.beside = beside if fits else None
        self.pairs = [Pairs() for _ in range(len(labels))]
        for own, one in zip(self.pairs, self.beside or (), strict=False):
            own.alone = one.reads / len(one) if one.alone is None else one.alone
        self._goes_by_columns = goes_by_columns(self.shared.stats, loss, self.settings)
        self._rows = [None] * len(labels)        # `RowPass`es
        # What each problem's fits know of the columns: its own, as which problem ends first is the clock's to say
        self._columns = [{} if self.beside is None or one.scale is None else {"scale": one.scale}
                         for one in self.beside or [Pairs()] * len(labels)]
        self.passes, self.n_solved, self.stopped = 0.0, 0, None

    def certify(self, l2, l1=0.0):
        """What the pairs so far prove at these penalties: a `Certified` for every problem, None before any fit."""
        return [pairs.certify(l2, l1) for pairs in self.pairs]

    def solve(self, l2, l1=0.0):
        """The problems' `Certified`, each to ``tol``: those that no pair proves are solved."""
        penalty = ElasticNet(l2, l1)
        self.fit_at([(c, penalty) for c, known in enumerate(self.certify(l2, l1)) if not self.is_enough(known)])
        return self.certify(l2, l1)

    def solve_all(self, l2s, l1s=None, between=False):
        """Prove ``tol`` at all these penalties: by fits at both ends, and then between two fits, from the largest l2
        on, until all is.

        ``l1s``: as many, or None, 0. ``between``: penalties between them are to be proven next. A penalty
        at which a fit falls short of ``tol`` is not tried again. Where a path goes by columns, or l1 alone, a fit is
        made at each instead.
        """
        grid = [ElasticNet(*both) for both in zip(l2s, np.zeros(len(l2s)) if l1s is None else l1s, strict=True)]
        grid.sort(key=lambda penalty: (-penalty.l2, -penalty.l1))
        if grid[0].l2 == 0 or (self._goes_by_columns and grid[-1].l1 > 0 and not between):
            self._solve_in_order(grid)
            return
        self.prove_on([grid] * len(self.pairs))

    def prove_on(self, grids):
        """`solve_all` of a grid a problem, each a list of penalties of falling l2.

        Where a read serves all that wait for one, fits are made between all pairs of fits at once that prove too
        little: the same fits as one after the other, but for where the ends begin, in far fewer reads.
        """
        together = self.source.shares_reads
        tried = [{grid[0], grid[-1]} for grid in grids]
        begin = [0] * len(grids)                 # all before is proven, or tried
        timed = self.settings.clock.deadline is not None           # then what takes the fewest reads is proven first
        for ends in [(0, -1)] if together and not timed else [(0,), (-1,)]:
            self.fit_at([(c, penalty) for c, grid in enumerate(grids)
                         for penalty in dict.fromkeys(grid[end] for end in ends)
                         if not self.is_enough(self.pairs[c].certify(penalty.l2, penalty.l1))])
        while self.stopped is None:
            lacking = []
            for c, grid in enumerate(grids):
                found = self._lacking(c, grid, tried[c], begin[c])
                found = list(found if together else islice(found, 1))
                begin[c] = found[0][0] if found else len(grid)
                lacking += [(c, penalty) for _, penalty in found]
                tried[c].update(penalty for _, penalty in found)
            if not lacking:
                return
            self.fit_at(lacking)

    def _solve_in_order(self, grid):
        """A fit at each: without l2 no pair proves anything of penalties below its own, and by columns a fit costs less
        than proofs do."""
        if self._goes_by_columns and grid[-1].l1 > 0:
            if len(self.pairs) > 1 and len(grid) > 1:
                self._solve_by_columns(grid[:1])             # that something is known of all, whenever time is over
            self._solve_by_columns(grid)
        else:
            for penalty in grid:
                self.fit_at([(c, penalty) for c in range(len(self.pairs))])

    def _solve_by_columns(self, grid):
        """Problems side by side, a thread each; where steps lead nowhere, on by other fits."""
        problem = self.shared.problem
        ways = ColumnWays(lambda c: ColumnFits(self.source, self.labels.signed_weight(c, self.weights), problem.loss,
                                               self.intercept, problem.free is not None),
                          len(self.pairs), grid, self.settings)
        try:
            for c in ways.go(self.n_threads):
                self._take(c, ways.made[c])
                give_way()
        finally:                                 # of a Ctrl-C too
            for c, made in enumerate(ways.made):
                self._take(c, made)
        self.stopped = "max_time" if ways.left_out else self.stopped
        for c, place in enumerate(ways.ends):
            for penalty in grid[place:]:
                if not self.is_enough(self.certify(penalty.l2, penalty.l1)[c]):
                    self.fit_at([(c, penalty)])

    def _take(self, c, made):
        while made:
            penalty, result, pair = made.pop(0)
            if not self.pairs[c].has(penalty):
                self._count(c, penalty, result, pair)
            else:                                # the first, made once more on the way to the others
                self.passes += result.passes
                if result.status == "certified":
                    self.pairs[c].add(pair)

    def _lacking(self, c, grid, tried, begin):
        """Where on the ``grid``, from number ``begin`` on, any two fits are between which a gap is over ``tol`` at a
        penalty not ``tried``, and the penalty to fit between them.

        Where the gap is largest; or, where fits leave models of the minimum, so near to the first that one read may
        prove it.
        """
        pairs, within, lacking = self.pairs[c], None, {}
        for place in range(begin, len(grid)):
            penalty = grid[place]
            if (bracket := pairs.bracket(penalty)) is not within:
                if lacking:
                    yield begin, max(lacking, key=lacking.get)
                begin, within, lacking = place, bracket, {}
            gap = pairs.certify(penalty.l2, penalty.l1).gap
            if gap > self.settings.tol and penalty not in tried:
                if bracket.knows_rows and penalty.l1 == 0 and bracket.prove(
                        [one.l2 for one in grid[place:] if one.l2 >= bracket.second.l2], self.settings.tol):
                    continue
                if not lacking:
                    pairs.let_rows_go(bracket.first)
                lacking[penalty] = gap
                if self.shared.keeps_rows:
                    yield begin, self._next(c, grid[place:], tried, bracket)
                    return
        if lacking:
            yield begin, max(lacking, key=lacking.get)

    def _next(self, c, grid, tried, bracket):
        """The penalty to be fitted next between two fits, of the ``grid`` from the first lacking on: where the fold
        beside has its next fit, or as far from the first as all in between may be proven."""
        within = [one for one in grid if one.l2 > bracket.second.l2 and one not in tried]
        if self._begins_beside(c):
            fitted = np.log([pair.l2 for pair in self.beside[c].pairs])
            apart = np.log(bracket.first.l2 / bracket.second.l2)           # a C is another l2 in another fold
            for one in within:
                if np.abs(fitted - np.log(one.l2)).min() < 1e-3 * apart:
                    return one
        reach = bracket.first.l2 * np.exp(-self.pairs[c].reach(bracket, self.settings.tol))
        far = [one for one in within if one.l2 >= reach]
        return far[-1] if far else grid[0]

    def _begins_beside(self, c):
        return self.beside is not None and self.beside[c].helps(self.pairs[c])

    def is_enough(self, known):
        return known is not None and known.gap <= self.settings.tol

    def mean_square(self):
        """Mean of |x|^2 over the rows, by weight; a read, which fits make use of."""
        signed_weight = self.labels.signed_weight(0, self.weights)
        rows = self.source.row_pass(signed_weight, intercept=self.intercept, n_threads=self.n_threads)
        rows.set_loss(self.shared.problem.loss)
        squares = np.asarray(rows.objective(np.zeros(self.p), True)[1], float) / rows.total_weight
        self.passes += rows.share
        if np.isfinite(squares).all():
            for columns in self._columns:
                columns["rms"] = np.sqrt(squares)
        return float(squares[:self.source.n_features].sum())

    def let_go(self):
        """Give up what is kept of the rows; pairs stay."""
        self._rows, self.beside = [None] * len(self.labels), None
        for pairs in self.pairs:
            pairs.let_rows_go()

    # ------------------------------------------------------------ fits

    def fit_at(self, asked):
        """Fit problems c at penalties, ``asked``: a list of both, each problem once where reads are not shared."""
        if not asked or self.stopped is not None:
            return
        settings = replace(self.settings, tol=DEEPER * self.settings.tol)
        fits = [Fit(c, penalty, Result(np.zeros(self.p), status="waiting"), dict(self._columns[c]))
                for c, penalty in asked]
        ways = [self._way(fit, settings) for fit in fits]
        if self.source.shares_reads and len(fits) > 1:
            each = bytes_of_columns(self.source.n_rows, self.p)
            side_by_side(ways, 1, "stopped", at_once=self.source.problems_at_once(len(fits), each))
        elif self.one_by_one or len(fits) == 1:
            for way in ways:
                for driver in way:
                    driver.finish(NO_PARTS)
        else:
            side_by_side(ways, self.n_threads, "stopped")
        for fit in fits:
            self._keep(fit)

    def _count(self, c, penalty, result, pair):
        self.passes += result.passes
        self.stopped = "max_time" if result.status == "max_time" else self.stopped
        self.pairs[c].add(pair)
        self.n_solved += 1
        if self.note is not None:
            self.note(c, penalty, result)

    def _keep(self, fit):
        result, self._columns[fit.c] = fit.result, fit.columns
        self.pairs[fit.c].scale = fit.columns.get("scale")
        self.pairs[fit.c].reads += result.passes
        if result.status in ("stopped", "max_time", "waiting"):
            self.stopped = "max_time" if result.status == "waiting" else result.status
        if not np.isfinite(result.objective):
            self.passes += result.passes
        else:
            self._count(fit.c, fit.penalty, result,
                        Pair(result, fit.penalty, self.shared.problem.free, fit.a, fit.model, fit.fresh, fit.rows))

    def _way(self, fit, settings):
        """Yield the drivers that make a fit, one after the other."""
        c, penalty, result = fit.c, fit.penalty, fit.result
        if settings.clock.late or (settings.between is not None and settings.between()):
            return
        known = self.pairs[c].certify(penalty.l2, penalty.l1)
        few = self.source.n_rows < cost.SUBSET_FROM_ROWS       # of many, a fit from 0 begins on a tenth of them
        warm = known is not None and (few or known.gap <= cost.GAP_TO_BEGIN_ANEW[self.source.sparse])
        shared = self.shared.at(penalty, warm, fit.columns)
        w, foreseen = known.w if warm else None, None
        if self._begins_beside(c) and not penalty.has_kinks:
            w, shared.near = self.beside[c].beside(self.pairs[c], penalty)
            shared.about = replace(shared.about, warm=True)
        elif warm and shared.keeps_model and not penalty.has_kinks:
            foreseen = self.pairs[c].foreseen(penalty.l2)
        elif warm and shared.keeps_rows and not penalty.has_kinks:
            w = self.pairs[c].continued(penalty, w)
        if foreseen is not None:
            w, shared.near = foreseen
        refuse(shared.about, settings, shared.stats)
        shared.learn(settings)
        result.status = "running"
        all_threads = self.one_by_one or self.source.shares_reads or len(self.labels) == 1
        n_threads = self.n_threads if all_threads else 1
        stages = Stages(shared, self.labels.signed_weight(c, self.weights), settings, result, self.seeds[c], n_threads,
                        w, rows=self._rows[c], a=known.a if warm else None)
        try:
            for driver in stages.drivers():
                yield driver.of_problem(c, NO_PARTS)
        except TimeUp:                           # while rows of a subset were gathered
            result.status = "max_time"
        if not np.isfinite(result.objective) and (self.source.in_memory or not settings.clock.late):
            last = ContinuationNewton(stages.rows, shared.problem, Settings(), result, w=result.w)
            last.certify(result.status)
            yield last.of_problem(c, NO_PARTS)
        fit.model, fit.fresh, fit.rows = shared.found, shared.fresh, shared.rows_at_end
        self._rows[c] = stages.rows_made if self.keeps_rows else None
        fit.a = None if stages.a is None else stages.a.astype(np.float32)


class Fit:
    """One problem at one pair of penalties."""

    a = None                   # dual variables, where the dual has found them
    rows = None                # `RowsAtEnd`, where these are kept
    model, fresh = None, True  # `Newton.model` of its end, where that is kept, and whether the curvature is of this fit

    def __init__(self, c, penalty, result, columns):
        self.c, self.penalty, self.result = c, penalty, result
        self.columns = columns                   # what the problem's fits before it know of the columns, and then it


class SharedByPenalties(Shared):
    """`Shared` of the problems at one pair of penalties, with what all penalties have in common.

    ``least``: rows are reduced to within that length once, for all penalties; None: for each as it wants.
    """

    def __init__(self, source, problem, about, weights, intercept, least):
        super().__init__(source, problem, about, weights, intercept)
        self.least, self.columns = least, {}

    keeps_model, found, fresh = False, None, True          # the model where a fit has ended, see `Fit`
    keeps_rows, rows_at_end = False, None

    def at(self, penalty, warm, columns):
        """The same with another penalty; ``warm``: there are weights to begin with. ``columns``: what is known of them,
        a dictionary, to which the fit adds."""
        other = copy.copy(self)
        other.columns = columns
        other.problem = replace(self.problem, penalty=penalty)
        other.about = replace(self.about, penalty=penalty, warm=warm)
        other.known, other._dual = [], None
        return other

    def reduced(self, least, beside=None):
        return super().reduced(least if self.least is None else min(least, self.least), beside)

    @property
    def rms(self):
        return self.columns.get("rms")

    @property
    def scale(self):
        return self.columns.get("scale")

    def hear(self, driver):
        if self.keeps_model and not self.problem.penalty.has_kinks:
            self.found, self.fresh = driver.model(), any(row[ACTIVE_ROWS] > 0 for row in driver.history())
        if self.keeps_rows:
            self.rows_at_end = rows_at_end(driver, self.problem.loss, self.keeps_model)
        for name, found in (("rms", driver.rms), ("scale", driver.column_scale)):
            if found is not None:
                self.columns[name] = found
