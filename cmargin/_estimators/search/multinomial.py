"""A search along l2 of the multinomial optimum: folds by weights of 0, one path of optima each, no copies of rows."""

from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from numbers import Integral
from time import perf_counter
from types import SimpleNamespace

import numpy as np

from cmargin._estimators.progress import say
from cmargin._estimators.scores import log_softmax_of
from cmargin._estimators.search.folds import Fold, FoldsAtWork
from cmargin._estimators.search.grid import DEFAULT_L2S, Grid, chosen_l2s, numbers_of
from cmargin._estimators.slnd_fit import a_fit, optimum_settings
from cmargin._estimators.validation import InvalidParameterError
from cmargin._runtime.blas_threads import single_threaded_blas
from cmargin._runtime.clock import TimeUp
from cmargin.solvers.multinomial.path import MultinomialPath, largest_l2

LOG_LOSS, ACCURACY = "neg_log_loss", "accuracy"
IMPOSSIBLE = np.log(np.finfo(float).eps)         # log-probability of a class without training rows, as in log_loss


class PathGrid(Grid):
    """Penalties ``values`` of l2, or of C where ``name`` is "C", in any order."""

    def __init__(self, name, values):
        super().__init__(name, values, [0.0])
        self.order = np.unique(self.strengths)[::-1]

    @property
    def shape(self):
        return (len(self.values),)

    def named(self, i):
        return {self.name: float(self.values[i])}

    def strongest(self, places):
        return max(places, key=lambda at: self.strengths[at[0]])

    def l2s(self, total):
        """The penalties, falling, each once, of rows that weigh ``total``."""
        return self.order if self.name == "l2" else self.order / total


def path_grid_of(search, largest):
    """The `PathGrid` of a search with ``l2s`` or ``Cs``; ``largest()``: the strongest of penalties that are chosen."""
    if search.Cs is not None:
        if search.l2s is not None:
            raise InvalidParameterError(f"Give l2s or Cs, not both; got l2s={search.l2s!r} and Cs={search.Cs!r}.")
        return PathGrid("C", numbers_of(search, "Cs", positive, "(0.0, inf)"))
    if search.l2s is None:
        return PathGrid("l2", DEFAULT_L2S)
    if isinstance(search.l2s, Integral):
        top = largest()
        return PathGrid("l2", chosen_l2s(top, search.l2s))
    return PathGrid("l2", numbers_of(search, "l2s", positive, "(0.0, inf)"))


def positive(values):
    return (values > 0) & np.isfinite(values)


@dataclass(frozen=True)
class Rows:
    """What all folds share; ``codes``: places of the labels ``y`` among ``classes``, ``weights`` (n,) or None."""

    source: object
    y: np.ndarray
    classes: np.ndarray
    codes: np.ndarray
    weights: np.ndarray | None

    def weighed(self, estimator, there=None):
        """Weights of all rows in a fit, class weights in, those not ``there`` 0; and their sum, as it was given.

        A row that is ``there`` twice weighs twice as much.
        """
        sample = self.weights
        if there is not None:
            weights = None if self.weights is None else self.weights[there]
            sample = np.bincount(there, weights, self.source.n_rows).astype(float)
        return estimator._weights(sample, self.source, self.classes, self.codes)

    def largest_l2(self):
        return largest_l2(self.source, self.weights)


