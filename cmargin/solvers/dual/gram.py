"""Fits of many problems on the same dense rows by the Gram matrix of these rows, one penalty after another.

Where `cmargin.solvers.plan.goes_by_gram_matrix` says so. Each `ByGram` has what `Certified` of a path has.
"""

from dataclasses import dataclass

import numpy as np

from cmargin._core.gram._gram_rows import solve_problems
from cmargin._core.newton._bound import gap
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.fit_slots import give_way

MOST_ROUNDS = 50               # evaluations of all rows in a fit
PROBLEMS_AT_ONCE = 64          # in one product, however many threads there are, so that no bit depends on them
PROBLEMS_A_SLICE = 16          # between two looks at the clock


@dataclass
class ByGram:
    """A problem at a penalty: ``objective`` is at least that of the weights, ``dual`` at most the minimum."""

    l2: float
    objective: float
    dual: float
    scores: np.ndarray         # (n,) of all rows, those without weight too
    part: tuple                # of what the weights are made: `GramMatrix`, scale, b and s
    l1 = 0.0
    model = None

    @property
    def gap(self):
        return gap(self.objective, self.dual)

    @property
    def w(self):
        """(p,) a new array."""
        gram, scale, b, s = self.part
        with single_threaded_blas():
            return gram.weights(np.array([scale]), np.array([b]), *gram.sums(s[None]))[0]

    @property
    def primal_parts(self):
        return ((1.0, self),)


class GramPath:
    """Binary problems ``labels`` with row ``weights``, at falling penalties; what `PathSolver` does of a path.

    ``reads`` of X that its Gram matrix ``gram`` has taken. ``otherwise()``: the `PathSolver` of problems that this
    does not prove.
    """

    pairs = None                   # from which another fold's fits would begin

    def __init__(self, gram, reads, labels, weights, loss, settings, n_threads, otherwise):
        self.gram, self.loss, self.settings, self.n_threads = gram, loss, settings, n_threads
        self.problems = gram.problems(np.stack([labels.signed_weight(c, weights) for c in range(len(labels))]))
        self.reads, self.otherwise, self.path, self.stopped = reads, otherwise, None, None

    @property
    def passes(self):
        """Reads of X."""
        return self.reads + (0.0 if self.path is None else self.path.passes)

    def solve_all(self, l2s, l1s):
        """Nothing: a fit is made when it is asked for."""

    def let_go(self):
        """Nothing: what is kept is no copy of the rows."""

    def certify(self, l2, l1=0.0):
        """[`ByGram`] of all problems, each to ``tol`` or as near as it comes; of None where time is over."""
        with single_threaded_blas():
            if self.stopped is None and solve_side_by_side(self.gram, self.problems, self.loss, l2, self.settings,
                                                           self.n_threads):
                found = [ByGram(l2, one.objective, one.dual, one.scale * one.z + one.b,
                                    (self.gram, one.scale, one.b, one.s.copy())) for one in self.problems]
                if all(one.proven for one in self.problems):
                    return found
                self.path = self.otherwise() if self.path is None else self.path
                found = self.path.solve(l2)
                self.stopped = self.path.stopped
                return found
        self.stopped = "max_time"
        return [None] * len(self.problems)


def solve_once(gram, labels, weights, loss, l2, settings, n_threads, hear):
    """Bring binary problems ``labels`` to ``settings.tol`` at ``l2``, evaluate them on the rows themselves, and
    ``hear(c, problem, w)`` of those that this proves."""
    for lo in range(0, len(labels), PROBLEMS_AT_ONCE):
        some = range(lo, min(len(labels), lo + PROBLEMS_AT_ONCE))
        problems = gram.problems(np.stack([labels.signed_weight(c, weights) for c in some]))
        if not solve_side_by_side(gram, problems, loss, l2, settings, n_threads):
            return
        sums = gram.read(problems)
        solve_problems(gram.rows, problems, loss.name, l2, settings.tol, 1, n_threads)
        W = gram.weights(np.array([one.scale for one in problems]), np.array([one.b for one in problems]), *sums)
        for c, one, w in zip(some, problems, W, strict=True):
            if one.proven:
                hear(c, one, w)


def solve_by_listed_rows(listed, labels, weights, loss, l2, settings, n_threads, hear):
    """The same by `ListedProducts` ``listed`` in place of their Gram matrix; a round of many problems is a read.

    A few problems, spread over all, say whether others are worth it: where fewer than half are proven, none follows.
    """
    n = len(labels)
    first = range(0, n, -(-n // PROBLEMS_A_SLICE))
    others = [c for c in range(n) if c not in first]
    for some in [first, *(others[lo:lo + PROBLEMS_AT_ONCE] for lo in range(0, len(others), PROBLEMS_AT_ONCE))]:
        problems = at_work = listed.problems(np.stack([labels.signed_weight(c, weights) for c in some]))
        for _ in range(int(min(MOST_ROUNDS, settings.max_passes))):
            if not solve_round(listed, at_work, loss, l2, settings, n_threads):
                return
            at_work = [one for one in at_work if one.waits]
            if not at_work:
                break
            with np.errstate(over="ignore", invalid="ignore"):
                listed.take_products(at_work, *sums_of(at_work))
        V, sums = sums_of(problems)
        W = listed.weights(np.array([one.scale for one in problems]), np.array([one.b for one in problems]), V, sums)
        for c, one, w in zip(some, problems, W, strict=True):
            if one.proven:
                hear(c, one, w)
        if 2 * sum(one.proven for one in problems) < len(problems):
            return


def solve_round(listed, problems, loss, l2, settings, n_threads):
    """Evaluate ``problems`` and solve those that are not proven in the rows that they list; False: time is over."""
    for lo in range(0, len(problems), PROBLEMS_A_SLICE):
        if settings.clock.late or (settings.between is not None and settings.between()):
            return False
        solve_problems(listed.rows, problems[lo:lo + PROBLEMS_A_SLICE], loss.name, l2, settings.tol, MOST_ROUNDS,
                       n_threads)
        give_way()
    return True


def sums_of(problems):
    """(n_problems, m), (n_problems,) sums of s x and of s, as `ListedProducts` keep them."""
    return np.stack([one.v for one in problems]), np.array([one.s.sum() for one in problems])


def solve_side_by_side(gram, problems, loss, l2, settings, n_threads):
    """Bring all problems to ``settings.tol`` at ``l2`` where that is possible; False: time is over.

    Where rounding in so many products may be too much, scores are read from the rows themselves.
    """
    most = int(min(MOST_ROUNDS, settings.max_passes))
    for lo in range(0, len(problems), PROBLEMS_A_SLICE):
        if settings.clock.late or (settings.between is not None and settings.between()):
            return False
        some = problems[lo:lo + PROBLEMS_A_SLICE]
        solve_problems(gram.rows, some, loss.name, l2, settings.tol, most, n_threads)
        if unsure := [one for one in some if not one.proven]:
            with np.errstate(over="ignore", invalid="ignore"):
                gram.read(unsure)
            solve_problems(gram.rows, unsure, loss.name, l2, settings.tol, 1, n_threads)
        give_way()
    return True
