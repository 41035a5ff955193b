"""Fits of one binary problem of a smooth loss with l1 after the other, compiled: few columns of many, in memory.

Beside `Stages` a fit costs the columns in use and little else, so that a path has one made at every penalty.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from cmargin._core.newton._bound import gap
from cmargin._core.newton._column_path import ColumnPath
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin.solvers import cost
from cmargin.solvers.certified import Pair, dual_value
from cmargin.solvers.result import Result


def goes_by_columns(stats, loss, settings):
    """Whether these rows, of `DataStats`, have columns so many that a path with l1 reads columns."""
    many = stats.n_features > cost.L1_BLOCK_UP_TO_COLUMNS if stats.sparse else stats.n_features > stats.n_rows
    facts = loss.facts
    # those that are straight somewhere have rows with a slope and no curvature, for which stages have more steps
    curved = facts["smooth"] and not (facts["discontinuous"] and facts["dual_largest"] < 1e300)
    return stats.here and many and curved and settings.linear_solver == "auto" \
        and settings.line_search == "exact" and settings.stop is None and settings.tell is None


class ColumnFits:
    """Of one problem: ``signed_weight`` (n_rows,) s y; ``intercept``: there is one, ``free``: it is not penalised."""

    def __init__(self, source, signed_weight, loss, intercept, free):
        signed_weight = np.asarray(signed_weight, float)
        self.n_penalised = source.n_features + (intercept and not free)
        self.path = ColumnPath(source.columns(), signed_weight / np.abs(signed_weight).sum(), loss,
                               None if not intercept else "free" if free else "penalised")

    @property
    def can_be_made(self):
        return self.path.lengths_are_finite

    def fit(self, penalty, settings, following):
        """Go on to ``penalty``, l1 and l2 no heavier than the last: `Result` and `PairOfColumns`.

        ``following``: the next penalty or None. Between the two the pairs of both prove their dual values.
        """
        path, reads = self.path, self.path.reads
        known = penalty.l1 if following is None else min(penalty.l1, 2 * following.l1 - penalty.l1)
        objective, dual, risk, total, noise, stuck = path.fit(penalty.l2, penalty.l1, settings.tol, known,
                                                              settings.max_passes, lambda: settings.clock.late)
        result = Result(path.weights(), objective, dual, passes=path.reads - reads, total=total, noise=noise,
                        status="certified" if gap(objective, dual) <= settings.tol else
                        "max_time" if settings.clock.late else "stuck" if stuck else "max_passes")
        return result, PairOfColumns(result, penalty, risk, path.slopes(), known, self.n_penalised)


class ColumnWays:
    """Fits of many problems at every penalty of a ``grid``, a problem a thread; ``begin(c)``: the `ColumnFits` of one.

    ``made``: lists, of every problem, of (penalty, `Result`, `PairOfColumns`). ``ends``: up to where in the grid each
    came before its steps led nowhere, or its columns had no finite lengths. ``left_out``: by time, some.
    """

    left_out = False

    def __init__(self, begin, n_problems, grid, settings):
        self.begin, self.grid, self.settings, self.interrupted = begin, grid, settings, False
        self.made, self.ends = [[] for _ in range(n_problems)], [len(grid)] * n_problems

    @property
    def late(self):
        return self.interrupted or self.settings.clock.late

    def go(self, n_threads):
        """Make them. Yields problems of which there are more, in their order, however many threads there are."""
        problems = range(len(self.made))
        if min(n_threads, len(problems)) == 1:
            for c in problems:
                for _ in self.go_down(c):
                    yield c
            return
        self.begin(0)                            # and with it what all problems share
        with ThreadPoolExecutor(min(n_threads, len(problems))) as pool:
            try:
                yield from (c for c, _ in enumerate(pool.map(self.all_of, problems)))
            except BaseException:
                self.interrupted = True
                raise

    def all_of(self, c):
        with single_threaded_blas():             # some BLAS libraries count for each thread
            for _ in self.go_down(c):
                pass

    def go_down(self, c):
        """The fits of problem c, until one is stuck: other steps may lead on."""
        fits, settings = self.begin(c), replace(self.settings, clock=self)
        for place, (penalty, following) in enumerate(zip(self.grid, [*self.grid[1:], None], strict=True)):
            if self.late:
                self.left_out = True
                return
            status = "stuck"
            if fits.can_be_made:
                result, pair = fits.fit(penalty, settings, following)
                status = result.status
                self.made[c].append((penalty, result, pair))
                yield
            if status == "stuck":
                self.ends[c] = place
                return


class PairOfColumns(Pair):
    """A pair of which few columns have a weight, and few were read: every other |v_j| is ``known`` at most."""

    a = None

    def __init__(self, result, penalty, risk, slopes, known, n_penalised):
        penalised = result.w[:n_penalised]
        self.l2, self.l1, self.known = penalty.l2, penalty.l1, known
        self.p, self.n_penalised = len(result.w), n_penalised
        self.square, self.size, self.risk = float(penalised @ penalised), float(np.abs(penalised).sum()), risk
        self.total, self.noise, self.own = result.total, float(result.noise), (result.objective, result.dual)
        used = np.flatnonzero(result.w)
        self._weights, self._slopes = (used, result.w[used]), slopes
        self.v_square = float(slopes[1] @ slopes[1])

    @property
    def w(self):
        return spread(self._weights, self.p)

    @property
    def v(self):
        return spread(self._slopes, self.n_penalised)

    def dual(self, l2, l1):
        if (l2, l1) == (self.l2, self.l1):
            return self.own[1]
        # where others may be above l1, a part of the dual variables that takes them below it
        part = min(1.0, l1 / self.known) if self.known > 0 else 1.0
        v = part * self._slopes[1]
        return dual_value(part * self.total, v, float(v @ v), self.noise, l2, l1)


def spread(of, n):
    """(n,) the numbers of some columns, 0 in others."""
    whole = np.zeros(n)
    whole[of[0]] = of[1]
    return whole
