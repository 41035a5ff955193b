"""``prune=True`` of SmSVM: a part of the weights of all problems together stays, trained again without the others.

Those go that cost least by the curvature (`cmargin.solvers.pruning`), in one order for all problems: scores of labels
are compared with each other, and a label that rows hardly tell needs few weights. That is done twice, as what is left
costs otherwise once it was trained again. A problem's bound stays that of all its weights.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from cmargin._core.lanes._lane_batch import LANE_COUNT
from cmargin._estimators.pruned import Alone, keep_alone, stores_as_usual, within
from cmargin.data.memory.source import MemorySource
from cmargin.solvers.newton.label_batches import most_steps, solve_together
from cmargin.solvers.newton.slices import side_by_side
from cmargin.solvers.newton.stages import Shared, Stages
from cmargin.solvers.pruning import Costliest
from cmargin.solvers.result import Result

STAYING = {0.3: 0.3, 0.15: 0.1}      # share of the weights: relative gap to which those that stay are trained


def said_of_pruning(estimator):
    """Yield what becomes of weights after the stages of a plan, in a sentence; nothing where none go."""
    most = within(estimator)
    if most == np.inf:
        yield f"Then all but {min(STAYING):.0%} of the weights of all problems go, and those are trained again."
    elif most is not None:
        yield f"Then weights go within a relative gap of {most:g}; side by side the others are trained again."


class ShareKept:
    """Hears of the problems of a `SmSVMFit` at their end, and prunes them all in `finish`."""

    def __init__(self, fit):
        self.fit, self.rows = fit, None              # `LaneRows` of the problems that were solved side by side
        self.together, self.alone = set(), []        # problems
        self.rounds, self.chosen = list(STAYING), None
        self.heard = self._costliest()

    def _costliest(self):
        """Of the next round, or None."""
        if not self.rounds:
            return None
        k, source, there = len(self.fit.labels), self.fit.source, np.ones(self.fit.m, bool)
        if source.sparse:
            there[:] = False
            there[source.X.indices] = True           # no others have weights
        return Costliest((k, self.fit.m), int(self.rounds[0] * k * np.count_nonzero(there)) or 1)

    # ------------------------------------------------------------ problems at their end

    def hear_together(self, labels, proven):
        """Problems ``labels`` that were solved side by side; ``proven``: a `Proven` of them."""
        self.fit.kept.bias[labels] = proven.b
        for lo in range(0, len(labels), LANE_COUNT):
            here = slice(lo, lo + LANE_COUNT)
            self.heard.add(labels[here], proven.w[here], self._in_lanes(labels[here]).bend(proven.w[here].T).T)

    def hear_alone(self, c):
        if c in self.together:
            return
        alone = Alone(self.fit, c)
        w = alone.rounded()
        if self.chosen is not None:
            alone.result.objective = float(alone.objective(w)[0])
        self.heard.add(np.array([c]), w.T, alone.bend(w).T)
        self.alone.append(c)

    def _in_lanes(self, labels):
        return self.rows.in_lanes(self.fit.labels.columns()[:, labels], self.fit.kept.bias[labels])

    # ------------------------------------------------------------ once all are

    def finish(self):
        """By rounds, some weights go and the others are trained again; then they are kept."""
        fit, together = self.fit, np.sort(np.array(list(self.together), int))
        while self.rounds and not fit._between_slices():
            tol = max(fit.settings.tol, STAYING[self.rounds.pop(0)])
            self.chosen, self.heard, alone, self.alone = self.heard.chosen(), self._costliest(), self.alone, []
            if len(together):
                batches = [partial(self._batch, together, tol, lo, hi) for lo, hi in self.rows.spans(len(together))]
                solve_together(batches, fit.n_threads, fit._between_slices, partial(self._hear, together))
            side_by_side((self._again(c, tol) for c in alone), fit.n_threads, "stopped", fit.interrupted.set)

    def _batch(self, together, tol, lo, hi):
        fit, labels = self.fit, together[lo:hi]
        start = self.chosen[labels].toarray().astype(np.float32)
        batch = self.rows.batch(fit.labels.columns()[:, labels], tol, most_steps(fit.settings.max_passes), 0, hi - lo,
                                start, self.heard is None)
        return replace(batch, lo=lo, hi=hi)

    def _hear(self, together, batch):
        labels, proven, fit = together[batch.lo:batch.hi], batch.proven, self.fit
        for at, c in enumerate(labels):
            result = fit.results[c]
            result.passes += proven.steps[at] + 1
            result.n_iter += int(proven.steps[at])
            if self.heard is None:
                result.objective = float(proven.objective[at])
                fit.kept.keep(c, proven.w[at], proven.b[at])
        if self.heard is not None:
            self.hear_together(labels, proven)

    def _again(self, c, tol):
        """Yield the drivers that train the weights chosen of a problem that was solved alone."""
        fit, result = self.fit, self.fit.results[c]
        chosen = self.chosen[[c]]
        columns, w = chosen.indices, chosen.data.astype(float)
        if not len(columns):                         # the intercept needs a problem
            columns, w = np.array([np.abs(result.w[:fit.m]).argmax()]), np.zeros(1)
        if result.w[:fit.m].any():
            found = Result(fit.problem.penalty.start(np.append(w, result.w[fit.m:])))
            yield from self._stages(c, columns, found, tol).drivers()
            result.w = np.zeros_like(result.w)
            result.w[columns], result.w[fit.m:] = found.w[:len(columns)], found.w[len(columns):]
            result.passes += found.passes * len(columns) / fit.m
        if self.heard is not None:
            self.hear_alone(c)
        else:
            alone = Alone(fit, c)
            alone.keep(alone.rounded())

    def _stages(self, c, columns, found, tol):
        fit = self.fit
        penalty = fit.problem.penalty.of_columns(columns, fit.m)
        problem = replace(fit.problem, penalty=penalty, free=None if fit.free is None else len(columns))
        about = replace(fit.shared.about, penalty=penalty, n_columns=len(columns) + fit.intercept, n_problems=1,
                        warm=True, may_share=False)
        settings = replace(fit.settings, tol=tol, between=fit._between_slices)
        shared = Shared(MemorySource(fit.source.X[:, columns], fit.source.y), problem, about, fit.weights,
                        fit.intercept)
        shared.learn(settings)
        return Stages(shared, fit.labels.signed_weight(c, fit.weights), settings, found, fit.seeds[c], 1, found.w)

    # ------------------------------------------------------------ a fit that was stopped

    def leave(self):
        """Keep what is known of problems that were solved side by side: of their weights those that were to stay."""
        left = np.array([c for c in self.together if c not in self.fit.kept.kept], int)
        if not len(left):
            return
        newest = self.chosen if self.heard is None else self.heard.chosen()
        if self.chosen is not None and newest is not self.chosen:
            unheard = np.diff(newest.indptr) == 0
            newest = newest + self.chosen.multiply(unheard[:, None]).tocsr()
        for lo in range(0, len(left), LANE_COUNT):
            labels = left[lo:lo + LANE_COUNT]
            W = newest[labels].toarray().T
            objective = self._in_lanes(labels).objective(W) * (1 + 1e-5)           # in single precision
            for at, c in enumerate(labels):
                self.fit.results[c].objective = float(objective[at])
                self.fit.results[c].status = self.fit._between_slices() or "stopped"
                self.fit.kept.keep(c, W[:, at], self.fit.kept.bias[c])


def keep_the_rest(fit, ended):
    """Keep the weights of the problems ``ended`` of a `SmSVMFit` that was stopped before they were."""
    if fit.share is not None:
        fit.share.leave()
    if stores_as_usual(fit.estimator):
        return
    for c in ended:
        if c not in fit.kept.kept:
            keep_alone(fit, c)
            if fit.share is not None:
                fit.results[c].status = fit._between_slices() or "stopped"
