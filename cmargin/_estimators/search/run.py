"""All fits of all folds of a search, until they are made or time is over."""

from itertools import groupby
from time import perf_counter

import numpy as np

from cmargin._core.util._fp_control import StandardArithmetic
from cmargin._estimators.progress import say
from cmargin._estimators.search.elsewhere import FoldsElsewhere
from cmargin._estimators.search.fits import CopiedFold
from cmargin._estimators.search.folds import Fold, FoldsAtWork
from cmargin._estimators.search.path_fold import PathFold, WholeRows, takes_paths
from cmargin._runtime.checkpoint import NO_CHECKPOINTER
from cmargin._runtime.fit_slots import FitSlot
from cmargin.data.open_here import source_of


class SearchRun(FoldsAtWork):
    """``rows``: pairs of training and test rows. ``said``: a sentence on every fit that fell short of the tolerance."""

    copied = CopiedFold

    def __init__(self, search, posed, grid, rows, checkpointer=NO_CHECKPOINTER, deadline=None, whole=None):
        """``whole``: `WholeRows` that are opened already, or None."""
        self.search, self.posed, self.grid, self.whole = search, posed, grid, whole
        self.checkpointer, self.deadline = checkpointer, deadline
        self.steps, self.rows, self.said = list(grid.steps()), rows, []
        self.folds = checkpointer.found or [Fold.begun(grid.shape) for _ in rows]
        self.at_hand = None                      # the fold whose rows are copied, and its copy
        self.of_best = None                      # the sentence on the fit to all rows

    def late(self):
        return self.deadline is not None and perf_counter() >= self.deadline

    @property
    def n_left(self):
        """Fits that are still to be made."""
        return sum(len(self.left(fold)) for fold in self.folds)

    def left(self, fold):
        """Steps that nothing has been scored of: of a path that time has ended those that were not proven."""
        return [step for step in self.steps if np.isnan(step.of(fold.fit_seconds))]

    def run(self):
        with self.kept():
            if self.takes_paths():
                with StandardArithmetic(), FitSlot(waits=self.deadline is None):
                    self.make_paths()
            else:
                for number in self.order():
                    if self.late() or not self.make(number):
                        break

    # ---------------------------------------------------------------- paths

    def takes_paths(self):
        source = source_of(self.posed.X, self.posed.y) if self.whole is None else self.whole.source
        return takes_paths(self.posed.estimator, source, self.grid)

    def make_paths(self):
        """The paths of one fold after the other, each with an equal share of what is left of the time."""
        n_fits = len(self.steps) * len(self.folds)
        whole = self.whole or WholeRows(self.posed, n_fits=n_fits)
        n_left = sum(bool(self.left(fold)) for fold in self.folds)
        self.checkpointer.offer(self.n_passes, lambda: self.folds)
        if not whole.source.describe().here:
            self.make_elsewhere(whole)
            return
        beside = {}                              # what is known of the fold before
        for number, fold in enumerate(self.folds):
            paths = self.paths_left(fold)
            if not paths:
                continue
            if self.late():
                return
            solver = None                        # its memory goes first
            solver, share = PathFold(whole, *self.rows[number], beside), self.share(n_left)
            n_left -= 1
            for place, path in enumerate(paths):
                for line in solver.advance(path, fold, self.share(len(paths) - place, share), self.said):
                    say(self.search, f"fold {number + 1}, {line}")
                self.checkpointer.offer(self.n_passes, lambda: self.folds)
            beside = solver.pairs

    def make_elsewhere(self, whole):
        """All folds together, over rows that are not in memory."""
        try:
            begin, folds = perf_counter(), FoldsElsewhere(self, whole)
            try:
                folds.solve(self.deadline)
            finally:
                folds.keep()
            whole.source.between_chunks = lambda: None
            for number, line in folds.score((perf_counter() - begin) / max(1, self.n_left)):
                say(self.search, f"fold {number + 1}, {line}")
            folds.keep()
        finally:
            if self.whole is None:
                whole.source.let_go()

    def paths_left(self, fold):
        """Lists of the steps that nothing has been scored of, one for every l1."""
        return [list(path) for _, path in groupby(self.left(fold), key=lambda step: step.l1)]

    def share(self, n, end=None):
        """When the next of ``n`` pieces of work has to end that share the time until ``end``, None: of all there is."""
        if self.deadline is None:
            return None
        now = perf_counter()
        return now + ((self.deadline if end is None else end) - now) / n

    # ---------------------------------------------------------------- fit by fit

    def order(self):
        """Folds, once for every fit: one after the other, or, where time may end the search, step by step."""
        if self.deadline is None:
            for number, fold in enumerate(self.folds):
                yield from [number] * (len(self.steps) - fold.n_done)
        else:
            for place in range(len(self.steps)):
                yield from (number for number, fold in enumerate(self.folds) if fold.n_done <= place)

    def make(self, number):
        """The next fit of a fold; whether time has let it come to its end."""
        fold, limit = self.folds[number], self.posed.estimator.max_time
        if self.at_hand is None or self.at_hand[0] != number:
            self.at_hand = None                  # its memory goes first
            self.at_hand = number, self.copied(self.posed, *self.rows[number])
        if self.deadline is not None:
            left = max(self.deadline - perf_counter(), 1e-6)
            limit = left if limit is None else min(limit, left)
        line = self.at_hand[1].advance(self.steps[fold.n_done], fold, limit, self.late, self.said)
        if line is None:
            return False
        say(self.search, f"fold {number + 1}, {line}")
        self.checkpointer.offer(self.n_passes, lambda: self.folds)
        return True
