"""What a primal and a dual point found at some penalties prove at others: objectives and bounds by arithmetic.

A point w with its risk R(w), the mean loss, has at any penalties the objective

    P(w; l2, l1) = R(w) + l1 |w|_1 + l2 |w|^2 / 2,

and dual variables a, whose S = (1/N) sum s G(a) and v = (1/N) sum s a y x no penalty enters, have the dual value

    D(a; l2, l1) = max over 0 <= t <= 1 of  t S - |soft(t v, l1)|^2 / (2 l2)           (``_core/penalties/_penalties``).

So one pair proves a gap for an interval of penalties (Giesen, Jaggi and Laue 2012). Two pairs prove far more between
them, as R is convex and G concave. For 0 <= k <= 1

    P(k w1 + (1 - k) w2) <= k R(w1) + (1 - k) R(w2) + penalty at k w1 + (1 - k) w2,
    D(k a1 + (1 - k) a2) >= bound of  k S1 + (1 - k) S2  and  k v1 + (1 - k) v2,

each at a k of its own. Where w hardly changes with l2, v = l2 w is proportional to l2 and S is linear in it: no dual
variables of one penalty are near those of another, and those between them are all but optimal.

Where every row's slack and dual variable are known of both, R and S themselves are known at any k by sums over rows
(`RowsAtEnd`). They are made at a few k, one after the other, and between two of these the same inequalities hold.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, sqrt

import numpy as np
from numpy.linalg import LinAlgError, solve

from cmargin._core.newton._bound import ROUNDING, gap
from cmargin._core.penalties._penalties import bound
from cmargin.solvers.penalty import ElasticNet

KEPT = 12                      # fits of a problem, of the least l2, whose dual variables are kept for others
# The second fit of a path in log l2, and the power of the distance by which a gap grows between two fits: by sums of
# both, and where rows are known. 1.2 and 2.5 were the best of 0.5 to 1.2 and 2 to 5 on forest cover and three tables.
FIRST_REACH = 0.5, 1.2         # log l2
GAP_POWER = 2.0, 2.5
STEPS = 8                      # of Newton's method for a multiple t or a part k with l1, at most; any is a proof


class Pair:
    """A primal and a dual point found at the penalties ``l2`` and ``l1``, and the numbers that others are made of."""

    known = 0.0                    # what |v_j| is at most of columns whose v_j is not told but as 0; see `ColumnFits`
    own = None                     # objective and dual value at its own penalties, where these say more than the rest
    model = missed = None          # what other fits may be foreseen by, and what the model before it has missed here

    def __init__(self, result, penalty, free, a=None, model=None, fresh=True, rows=None):
        """``result``: `Result` of a problem of that ``penalty``, whose column ``free`` is not penalised, or None.
        ``a``: (n_rows,) the dual variables, or None. ``model``: `Newton.model`, or None; ``fresh``: its curvature is of
        this fit and not of one before. ``rows``: `RowsAtEnd` or None."""
        w = result.w[:free]
        self.l2, self.l1, self.w = float(penalty.l2), float(penalty.l1), result.w
        self.square, self.size = float(w @ w), float(np.abs(w).sum())
        self.risk = float(result.objective - penalty.value(w))
        self.total, self.v = float(result.total), np.zeros(len(w)) if result.v is None else result.v
        self.v_square = float(self.v @ self.v)
        self.a, self.model, self.fresh, self.rows = a, model, fresh, rows
        self.noise = float(np.max(result.noise, initial=0.0))      # of every |v_j|
        # of S, whose dual variables balance an intercept to rounding only
        self.held = ROUNDING * abs(float(result.w[free])) * self.total if free is not None else 0.0

    def objective(self, l2, l1):
        return self.risk + l1 * self.size + l2 / 2 * self.square

    def curvature_at(self, l2):
        """(p, p) the model's, with that l2."""
        curvature, n = self.model[2].copy(), len(self.v)
        curvature[np.arange(n), np.arange(n)] += l2 - self.l2
        return curvature

    def foreseen(self, l2, corrected=True):
        """(p,) the minimum at ``l2`` by the model of this point, and (p, p) the curvature with that l2; None: there is
        no such minimum. ``corrected``: by what the model before this one missed, which grows with the distance squared.
        """
        (w, slope, _), curvature, n = self.model, self.curvature_at(l2), len(self.v)
        slope = slope.copy()
        slope[:n] += (l2 - self.l2) * w[:n]
        try:
            w = w - solve(curvature, slope)
        except LinAlgError:
            return None
        if corrected and self.missed is not None:
            w += self.missed * np.log(l2 / self.l2)**2
        return (w, curvature) if np.isfinite(w).all() else None

    def learn_from(self, near):
        """What the model of another pair has missed here. A curvature that is not of this fit is made to explain how
        the gradient has changed since that pair (a secant, as BFGS takes it)."""
        (w, g, curvature), (w_near, g_near, _), n = self.model, near.model, len(self.v)
        if not self.fresh:
            step, change = w - w_near, g - g_near
            change[:n] += (near.l2 - self.l2) * w_near[:n]
            product = curvature @ step
            if change @ step > 0 and product @ step > 0:
                curvature = curvature + np.outer(change, change) / (change @ step) \
                    - np.outer(product, product) / (product @ step)
                self.model = w, g, curvature
        here, there = self.foreseen(self.l2, False), near.foreseen(self.l2, False)
        if here is not None and there is not None:
            self.missed = (here[0] - there[0]) / np.log(self.l2 / near.l2)**2

    def dual(self, l2, l1):
        return dual_value(self.total, self.v, self.v_square, self.noise, l2, l1)


