"""The folds of a search over rows elsewhere than in this process's memory: all folds and paths go on together.

Each problem leaves out the rows that its fold holds out by a weight of 0. One read of the files serves all that wait
for one (`PathSolver.prove_on`), and one more, or a few where memory has no room for as many products, scores the rows
held out.
"""

from time import perf_counter

import numpy as np

from cmargin._estimators.search.held_out import HeldOut, decisions, pairs_of
from cmargin._estimators.search.path_fold import PathFold, largest_gap, path_solver, refusing_overflow
from cmargin.data.files.memory_left import memory_left
from cmargin.data.files.source import GATHERED
from cmargin.solvers.penalty import ElasticNet


class LabelsOfFolds:
    """``problems``, pairs of a `FoldProblem` and a number of one of its binary problems, as labels of a `PathSolver`.
    """

    def __init__(self, problems):
        self.problems = problems

    def __len__(self):
        return len(self.problems)

    def signed_weight(self, k, _):
        problem, c = self.problems[k]
        if problem.source.agreed is not None:    # places know their problems by a number
            return problem.first + c
        return problem.labels.signed_weight(c, problem.weights)


class PathOfFold:
    """The penalties of one fold beside one l1, and the places of its problems among all."""

    def __init__(self, number, part, steps, first):
        self.number, self.part, self.steps = number, part, steps       # ``number`` of the fold
        self.places = slice(first, first + (0 if part.problem is None else len(part.problem.labels)))
        self.scorer = FarHeldOut(part)

    @property
    def grid(self):
        return [ElasticNet(*self.part.numbers(step)) for step in self.steps]


class FarHeldOut(HeldOut):
    """`HeldOut` whose products with rows are made while these are read."""

    def __init__(self, part):
        super().__init__(part)
        self.order = np.argsort(part.test, kind="stable")
        self.ascending = part.test[self.order]

    def expect(self, pairs):
        """Those whose products are made next, in place of others'."""
        pairs = {id(pair): pair for pair in pairs}
        self.products = {key: np.empty(len(self.ascending)) for key in pairs}
        self.W = np.stack([pair.w for pair in pairs.values()]) if pairs else None

    def see(self, first, X):
        """Rows ``first`` .. of all, in memory."""
        lo, hi = np.searchsorted(self.ascending, [first, first + X.shape[0]])
        if self.W is not None and hi > lo:
            found = decisions(X, self.ascending[lo:hi] - first, self.W, self.posed.estimator.fit_intercept,
                              self.fold.n_threads)
            for product, part in zip(self.products.values(), found.T, strict=True):
                product[self.order[lo:hi]] = part

    def make_products(self, found):
        """Nothing: those that were expected are there."""

    def take_from(self, source, number):
        """The same of places that know fold ``number``, and say a row that is held out several times once."""
        if self.W is not None:
            found = source.products_held_out(number, self.W, self.posed.estimator.fit_intercept)
            which = np.unique(self.ascending, return_inverse=True)[1]
            for product, part in zip(self.products.values(), found.T, strict=True):
                product[self.order] = part[which]


class FoldsElsewhere:
    """All fits of a `SearchRun` over the rows of ``whole``, and their scores."""

    def __init__(self, run, whole):
        self.run, self.source, self.paths, n, n_told = run, whole.source, [], 0, 0
        for number, (fold, rows) in enumerate(zip(run.folds, run.rows, strict=True)):
            part = PathFold(whole, *rows) if run.left(fold) else None
            if part is not None and part.problem is not None:
                part.problem.first, n_told = n_told, n_told + len(part.problem.labels)
                if self.source.agreed is not None:
                    part.problem.weights = None                  # places have them
            for steps in run.paths_left(fold):
                self.paths.append(PathOfFold(number, part, steps, n))
                n = self.paths[-1].places.stop
        self.solver, self.counted = None, 0.0    # reads that the folds have counted

    def solve(self, deadline):
        """Prove every penalty of every fold, as far as time lets it."""
        problems = [(path.part.problem, c) for path in self.paths for c in range(path.places.stop - path.places.start)]
        if not problems:
            return
        self.solver = solver = path_solver(self.run.posed, self.source, LabelsOfFolds(problems), None, deadline,
                                           one_by_one=True, keeps_rows=False, note=lambda *_: self.offer())
        for path in self.paths:                  # what a checkpoint has of them
            for pairs, kept in zip(solver.pairs[path.places], self.last_of(path), strict=False):
                for pair in kept:
                    pairs.add(pair)
        try:
            with refusing_overflow():
                solver.prove_on([path.grid for path in self.paths for _ in solver.pairs[path.places]])
        finally:
            solver.note = None                   # a cycle otherwise, by which the rows would outlive the search

    def last_of(self, path):
        """Of every problem the pairs that the search before has ended with."""
        return self.run.folds[path.number].last.get(path.steps[0].l1, ())

    def keep(self):
        """Let the folds have their pairs so far, for a checkpoint, and count the reads."""
        if self.solver is not None:
            for path in self.paths:
                kept = [pairs.pairs for pairs in self.solver.pairs[path.places]]
                self.run.folds[path.number].last[path.steps[0].l1] = kept
        passes = 0.0 if self.solver is None else self.solver.passes
        reads = self.source.reads or passes
        self.run.folds[0].passes += reads - self.counted         # those of all folds
        self.counted = reads

    def offer(self):
        self.keep()
        self.run.checkpointer.offer(self.run.n_passes, lambda: self.run.folds)

    def score(self, seconds):
        """Score what is proven, ``seconds`` a fit; yields the number of a fold and a line about each step."""
        for jobs in self.in_room():
            begin = perf_counter()
            for path in self.paths:
                path.scorer.expect([pair for one, _, found in jobs if one is path for pair in pairs_of(found)])
            self.read()
            each = (perf_counter() - begin) / len(jobs)
            for path, step, found in jobs:
                yield path.number, path.part.take_score(path.scorer, step, found, self.run.folds[path.number], seconds,
                                                        self.run.said, each)

    def read(self):
        """Make the products that scorers expect."""
        if self.source.agreed is None:
            self.source.visit(lambda first, X: [path.scorer.see(first, X) for path in self.paths])
            return
        for path in self.paths:
            path.scorer.take_from(self.source, path.number)

    def proven(self):
        """(path, step, its `Certified`s or None) of every score that is to be made."""
        solver, tol = self.solver, self.run.posed.estimator.tol
        for path in self.paths:
            for step in path.steps:
                found = None
                if path.part.problem is not None:
                    found = [pairs.certify(*path.part.numbers(step)) for pairs in solver.pairs[path.places]]
                if found is None or solver.stopped is None or largest_gap(found) <= tol:
                    yield path, step, found

    def in_room(self):
        """`proven` in lists, each of no more products than memory has room for, or of one."""
        room, jobs, n, counted = GATHERED * memory_left() / 8, [], 0, set()
        for path, step, found in self.proven():
            fresh = {(path, id(pair)) for pair in pairs_of(found)} - counted
            if jobs and n + len(fresh) * len(path.part.test) > room:
                yield jobs
                jobs, n, counted = [], 0, set()
                fresh = {(path, id(pair)) for pair in pairs_of(found)}
            jobs.append((path, step, found))
            n, counted = n + len(fresh) * len(path.part.test), counted | fresh
        if jobs:
            yield jobs