class FoldPath:
    """The path of one fold, and how its optima are scored."""

    def __init__(self, run, number):
        self.run, self.rows, (train, self.test) = run, run.data, run.rows[number]
        self.fold, self.number = run.folds[number], number
        weight, total = self.rows.weighed(run.estimator, train)
        self.first = self.fold.n_done                    # of the penalties; a checkpoint has those before
        self.l2s = run.grid.l2s(total)[self.first:]
        settings = optimum_settings(run.estimator, 1.0, len(self.rows.classes), run.deadline)
        codes = self.rows.codes.astype(np.int64, copy=False)
        self.path = MultinomialPath(self.rows.source, codes, weight, len(self.rows.classes), settings)
        self.X_test, self.passes_before = None, self.fold.passes

    def advance(self):
        """Make and score one optimum after the other, and yield after each."""
        run, begin = self.run, perf_counter()
        doubled = 2 if len(self.rows.classes) == 2 else 1
        for place, found in self.path.along(self.l2s * doubled):
            fitted = perf_counter()
            score = self.score(found)
            ended = perf_counter()
            at, fold = run.grid.strengths == run.grid.order[self.first + place], self.fold
            fold.scores[at], fold.gaps[at] = score, found.gap
            fold.fit_seconds[at], fold.score_seconds[at] = fitted - begin, ended - fitted
            if not found.gap <= self.path.settings.tol:
                run.said.append(f"l2={self.l2s[place]:g} in fold {self.number + 1}, with a relative duality gap of "
                                f"{found.gap:.1e} where tol={self.path.settings.tol:g} was asked.")
            fold.n_done, fold.passes = fold.n_done + 1, self.passes_before + self.path.passes
            say(run.search, f"fold {self.number + 1}, l2={self.l2s[place]:g}: {run.posed.scoring.name} {score:.4f}, "
                            f"{'' if found.solved else 'no fit, '}{self.path.passes:.4g} reads so far")
            run.checkpointer.offer(run.n_passes, lambda: run.folds)
            begin = ended
            yield

    def score(self, found):
        named, test, weights = self.run.search.scoring, self.test, self.rows.weights
        if named is not None and not (isinstance(named, str) and named in (ACCURACY, LOG_LOSS)):
            return self.by_scorer(found)
        weights = None if weights is None or not self.run.weighs else weights[test]
        met, codes = self.path.optima.met, self.rows.codes[test]
        scores = self.path.scores(found)[test]
        if named != LOG_LOSS:
            return self.run.posed.scoring.share(met[scores.argmax(axis=1)] == codes, weights)
        place = np.full(len(self.rows.classes), -1)
        place[met] = np.arange(len(met))
        at = place[codes]
        logarithms = log_softmax_of(scores.astype(float))[np.arange(len(at)), np.maximum(at, 0)]
        return self.run.posed.scoring.share(np.where(at < 0, IMPOSSIBLE, np.maximum(logarithms, IMPOSSIBLE)), weights)

    def by_scorer(self, found):
        """What a scorer says of the estimator, on a copy of the fold's rows."""
        rows, run = self.rows, self.run
        if self.X_test is None:
            self.X_test = rows.source.take(self.test, rows.source.dtype)
        model = a_fit(run.estimator, found.W, found.bias, rows.classes)
        n = rows.source.n_rows
        params = {name: value[self.test] if np.shape(value)[:1] == (n,) else value
                  for name, value in run.posed.score_params.items()}
        return run.posed.scoring(model, self.X_test, rows.y[self.test], **params)


class PathSearchRun(FoldsAtWork):
    """All fits of all folds: a fold after the other or, where time may end the search, all folds penalty by penalty."""

    def __init__(self, search, data, grid, rows, scoring, score_params, checkpointer, deadline):
        self.search, self.data, self.grid, self.rows, self.deadline = search, data, grid, rows, deadline
        self.estimator, self.steps, self.said, self.of_best = search._estimator, grid.order, [], None
        self.posed = SimpleNamespace(scoring=scoring, score_params=score_params)
        self.weighs = "sample_weight" in score_params
        self.checkpointer = checkpointer
        self.folds = checkpointer.found or [Fold.begun(grid.shape) for _ in rows]

    @property
    def n_left(self):
        return sum(len(self.steps) - fold.n_done for fold in self.folds)

    def run(self):
        ways = (FoldPath(self, number).advance() for number in range(len(self.folds)))
        with self.kept(), suppress(TimeUp), single_threaded_blas():
            if self.deadline is None:
                for way in ways:
                    for _ in way:
                        pass
            else:
                for _ in zip_longest(*ways):
                    pass