def dual_value(total, v, v_square, noise, l2, l1):
    """The dual value D of S and v, ``v_square`` its square, each |v_j| at most ``noise`` larger."""
    if not l2 > 0:
        return bound(total, v, l2, l1, noise)
    if l1 > 0:
        return dual_value_with_l1(total, np.abs(v) + noise, l2, l1)
    size = sqrt(v_square) + noise * sqrt(len(v))
    square = size * size                     # a power would raise where it overflows
    if not (total > 0 and isfinite(total) and isfinite(square)):
        return 0.0
    t = min(1.0, l2 * total / square) if square > 0 else 1.0
    return max(0.0, t * total - t * t * square / (2 * l2))


def dual_value_with_l1(total, size, l2, l1):
    """The same of the |v_j| ``size``, without sorting them: Newton's steps of t go down to the best one from 1."""
    if not (total > 0 and np.isfinite(total) and np.isfinite(size).all()):
        return 0.0
    t, size = 1.0, size[size > l1]
    for _ in range(STEPS):
        over = np.maximum(t * size - l1, 0.0)
        slope = total - float(over @ size) / l2
        if slope >= 0:
            break
        t = max(0.0, t + slope * l2 / float((size[over > 0]**2).sum()))
    over = np.maximum(t * size - l1, 0.0)
    return max(0.0, t * total - float(over @ over) / (2 * l2))


@dataclass
class Certified:
    """Weights and what is proven of them: ``objective`` is at least theirs, ``dual`` at most the minimum."""

    l2: float
    l1: float
    objective: float
    dual: float
    primal_parts: tuple        # of (part, `Pair`): the weights are the sum of part times w
    dual_parts: tuple          # the same of the dual variables
    scores = None              # (n_rows,) of all rows, where they are known

    @property
    def gap(self):
        """(P - D) / P, see `cmargin._core.newton._bound.gap`."""
        return gap(self.objective, self.dual)

    @property
    def w(self):
        """(p,) a new array."""
        return sum(part * pair.w for part, pair in self.primal_parts)

    @property
    def a(self):
        """(n_rows,) the dual variables behind ``dual``, about, or None where they are not kept."""
        if any(pair.a is None for _, pair in self.dual_parts):
            return None
        return sum(part * pair.a for part, pair in self.dual_parts).astype(float)


