"""Multinomial optima of the same rows along penalties, each certified, and solved for only where no other proves it.

A point (W, b) has the objective R + l2 |W|^2 / 2 at any l2, R its risk; a dual point has E - |V|^2 / (2 l2), and E
and V know nothing of l2. So one pair proves a gap for an interval of penalties (Giesen, Jaggi and Laue 2012): found at
l2 it has, at l2', about that gap and |W|^2 (l2' - l2)^2 / (2 l2') more. Two pairs prove far more between them, as R is
convex and E concave. For 0 <= k <= 1

    P(k W1 + (1 - k) W2) <= k R1 + (1 - k) R2 + (l2 / 2) |k W1 + (1 - k) W2|^2,
    D(k p1 + (1 - k) p2) >= k E1 + (1 - k) E2 - |k V1 + (1 - k) V2|^2 / (2 l2),

each at a k of its own, the best of which a quadratic gives.
"""

from dataclasses import dataclass, replace

import numpy as np

from cmargin._runtime.clock import TimeUp
from cmargin.data.arrays import squares
from cmargin.solvers.multinomial.newton import TINY, Optima
from cmargin.solvers.newton.working_set import DEEPER

BETWEEN = 0.95               # of the tolerance, where it is looked at between penalties
INSIDE = 8                   # places of an interval at which it is looked at
ROWS = 1024                  # that are squared at a time
SPAN = 1e-6                  # the weakest of penalties that are chosen, over the strongest
IN_VAIN = 100.0              # ratio of penalties over which the training error has not fallen: then it falls no more


class Pair:
    """A primal and a dual point found at ``l2``, and the numbers that others are made of."""

    def __init__(self, result, l2):
        self.l2, self.W, self.bias, self.V = l2, result.W, result.bias, result.v
        self.square, self.v_square = float(np.sum(result.W**2)), float(np.sum(result.v**2))
        self.risk, self.total = result.objective - l2 / 2 * self.square, result.total


@dataclass
class Certified:
    """Weights and what is proven of them at ``l2``: ``objective`` is at least theirs, ``dual`` at most the minimum."""

    l2: float
    objective: float
    dual: float
    parts: tuple             # of (part, `Pair`): the weights are the sum of part times W
    solved: bool             # found by a fit at this very penalty

    @property
    def gap(self):
        """(P - D) / P."""
        return max(0.0, self.objective - self.dual) / max(self.objective, TINY)

    @property
    def W(self):
        """(n_classes, n_features) a new array."""
        return sum(part * pair.W for part, pair in self.parts)

    @property
    def bias(self):
        return sum(part * pair.bias for part, pair in self.parts)


def certify(first, second, l2):
    """`Certified` at ``l2`` by the best that two pairs prove; or by one, given twice."""
    objective, best = min(((one.risk + l2 / 2 * one.square, one) for one in (first, second)), key=lambda of: of[0])
    found = Certified(l2, objective, max(one.total - one.v_square / (2 * l2) for one in (first, second)),
                      ((1.0, best),), best.l2 == l2)
    if first is second or found.solved:
        return found
    a, b = first, second
    product, v_product = float(np.sum(a.W * b.W)), float(np.sum(a.V * b.V))
    k = least_of(a.risk - b.risk + l2 * (product - b.square), l2 * (a.square - 2 * product + b.square))
    value = k * a.risk + (1 - k) * b.risk + l2 / 2 * mixed_square(k, a.square, product, b.square)
    if value < found.objective:
        found.objective, found.parts = value, ((k, a), (1 - k, b))
    k = least_of(b.total - a.total + (v_product - b.v_square) / l2, (a.v_square - 2 * v_product + b.v_square) / l2)
    value = k * a.total + (1 - k) * b.total - mixed_square(k, a.v_square, v_product, b.v_square) / (2 * l2)
    found.dual = max(found.dual, value)
    return found


@np.errstate(over="ignore", invalid="ignore")           # of rows that fits refuse, with a sentence
def largest_l2(source, weight=None):
    """An l2 from which on weights are about the difference of the means of the classes, over l2: half the mean square
    of the rows' distance from their mean, which no curvature of the risk is above."""
    X, n = source.X, source.n_rows
    weight = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    mean = np.asarray(weight @ X, float).ravel()
    square = sum(float(weight[lo:lo + ROWS] @ np.asarray(squares(X[lo:lo + ROWS]).sum(axis=1), float).ravel())
                 for lo in range(0, n, ROWS))
    spread = square - mean @ mean
    return spread / 2 if 0 < spread < np.inf else 1.0


def least_of(slope, bend):
    """Where slope k + bend k^2 / 2 is least, 0 <= k <= 1."""
    return min(1.0, max(0.0, -slope / bend)) if bend > 0 else float(slope < 0)


def mixed_square(k, a, product, b):
    return k * k * a + 2 * k * (1 - k) * product + (1 - k)**2 * b


