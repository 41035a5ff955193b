"""Multinomial optima of the same rows along penalties, each certified, and solved for only where no other proves it.

A point (W, b) has the objective R + l2 |W|^2 / 2 at any l2, R its risk; a dual point has E - |V|^2 / (2 l2), and E and
V know nothing of l2. So points found at some penalties prove a gap at others as those of one binary problem do
(`cmargin.solvers.certified`), with E for S and V for v: E is concave in the probabilities p, and t times p
beside 1 - t times the labels has an E of t E at least, and t V.
"""

from dataclasses import dataclass, replace

import numpy as np

from cmargin._runtime.clock import TimeUp
from cmargin.data.arrays import squares
from cmargin.solvers.certified import Bracket, Certified, Pair, Pairs
from cmargin.solvers.multinomial.newton import Optima
from cmargin.solvers.newton.working_set import DEEPER
from cmargin.solvers.path_range import SPAN

BETWEEN = 0.95               # of the tolerance, where it is looked at between penalties
INSIDE = 8                   # places of an interval at which it is looked at
ROWS = 1024                  # that are squared at a time
IN_VAIN = 100.0              # ratio of penalties over which the training error has not fallen: then it falls no more


class Optimum(Pair):
    """A primal and a dual point of all classes found at ``l2``: ``w`` has W, row by row, and the intercepts behind."""

    def __init__(self, result, l2):
        self.l2, self.l1, self.noise, self.size, self.a = l2, 0.0, 0.0, 0.0, None
        self.w, self.v = np.concatenate([result.W.ravel(), result.bias]), result.v.ravel()
        self.square, self.v_square = float(np.sum(result.W**2)), float(self.v @ self.v)
        self.risk, self.total = result.objective - l2 / 2 * self.square, result.total


@dataclass
class Found:
    """Weights at ``l2``, and what is proven of them."""

    proven: Certified
    shape: tuple             # of W

    @property
    def l2(self):
        return self.proven.l2

    @property
    def objective(self):
        return self.proven.objective

    @property
    def gap(self):
        return self.proven.gap

    @property
    def solved(self):
        """Whether they were found by a fit at this very penalty."""
        parts = self.proven.primal_parts
        return len(parts) == 1 and parts[0][1].l2 == self.l2

    @property
    def W(self):
        """(n_classes, n_features) a new array."""
        return self.proven.w[:self.shape[0] * self.shape[1]].reshape(self.shape)

    @property
    def bias(self):
        """(n_classes,) a new array."""
        return self.proven.w[self.shape[0] * self.shape[1]:]


@np.errstate(over="ignore", invalid="ignore")           # of rows that fits refuse, with a sentence
def largest_l2(source, weight=None):
    """An l2 from which on weights are about the difference of the means of the classes, over l2: half the mean square
    of the rows' distance from their mean, which no curvature of the risk is above."""
    n, sums = source.n_rows, []
    weight = np.full(n, 1 / n) if weight is None else weight / weight.sum()

    def see(first, X):
        for lo in range(0, X.shape[0], ROWS):
            rows = X[lo:lo + ROWS]
            own = weight[first + lo:first + lo + rows.shape[0]]
            of_rows = np.asarray(squares(rows).sum(axis=1), float).ravel()
            sums.append((np.asarray(own @ rows, float).ravel(), own @ of_rows))

    source.visit(see)
    mean, square = (sum(parts) for parts in zip(*sums, strict=True))
    spread = square - mean @ mean
    return spread / 2 if 0 < spread < np.inf else 1.0


class MultinomialPath:
    """The rows of `Optima` at any penalties; ``settings.tol`` is what is proven at each.

    ``passes``: reads so far. ``stopped``: what ended a fit short of ``tol``, or None.
    """

    def __init__(self, source, labels, weight, n_classes, settings):
        self.data, self.settings = (source, labels, weight, n_classes), settings
        self.optima = self.last = self.before = self.stopped = None
        self.pairs, self.shape = Pairs(), (n_classes, source.n_features)
        self.passes, self.n_solved, self.fit_tol = 0.0, 0, settings.tol

    def certify(self, l2):
        """`Found` by the fit at ``l2``, or by those next to it, whatever its gap is; None before any fit."""
        own = next((one for one in self.pairs.pairs if one.l2 == l2), None)
        proven = self.pairs.certify(l2) if own is None else Bracket(own, own).certify(l2)
        return None if proven is None else Found(proven, self.shape)

    def solve(self, l2):
        """`Found` to ``tol``, by a fit where the pairs so far prove less."""
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
            self.before, self.last, self.n_solved = here, Optimum(result, l2), self.n_solved + 1
            self.pairs.add(self.last)
        if result.stopped == "max_time":
            raise TimeUp
        if not np.isfinite(result.gap):
            raise ValueError("X holds values so large, or the penalty is so small, that sums over its rows are not "
                             "finite; scale the features.")

    def scores(self, found):
        """(n_rows, n_classes met) scores of all rows by the weights; half a read where they are not the last fit's."""
        run = self.optima.run
        parts = found.proven.primal_parts
        if len(parts) == 1 and parts[0][1] is self.last:
            return run.source.scores
        V, n, met = np.empty_like(run.V), run.source.n_features, self.optima.met
        V[:n] = found.W[met].T
        if run.settings.fit_intercept:
            V[n] = found.bias[met]
        before = run.source.reads
        scores = run.source.scores_at(V)
        self.passes += run.source.reads - before
        return scores

    def let_go(self):
        """Give up the rows, and what is kept of them; pairs stay."""
        self.optima = self.data = None

    # ------------------------------------------------------------ from penalty to penalty

    def along(self, l2s):
        """Yield (place, `Found`) of every penalty, ``l2s`` falling; no fit where two farther apart prove both."""
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
        """Yield `Found` at penalties from ``top`` down that prove every penalty between them to ``tol``.

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