class Bracket:
    """What two pairs prove between their penalties; one pair twice: what it proves alone."""

    def __init__(self, first, second):
        self.first, self.second = first, second
        self.w_product = self.v_product = self.largest = None
        self.risks = [(0.0, second.risk), (1.0, first.risk)]           # known R, by rising part of the first
        self.totals = [(0.0, second.total), (1.0, first.total)]        # the same of S
        self.spent = False                       # `prove` has tried
        self._found = {}

    def _products(self):
        if self.w_product is None:
            a, b = self.first, self.second
            self.largest = np.maximum(np.abs(a.v), np.abs(b.v)) + max(a.noise, b.noise)
            self.w_product, self.v_product = float(a.w[:len(a.v)] @ b.w[:len(b.v)]), float(a.v @ b.v)

    @property
    def knows_rows(self):
        return self.first is not self.second and self.first.rows is not None and self.second.rows is not None

    def refine(self, l2):
        """Make R and S at the parts that serve ``l2`` best, of `rows` of both."""
        a, b, l2 = self.first, self.second, float(l2)
        self._products()
        k = not_known(self.risks, self._best_part(l2, 0.0))
        insort(self.risks, (k, a.rows.risk(b.rows, k)))
        if a.rows.a is not None:
            k = not_known(self.totals, self._dual_between(l2, 0.0)[1])
            insort(self.totals, (k, a.rows.gain(b.rows, k) - max(a.held, b.held)))
        self._found.clear()

    def prove(self, l2s, tol):
        """`refine` where gaps are largest, until all at these ``l2s`` are at most ``tol``, or that hardly helps;
        whether they are."""
        while l2s and not self.spent:
            gaps = {l2: self.certify(l2).gap for l2 in l2s}
            l2s = [l2 for l2, gap in gaps.items() if gap > tol]
            if l2s:
                worst = max(l2s, key=gaps.get)
                self.refine(worst)
                self.spent = self.certify(worst).gap > max(tol, gaps[worst] / 2)
        return not l2s

    def certify(self, l2, l1=0.0, weights="best"):
        """`Certified` weights: of the least objective that can be told without rows.

        ``weights``: "alone", those of one pair; "even", between both as l2 is between theirs by its logarithm, which is
        nearer to the minimum as a rule, but by less of a proof.
        """
        asked = float(l2), float(l1), weights          # scalars of NumPy take several times as long
        if asked not in self._found:
            self._found[asked] = self._certified(*asked)
        return self._found[asked]

    def _certified(self, l2, l1, weights):
        a, b = self.first, self.second
        primal = min((one.objective(l2, l1), i, ((1.0, one),)) for i, one in enumerate((a, b)))
        dual = max((one.dual(l2, l1), i, ((1.0, one),)) for i, one in enumerate((a, b)))
        found = Certified(l2, l1, primal[0], dual[0], primal[2], dual[2])
        if a is b or not np.isfinite(found.objective):
            return found
        self._products()
        value, k = self._dual_between(l2, l1)
        if value > found.dual:
            found.dual, found.dual_parts = value, ((k, a), (1 - k, b))
        if weights == "even" and a.l2 > l2 > b.l2 > 0:
            k = float(np.log(l2 / b.l2) / np.log(a.l2 / b.l2))
            found.objective, found.primal_parts = self._objective_at(k, l2, l1), ((k, a), (1 - k, b))
        elif weights == "best":
            k = self._best_part(l2, l1)
            if (value := self._objective_at(k, l2, l1)) < found.objective:
                found.objective, found.primal_parts = value, ((k, a), (1 - k, b))
        return found

    def _objective_at(self, k, l2, l1):
        # or more, between two known R, and with l1 (k |w1|_1 + (1 - k) |w2|_1) in place of l1 |w|_1
        a, b = self.first, self.second
        (low, risk), (high, risk_at_high) = next(both for both in pairwise(self.risks) if k <= both[1][0])
        risk += (risk_at_high - risk) * (k - low) / (high - low)
        square = k * k * a.square + 2 * k * (1 - k) * self.w_product + (1 - k)**2 * b.square
        return risk + l1 * (k * a.size + (1 - k) * b.size) + l2 / 2 * square

    def _best_part(self, l2, l1):
        # where that is least, a quadratic between two known R
        a, b = self.first, self.second
        slope, bend = l1 * (a.size - b.size) + l2 * (self.w_product - b.square), \
            l2 * (a.square - 2 * self.w_product + b.square)
        parts = [best_within(low[0], high[0], (high[1] - low[1]) / (high[0] - low[0]) + slope, bend)
                 for low, high in pairwise(self.risks)]
        return min(parts, key=lambda k: self._objective_at(k, l2, l1)) if len(parts) > 1 else parts[0]

    def _dual_between(self, l2, l1):
        a, b, noise = self.first, self.second, max(self.first.noise, self.second.noise)
        if not l2 > 0 or l1 < max(a.known, b.known):
            return 0.0, 0.0
        if l1 > 0:
            return self._dual_between_with_l1(l2, l1, noise)
        slope, bend, best = self.v_product - b.v_square, a.v_square - 2 * self.v_product + b.v_square, (0.0, 0.0)
        for (low, total), (high, total_at_high) in pairwise(self.totals):
            change = (total_at_high - total) / (high - low)
            k = best_within(low, high, slope - l2 * change, bend)
            square = k * k * a.v_square + 2 * k * (1 - k) * self.v_product + (1 - k)**2 * b.v_square
            best = max(best, (dual_value(total + change * (k - low), a.v, max(0.0, square), noise, l2, 0.0), k))
        return best

    def _dual_between_with_l1(self, l2, l1, noise):
        # of the columns that are above l1 at either end: no other is in between
        a, b, counts = self.first, self.second, self.largest > l1
        v, change, rise = b.v[counts], a.v[counts] - b.v[counts], a.total - b.total
        low, high, k = 0.0, 1.0, min(1.0, max(0.0, (l2 - b.l2) / (a.l2 - b.l2)))
        for _ in range(STEPS):
            at = v + k * change
            over = np.maximum(np.abs(at) + noise - l1, 0.0)
            slope = rise - float((np.sign(at) * over) @ change) / l2
            bend = float((change[over > 0]**2).sum()) / l2
            low, high = (k, high) if slope > 0 else (low, k)
            new = k + slope / bend if bend > 0 else (1.0 if slope > 0 else 0.0)
            k = new if low <= new <= high else (low + high) / 2
        return dual_value_with_l1(b.total + k * rise, np.abs(v + k * change) + noise, l2, l1), k


