"""``prune`` and ``coef_dtype`` of SmSVM: weights of which zeros are left out, or in single precision, proven as stored.

The bound of a problem holds whatever its weights, so that the gap of pruned ones is that of their objective.
"""

from copy import copy
from types import SimpleNamespace

import numpy as np

from cmargin._core.lanes._lane_batch import LANE_COUNT
from cmargin._core.losses._losses import evaluate
from cmargin._estimators.by_column import refuse_by_column
from cmargin._estimators.validation import InvalidParameterError, check_parameter
from cmargin.solvers.pruning import pruned

LARGEST = {"float64": np.finfo(np.float64).max, "float32": np.finfo(np.float32).max}


def check_stored(estimator):
    """Raise unless ``prune`` and ``coef_dtype`` are what they must be and go with the other parameters."""
    below_1 = (0.0, np.nextafter(1.0, 0.0), "(0.0, 1.0)")
    check_parameter(estimator, "prune", estimator.prune, real=below_1, flag=True)
    check_parameter(estimator, "coef_dtype", estimator.coef_dtype, options=tuple(LARGEST))
    for name in ("lower", "upper"):                      # within which weights stay that are rounded
        bounds = np.array(getattr(estimator, name), float)
        with np.errstate(over="ignore"):
            if not np.isnan(bounds).all() and (bounds.astype(dtype_of(estimator)) != bounds).any():
                raise InvalidParameterError(f"coef_dtype='float32' needs bounds that are numbers in single precision; "
                                            f"got {name}={getattr(estimator, name)!r}.")
    if within(estimator) is not None:
        refuse_by_column(estimator, "prune=")


def within(estimator):
    """The relative gap within which weights may go; infinity: `ShareKept` says which do, None: none do."""
    prune = getattr(estimator, "prune", False)           # a regressor has none
    if isinstance(prune, (bool, np.bool_)):
        return np.inf if prune else None
    return float(prune)


def dtype_of(estimator):
    return getattr(estimator, "coef_dtype", "float64")


def stores_as_usual(estimator):
    return within(estimator) is None and dtype_of(estimator) == "float64"


def refuse_stored(estimator, what):
    """Raise where weights are pruned, or in single precision."""
    if not stores_as_usual(estimator):
        raise ValueError(f"{what} needs prune=False and coef_dtype='float64'; got prune={estimator.prune!r} and "
                         f"coef_dtype={estimator.coef_dtype!r}.")


def training_tol(estimator):
    """The gap to train to: half of what may be lost at most, so that weights can go for the rest."""
    most = within(estimator)
    return estimator.tol if most is None else min(estimator.tol, most / 2)


def largest_objective(dual, most):
    """(B,) whose gap above ``dual`` is ``most``."""
    return np.asarray(dual) / (1 - most)


# ---------------------------------------------------------------- problems side by side

class BatchPruning:
    """What follows a `Batch` whose weights may go: they go, and those that are left are trained again, by turns.

    Training again gives back a part of what the zeros cost, most of it with labels of few rows, for which more weights
    go the second time, the last.
    """

    def __init__(self, rows, positives, most, max_steps):
        self.rows, self.positives, self.most, self.max_steps = rows, positives, most, max_steps
        self.best = {}               # of problems at work: `Proven` of the best weights, and how often some went

    def after(self, batch):
        """The next `Batch` of the same problems, or None: ``batch.proven`` then is of the weights to keep."""
        best, times = self.best.get(batch.lo, (batch.proven, 0))
        if times:
            best = self._better(best, batch.proven)
        if times == 2:
            batch.proven = best
            self.best.pop(batch.lo)
            return None
        self.best[batch.lo] = best, times + 1
        start = np.empty_like(best.w)
        for lo in range(0, len(start), LANE_COUNT):
            here = slice(lo, min(lo + LANE_COUNT, len(start)))
            start[here] = self._pruned(best, batch.lo, here)
        return self.rows.batch(self.positives, self.most / 8, self.max_steps, batch.lo, batch.hi, start)

    def begun(self):
        """The batches that are not at their end, as far as ``lo`` and ``proven`` say."""
        return [SimpleNamespace(lo=lo, proven=best) for lo, (best, _) in self.best.items()]

    def _better(self, best, found):
        """Another `Proven`, so that an interrupt leaves either."""
        better = copy(found)
        better.steps, better.dual = best.steps + found.steps, np.maximum(best.dual, found.dual)
        good = found.objective <= largest_objective(better.dual, self.most)
        for name in ("w", "b", "objective", "active"):
            mine, new = getattr(best, name), getattr(found, name)
            setattr(better, name, np.where(good[:, None] if mine.ndim == 2 else good, new, mine))
        return better

    def _pruned(self, best, first, here):
        problems = self.rows.in_lanes(self.positives[:, first + here.start:first + here.stop], best.b[here])
        W = np.ascontiguousarray(best.w[here].T)
        return pruned(W, problems.bend(W), problems.objective, largest_objective(best.dual[here], self.most)).T


# ---------------------------------------------------------------- a problem that was solved alone

class Alone:
    """Problem ``c`` of a `SmSVMFit`, which is at its end, at other weights (m, 1)."""

    def __init__(self, fit, c):
        self.fit, self.c, self.result = fit, c, fit.results[c]
        self.b, self.y = self.result.w[fit.m:], fit.labels[c]
        self.s = np.ones(fit.n) if fit.weights is None else fit.weights

    def rounded(self):
        """Its weights as they are stored."""
        dtype = dtype_of(self.fit.estimator)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.clip(self.result.w[:self.fit.m, None], -LARGEST[dtype], LARGEST[dtype]).astype(dtype)

    def objective(self, W):
        """(1,) objective of the problem at the weights W."""
        fit = self.fit
        with np.errstate(over="ignore", invalid="ignore"):
            value = self.s @ self._at(W)[0] / fit.n
            return np.array([value + fit.problem.penalty.value(np.append(W[:, 0], self.b)[:fit.free])])

    def bend(self, W):
        """(m, 1) curvature in every weight; of a loss without curvature, rows with a slope stand for it."""
        fit = self.fit
        with np.errstate(over="ignore", invalid="ignore"):
            _, slope, curvature = self._at(W)
            bend = self.s * (curvature if curvature.any() else slope != 0)
            return fit.problem.penalty.l2 + fit.source.sums_of_squares(bend[:, None]) / fit.n

    def _at(self, W):
        """(3, n) value, slope and curvature of the loss of every row."""
        loss = self.fit.problem.loss
        value, slope, curvature = np.empty((3, self.fit.n))
        margins = self.y * (self.fit.source.scores(W.astype(float))[:, 0] + self.b.sum())
        evaluate(loss.id, margins, value, slope, curvature, *loss.numbers)
        return value, slope, curvature

    def keep(self, W):
        fit, result = self.fit, self.result
        result.objective = float(self.objective(W)[0])
        if result.status in ("converged", "decrement") and result.gap > max(fit.estimator.tol, fit.prune or 0.0):
            result.status = "rounded"
        fit.kept.keep(self.c, W[:, 0], self.b.sum())


def keep_alone(fit, c):
    """Prune, or round, the weights of problem ``c`` of a `SmSVMFit`, which is at its end, and keep them."""
    alone = Alone(fit, c)
    W = alone.rounded()
    if fit.prune is not None and fit.prune < 1:
        most = largest_objective([alone.result.dual], fit.prune)
        with np.errstate(over="ignore", invalid="ignore"):
            W = pruned(W, alone.bend(W), alone.objective, most)
    alone.keep(W)
