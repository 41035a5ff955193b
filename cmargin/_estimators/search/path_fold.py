"""A fold whose penalties are solved as one path: a fit is made only where no other of the fold certifies its penalty.

Rows that are held out stay where they are and weigh nothing, so that the folds read one X, in memory once. Of a small X
the training rows are copied instead: five folds read a fifth of it in vain otherwise.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from cmargin._core.util._openmp import effective_n_threads
from cmargin._estimators.apart import weights_differ
from cmargin._estimators.by_column import is_by_column
from cmargin._estimators.labels import Labels, of_mean_1
from cmargin._estimators.search.held_out import HeldOut
from cmargin._estimators.smsvm_fit import l2_of, occurring_columns, settings_of, threads_of
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.clock import RunClock
from cmargin.data.containers import positives_of
from cmargin.data.open_here import source_of
from cmargin.solvers import cost
from cmargin.solvers.dual.gram import GramPath
from cmargin.solvers.path import PathSolver
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.plan import ProblemStats, goes_by_gram_matrix

SINGLE_FITS = ("A search by single fits (penalties of 0 alone; callback, verbose, max_time, bounds or constraints of "
               "its estimator, line_search other than 'exact', weights by label)")


def takes_paths(estimator, source, grid):
    """Whether the fits of a search are made as paths: those that a user watches, stops or has published steps taken in
    are made one by one, as are those without a penalty, which nothing certifies, and of problems with weights of their
    own."""
    e = estimator
    plain = type(e).fit is e._own_fit and e.callback is None and not e.verbose and e.max_time is None
    penalised = (grid.strengths > 0).all() or (grid.l1s > 0).all()
    return plain and e.line_search == "exact" and penalised and not is_by_column(e) and \
        not weights_differ(e, source, None)


def is_small(source):
    """Whether training rows of folds are copied: the copy stays in the cache, and no fit reads the rows held out."""
    return source.entries * source.dtype.itemsize <= cost.CACHED_BYTES


class WholeRows:
    """The rows that all folds read: over the columns that occur, and what is made of them once."""

    def __init__(self, posed, source=None, n_fits=0):
        """``source``: of rows that are opened already. ``n_fits``: of a problem, over all folds."""
        self.posed, source = posed, source_of(posed.X, posed.y) if source is None else source
        self.columns = None if posed.standardize else occurring_columns(source, ElasticNet(1.0, 0.0))      # None: all
        self.source = source if self.columns is None else source.of_columns(self.columns)
        e, n_classes = posed.estimator, len(posed.classes)
        about = ProblemStats(e._loss(), ElasticNet(1.0, 0.0), source.n_features + e.fit_intercept, n_classes)
        self.by_gram = not posed.standardize and self.columns is None and \
            goes_by_gram_matrix(source.describe(), about, settings_of(e), n_fits * n_classes)
        self.copies = source.describe().here and (posed.standardize or (is_small(source) and not self.by_gram))
        self.positives = None if posed.codes is not None else positives_of(posed.y)

    @cached_property
    def gram_matrix(self):
        """`GramMatrix`, made once for all folds."""
        e = self.posed.estimator
        return self.source.gram_matrix(e.fit_intercept, e.fit_intercept and not e.penalize_intercept)


@dataclass
class FoldProblem:
    """The binary problems of a fold: rows, labels and weights, and where the scores of their classes belong."""

    source: Any
    labels: Labels
    weights: np.ndarray | None
    total_weight: float
    there: np.ndarray            # places of the classes that its training rows have; of an indicator of all labels
    first: int = 0               # the number of the first of them, where ranks or workers know them by that


class PathFold:
    """The paths of one fold, by training rows ``train``, scored on ``test``."""

    def __init__(self, whole, train, test, beside=None):
        """``beside``: `pairs` of the fold before, from which fits begin; None: there is none."""
        self.whole, self.posed, self.train, self.test = whole, whole.posed, train, test
        self.beside, self.pairs = beside or {}, {}       # by l1, `Pairs` of every problem
        self.n_threads = effective_n_threads(self.posed.estimator.n_jobs)
        codes = self.posed.codes
        there = np.arange(len(self.posed.classes)) if codes is None else np.unique(codes[train])
        self.only = there[0] if codes is not None and len(there) == 1 else None
        if self.whole.source.describe().here:
            self.held_out = self.whole.source.X, test            # rows, and the numbers of those that are scored
        self.problem = None if self.only is not None else self._pose(there)

    def _pose(self, there):
        """`FoldProblem`."""
        whole, posed, train = self.whole, self.posed, self.train
        n, estimator = whole.source.n_rows, clone(posed.estimator)
        estimator._names_constants = False
        if whole.copies:
            given = None if posed.weights is None else posed.weights[train]
            source, rows = source_of(self._copied(), posed.y[train]), train
        else:
            given = np.bincount(train, minlength=n).astype(float)
            given = given if posed.weights is None else given * posed.weights
            source, rows = whole.source, slice(None)
        if whole.positives is not None:
            labels, codes = Labels(posed.classes, None, whole.positives[rows]), None
        else:
            place = np.zeros(len(posed.classes), np.min_scalar_type(len(there)))     # of rows held out any will do
            place[there] = np.arange(len(there))
            codes = place[posed.codes[rows]]
            labels = Labels(posed.classes[there], codes)
        weights, total_weight = estimator._weights(given, source, labels.classes, codes)
        return FoldProblem(source, labels, None if weights is None else of_mean_1(weights), total_weight, there)

    def _copied(self):
        """The training rows; scaled, with those that are held out, where columns are to be standardised."""
        X = self.whole.source.X
        X_train = X[self.train]
        if not self.posed.standardize:
            return X_train
        scaler = StandardScaler(with_mean=not self.whole.source.sparse).fit(X_train)
        self.held_out = scaler.transform(X[self.test]), np.arange(len(self.test))
        return scaler.transform(X_train)

    def path(self, steps, deadline):
        """What solves its problems at ``steps``: a `GramPath` or a `PathSolver`."""
        e, problem = self.posed.estimator, self.problem
        if not self.whole.by_gram or steps[0].l1 > 0:
            return self.solver(deadline, self.beside.get(steps[0].l1))
        reads = float("gram_matrix" not in vars(self.whole))       # once for all folds
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
            try:
                gram = self.whole.gram_matrix
            except FloatingPointError:           # squares of rows overflow
                return self.solver(deadline)
            return GramPath(gram, reads, problem.labels, problem.weights, e._loss(),
                            settings_of(e, clock=RunClock(deadline)),
                            threads_of(e, problem.source, len(problem.labels)), lambda: self.solver(deadline))

    def solver(self, deadline, beside=None):
        """The `PathSolver` of its problems."""
        problem, n_problems = self.problem, len(self.problem.labels)
        return path_solver(self.posed, problem.source, problem.labels, problem.weights, deadline,
                           one_by_one=n_problems < self.n_threads, keeps_rows=n_problems == 1, beside=beside)

    def advance(self, steps, fold, deadline, said):
        """Solve and score all ``steps``, those of one l1, but what time leaves. Yields a line about each."""
        begin, scorer, tol = perf_counter(), HeldOut(self), self.posed.estimator.tol
        path, counted = None, 0.0
        if self.problem is not None:
            with refusing_overflow():
                path = self.path(steps, deadline)
                path.solve_all(*zip(*map(self.numbers, steps), strict=True))
            path.let_go()
            self.pairs[steps[0].l1] = path.pairs
            if path.pairs is not None:
                scorer.foresee([path.certify(*self.numbers(step)) for step in steps])
        each = (perf_counter() - begin) / len(steps)
        for step in steps:
            asked, found = perf_counter(), None
            if path is not None:
                with refusing_overflow():
                    found = path.certify(*self.numbers(step))
                fold.passes, counted = fold.passes + path.passes - counted, path.passes
            if path is None or path.stopped is None or largest_gap(found) <= tol:
                yield self.take_score(scorer, step, found, fold, each + perf_counter() - asked, said)

    def take_score(self, scorer, step, found, fold, seconds, said, read=0.0):
        """Score a step of the ``fold`` whose fit took ``seconds``, and reading the rows ``read``; a line about it."""
        begin, gap, tol = perf_counter(), largest_gap(found), self.posed.estimator.tol
        score = scorer.score(step, found)
        for table, value in ((fold.scores, score), (fold.gaps, gap), (fold.fit_seconds, seconds),
                             (fold.score_seconds, perf_counter() - begin + read)):
            step.put(table, value)
        if not gap <= tol:
            said.append(f"{step.name} stopped with a relative duality gap of {gap:.1e} where tol={tol:g} was asked.")
        return f"{step.name}: {self.posed.scoring.name} {score:.4f}, gap {gap:.1e}"

    def numbers(self, step):
        """l2 and l1 of a step: what C says depends on what the fold's rows weigh."""
        C, l2 = step.parameters["C"], step.parameters["l2"]
        return l2 if C is None else l2_of(C, self.problem.total_weight), step.l1


def largest_gap(found):
    """Of `Certified` problems, or None where there are none to solve."""
    return 0.0 if found is None else max(np.inf if one is None else one.gap for one in found)


def path_solver(posed, source, labels, weights, deadline, **more):
    """The `PathSolver` of a search's problems on ``source``."""
    e, clock = posed.estimator, RunClock(deadline)
    seeds = None if e.random_state is None else \
        check_random_state(clone(e).random_state).randint(2**31 - 1, size=len(labels))
    if not source.describe().here:               # between two chunks of a read, too
        source.between_chunks = clock.watch
    return PathSolver(source, labels, weights, loss=e._loss(), intercept=e.fit_intercept,
                      penalize_intercept=e.penalize_intercept, settings=settings_of(e, clock=clock),
                      n_threads=threads_of(e, source, len(labels)), seeds=seeds, **more)


@contextmanager
def refusing_overflow():
    """Fits, with BLAS held to one thread; what overflows is said for users."""
    try:
        with single_threaded_blas():
            yield
    except FloatingPointError:
        raise ValueError("X holds values so large that sums of their squares overflow; scale the features.") from None