def not_known(known, k):
    """``k``, or where a sum is ``known`` there the middle of the longer way to the next."""
    parts = [part for part, _ in known]
    if k not in parts:
        return k
    low, high = max(pairwise(parts), key=lambda ends: (ends[1] - ends[0]) * (k in ends))
    return (low + high) / 2


def best_within(low, high, slope, bend):
    """Where slope k + bend k^2 / 2 is least between two k."""
    return min(high, max(low, -slope / bend)) if bend > 0 else (high if slope < 0 else low)


def place_of(penalty):
    """By which pairs are in order: -l2, and of pure l1 -l1."""
    return -penalty.l2, -penalty.l1 if penalty.l2 == 0 else 0.0


class Pairs:
    """The pairs of one problem, by falling l2, those of pure l1 by falling l1, and what they prove at any penalties."""

    scale = None                                 # curvature of the columns at the last fit, where that is known
    reads = 0.0                                  # that its fits took
    alone = None                                 # reads a fit of the first fold, beside which there was none

    def __init__(self):
        self.pairs, self._places, self._brackets = [], [], {}      # `_places`: of the pairs, rising

    def __len__(self):
        return len(self.pairs)

    def add(self, pair):
        """Keep ``pair``, in place of one of the same penalties, or of the same l2 beside another l1."""
        if pair.model is not None and (near := self.nearest_model(pair.l2)) is not None and near.l2 != pair.l2:
            pair.learn_from(near)
        at = place_of(pair)
        place = bisect_left(self._places, at)
        after = place + (self._places[place:place + 1] == [at])
        self.pairs[place:after], self._places[place:after] = [pair], [at]
        if self._brackets:
            beside = set(pairwise(self.pairs))
            self._brackets = {both: bracket for both, bracket in self._brackets.items() if both in beside}
        for done in [one for one in self.pairs if one.a is not None][:-KEPT]:
            done.a = None

    def reach(self, bracket, tol):
        """How far from the first of two fits, in log l2, the next fit may be, for both to prove ``tol`` in between.

        In the middle of two fits a gap grows with the square of their distance, and faster where rows are known, as it
        did from the fit before on to the first; the step is three times as long as that one at most.
        """
        first, second = bracket.first, bracket.second
        whole, place = np.log(first.l2 / second.l2), self.pairs.index(first)
        reach, power = (numbers[bracket.knows_rows] for numbers in (FIRST_REACH, GAP_POWER))
        if place > 0:
            before = self.pairs[place - 1]
            middle = np.sqrt(before.l2 * first.l2)
            between = self.bracket(ElasticNet(middle, 0.0))
            if between.knows_rows:
                between.refine(middle)
            gap = self.certify(middle).gap
            reach = np.log(before.l2 / first.l2) * min(3.0, (tol / max(gap, 1e-9 * tol))**(1 / power))
        return whole / np.ceil(whole / reach) if reach < whole else whole / 2

    def let_rows_go(self, until=None):
        """Give up what fits have ended with in every row: all, or those before the one before ``until``."""
        for one in self.pairs[:None if until is None else max(0, self.pairs.index(until) - 1)]:
            one.rows = None

    def beside(self, own, penalty):
        """(p,) where a problem of nearly the same rows is to begin: the weights here, and the difference to them at
        that problem's nearest fit, of the ``own`` `Pairs`; (p, p) the curvature there with l2, or None."""
        w, near = self.certify(penalty.l2, penalty.l1).w, self.nearest_model(penalty.l2)
        if len(own):
            nearest = min(own.pairs, key=lambda pair: abs(np.log(pair.l2 / penalty.l2)))
            w = w + nearest.w - self.certify(nearest.l2, nearest.l1).w
        return w, None if near is None else near.curvature_at(penalty.l2)

    def helps(self, own):
        """Whether fits that begin here, the ``own`` `Pairs` of another fold, have taken no more reads than those of the
        first fold: folds that are unlike, as of sorted rows, do not."""
        return own.reads <= own.alone * max(1, len(own))

    def continued(self, penalty, otherwise):
        """(p,) weights at a ``penalty`` below those of two fits, on the way from the one to the other, by log l2."""
        place = bisect_left(self._places, place_of(penalty))
        if place < 2 or place == len(self.pairs):
            return otherwise
        far, near = self.pairs[place - 2:place]
        part = np.log(near.l2 / penalty.l2) / np.log(far.l2 / near.l2)
        return near.w + part * (near.w - far.w) if part <= 1.5 else otherwise

    def nearest_model(self, l2):
        return min((pair for pair in self.pairs if pair.model is not None),
                   key=lambda pair: abs(np.log(pair.l2 / l2)), default=None)

    def foreseen(self, l2):
        """`Pair.foreseen` of the pair nearest to ``l2``; None: there is none."""
        near = self.nearest_model(l2)
        return None if near is None else near.foreseen(l2)

    def has(self, penalty):
        """Whether there is one of these very penalties."""
        return any((pair.l2, pair.l1) == (penalty.l2, penalty.l1) for pair in self.pairs)

    def bracket(self, penalty):
        """`Bracket` of the pairs on either side of a ``penalty``, or of the only one on its side twice; None without
        any."""
        if not self.pairs:
            return None
        place = bisect_left(self._places, place_of(penalty))
        first, second = self.pairs[max(0, place - 1)], self.pairs[min(place, len(self.pairs) - 1)]
        if first is second:
            return Bracket(first, second)
        if (first, second) not in self._brackets:
            self._brackets[first, second] = Bracket(first, second)
        return self._brackets[first, second]

    def certify(self, l2, l1=0.0, weights="best"):
        """`Certified` at these penalties by the pairs next to them; None where there are none."""
        penalty = ElasticNet(l2, l1)
        place = bisect_left(self._places, place_of(penalty))
        own = self.pairs[place] if place < len(self.pairs) else None
        if weights == "alone" and own is not None and own.own is not None and (own.l2, own.l1) == (l2, l1):
            return Certified(l2, l1, *own.own, ((1.0, own),), ((1.0, own),))
        bracket = self.bracket(penalty)
        return None if bracket is None else bracket.certify(l2, l1, weights)