class MultinomialPath:
    """The rows of `Optima` at any penalties; ``settings.tol`` is what is proven at each.

    ``passes``: reads so far. ``stopped``: what ended a fit short of ``tol``, or None.
    """

    def __init__(self, source, labels, weight, n_classes, settings):
        self.data, self.settings = (source, labels, weight, n_classes), settings
        self.optima = self.last = self.before = self.stopped = None
        self.pairs, self.passes, self.n_solved, self.fit_tol = [], 0.0, 0, settings.tol

    def certify(self, l2):
        """`Certified` by the pairs next to ``l2``, whatever its gap is; None before any fit."""
        if not self.pairs:
            return None
        place = int(np.searchsorted([-one.l2 for one in self.pairs], -l2))
        return certify(self.pairs[max(0, place - 1)], self.pairs[min(place, len(self.pairs) - 1)], l2)

    def solve(self, l2):
        """`Certified` to ``tol``, by a fit where the pairs so far prove less."""
        known = self.certify(l2)
        if known is None or not known.gap <= self.settings.tol:
            self._fit(l2)
            known = self.certify(l2)
        return known

    def _fit(self, l2):
        if self.optima is None:
            self.optima = Optima(*self.data, replace(self.settings, l2=l2, tol=self.fit_tol))
            self.before, here = self.optima.run.V.copy(), self.optima.run.V.copy()
            result, interrupted = self.optima.found()
        else:
            run = self.optima.run
            here, run.settings = run.V.copy(), replace(run.settings, tol=self.fit_tol)
            falling = l2 < self.last.l2 and self.before is not None
            result, interrupted = self.optima.at(l2, self.before if falling else None)
        self.passes += result.reads
        if interrupted is not None:
            raise interrupted.taken()
        if result.stopped != "tol":
            self.stopped = result.stopped
        if np.isfinite(result.gap):
            self.before, self.last, self.n_solved = here, Pair(result, l2), self.n_solved + 1
            self.pairs = sorted([one for one in self.pairs if one.l2 != l2] + [self.last], key=lambda one: -one.l2)
        if result.stopped == "max_time":
            raise TimeUp
        if not np.isfinite(result.gap):
            raise ValueError("X holds values so large, or the penalty is so small, that sums over its rows are not "
                             "finite; scale the features.")

    def scores(self, certified):
        """(n_rows, n_classes met) scores of all rows by the weights; half a read where they are not the last fit's."""
        run = self.optima.run
        if certified.parts[0][1] is self.last and len(certified.parts) == 1:
            return run.source.scores
        V, n, met = np.empty_like(run.V), run.source.n_features, self.optima.met
        V[:n] = certified.W[met].T
        if run.settings.fit_intercept:
            V[n] = certified.bias[met]
        before = run.source.reads
        scores = run.source.scores_at(V)
        self.passes += run.source.reads - before
        return scores

    def let_go(self):
        """Give up the rows, and what is kept of them; pairs stay."""
        self.optima = self.data = None

    # ------------------------------------------------------------ from penalty to penalty

    def along(self, l2s):
        """Yield (place, `Certified`) of every penalty, ``l2s`` falling; no fit where two farther apart prove both."""
        ratio, at = 1.0, 0
        if len(l2s):
            yield 0, self.solve(l2s[0])
        while at < len(l2s) - 1:
            far = max(at + 1, int(np.searchsorted(-l2s, -l2s[at] / ratio * (1 - 1e-12), side="right")) - 1)
            self.fit_tol = (DEEPER if far > at + 1 else 1.0) * self.settings.tol
            end = self.solve(l2s[far])
            for place in range(at + 1, far):
                yield place, self.solve(l2s[place])
            yield far, end
            gap = self.certify(np.sqrt(l2s[at] * l2s[far])).gap
            gap = gap if gap > self.settings.tol else self.worst(l2s[at], l2s[far])
            ratio, at = self._next_ratio(l2s[at], l2s[far], gap), far

    def intervals(self, top, least):
        """Yield `Certified` at penalties from ``top`` down that prove every penalty between them to ``tol``.

        The last is at ``least``; None: where the training error has fallen no more for long, or at `SPAN` of ``top``.
        """
        self.fit_tol = DEEPER * self.settings.tol
        yield self.solve(top)
        l2, ratio, bottom, ahead = top, 2.0, SPAN * top if least is None else least, []
        lowest, since = self.training_error(), top
        while l2 > bottom and (ahead or least is not None or (lowest > 0 and since < IN_VAIN * l2)):
            if not ahead:
                ahead.append(max(bottom, l2 / ratio))
                self._fit(ahead[-1])
                error = self.training_error()
                lowest, since = (error, ahead[-1]) if error < lowest else (lowest, since)
            while (worst := self.worst(l2, ahead[-1])) > BETWEEN * self.settings.tol and l2 / ahead[-1] > 1 + 1e-6:
                ahead.append(np.sqrt(l2 * ahead[-1]))
                self._fit(ahead[-1])
            ratio, l2 = self._next_ratio(l2, ahead[-1], worst), ahead.pop()
            yield self.certify(l2)

    def worst(self, high, low):
        """The largest gap at places between two penalties."""
        return max(self.certify(l2).gap for l2 in np.geomspace(high, low, INSIDE + 2)[1:-1])

    def _next_ratio(self, high, low, worst):
        """How far the next fit may be; ``worst``: the largest gap between the last two.

        What two pairs leave between them, beside their own gaps, goes as the square of their distance.
        """
        tol, own = self.settings.tol, max(self.certify(high).gap, self.certify(low).gap)
        there = max(worst - own, (DEEPER * (1 - DEEPER))**2 * tol)
        return float((high / low)**((1 - DEEPER) * np.sqrt(tol / there)))

    def training_error(self):
        """Share of the rows, by weight, that the last fit is wrong about."""
        source = self.optima.run.source
        wrong = source.scores.argmax(axis=1) != source.labels
        return float(wrong @ source.weight) / source.n_rows
