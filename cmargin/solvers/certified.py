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
"""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.linalg import LinAlgError, solve

from cmargin._core.newton._bound import gap
from cmargin._core.penalties._penalties import bound
from cmargin.solvers.penalty import ElasticNet

KEPT = 12                      # fits of a problem, of the least l2, whose dual variables are kept for others
STEPS = 8                      # of Newton's method for a multiple t or a part k with l1, at most; any is a proof


class Pair:
    """A primal and a dual point found at the penalties ``l2`` and ``l1``, and the numbers that others are made of."""

    known = 0.0                    # what |v_j| is at most of columns whose v_j is not told but as 0; see `ColumnFits`
    own = None                     # objective and dual value at its own penalties, where these say more than the rest
    model = missed = None          # what other fits may be foreseen by, and what the model before it has missed here

    def __init__(self, result, penalty, free, a=None, model=None, fresh=True):
        """``result``: `Result` of a problem of that ``penalty``, whose column ``free`` is not penalised, or None.
        ``a``: (n_rows,) the dual variables, or None. ``model``: `Newton.model`, or None; ``fresh``: its curvature is of
        this fit and not of one before."""
        w = result.w[:free]
        self.l2, self.l1, self.w = penalty.l2, penalty.l1, result.w
        self.square, self.size = float(w @ w), float(np.abs(w).sum())
        self.risk = result.objective - penalty.value(w)
        self.total, self.v = result.total, np.zeros(len(w)) if result.v is None else result.v
        self.v_square = float(self.v @ self.v)
        self.a, self.model, self.fresh = a, model, fresh
        self.noise = float(np.max(result.noise, initial=0.0))      # of every |v_j|

    def objective(self, l2, l1):
        return self.risk + l1 * self.size + l2 / 2 * self.square

    def foreseen(self, l2, corrected=True):
        """(p,) the minimum at ``l2`` by the model of this point, and (p, p) the curvature with that l2; None: there is
        no such minimum. ``corrected``: by what the model before this one missed, which grows with the distance squared.
        """
        (w, slope, curvature), n, change = self.model, len(self.v), l2 - self.l2
        slope, curvature = slope.copy(), curvature.copy()
        curvature[np.arange(n), np.arange(n)] += change
        slope[:n] += change * w[:n]
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
    square = (np.sqrt(v_square) + noise * np.sqrt(len(v)))**2
    if not (total > 0 and np.isfinite(total) and np.isfinite(square)):
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
        self._found = {}

    def _products(self):
        if self.w_product is None:
            a, b = self.first, self.second
            self.largest = np.maximum(np.abs(a.v), np.abs(b.v)) + max(a.noise, b.noise)
            self.w_product, self.v_product = float(a.w[:len(a.v)] @ b.w[:len(b.v)]), float(a.v @ b.v)

    def certify(self, l2, l1=0.0, weights="best"):
        """`Certified` weights: of the least objective that can be told without rows.

        ``weights``: "alone", those of one pair; "even", between both as l2 is between theirs by its logarithm, which is
        nearer to the minimum as a rule, but by less of a proof.
        """
        asked = l2, l1, weights
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
        # or more, with l1 (k |w1|_1 + (1 - k) |w2|_1) in place of l1 |w|_1
        a, b = self.first, self.second
        square = k * k * a.square + 2 * k * (1 - k) * self.w_product + (1 - k)**2 * b.square
        return k * a.risk + (1 - k) * b.risk + l1 * (k * a.size + (1 - k) * b.size) + l2 / 2 * square

    def _best_part(self, l2, l1):
        # where that quadratic is least
        a, b = self.first, self.second
        slope = a.risk - b.risk + l1 * (a.size - b.size) + l2 * (self.w_product - b.square)
        bend = l2 * (a.square - 2 * self.w_product + b.square)
        return min(1.0, max(0.0, -slope / bend)) if bend > 0 else float(slope < 0)

    def _dual_between(self, l2, l1):
        a, b, noise = self.first, self.second, max(self.first.noise, self.second.noise)
        if not l2 > 0 or l1 < max(a.known, b.known):
            return 0.0, 0.0
        if l1 > 0:
            return self._dual_between_with_l1(l2, l1, noise)
        bend = a.v_square - 2 * self.v_product + b.v_square
        k = (l2 * (a.total - b.total) - self.v_product + b.v_square) / bend if bend > 0 else 0.0
        k = min(1.0, max(0.0, k))
        square = k * k * a.v_square + 2 * k * (1 - k) * self.v_product + (1 - k)**2 * b.v_square
        return dual_value(k * a.total + (1 - k) * b.total, a.v, max(0.0, square), noise, l2, 0.0), k

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


def place_of(penalty):
    """By which pairs are in order: -l2, and of pure l1 -l1."""
    return -penalty.l2, -penalty.l1 if penalty.l2 == 0 else 0.0


class Pairs:
    """The pairs of one problem, by falling l2, those of pure l1 by falling l1, and what they prove at any penalties."""

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

        In the middle of two fits a gap grows with the square of their distance, as it did from the fit before on to the
        first; the step is three times as long as that one at most, and 1/2 where it is the first.
        """
        first, second = bracket.first, bracket.second
        whole, place, reach = np.log(first.l2 / second.l2), self.pairs.index(first), 0.5
        if place > 0:
            before = self.pairs[place - 1]
            gap = self.certify(np.sqrt(before.l2 * first.l2)).gap
            reach = np.log(before.l2 / first.l2) * min(3.0, np.sqrt(tol / max(gap, tol / 9)))
        return whole / np.ceil(whole / reach) if reach < whole else whole / 2

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
