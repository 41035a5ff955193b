"""Is what regressions, one-class machines, bounds, linear constraints, weights by column, groups, offsets and joint
hinges report true?

Each fit's objective is computed anew in extended precision, and its certificate is held to the objective at points that
were found without the library: by a quadratic program, or by L-BFGS-B where a loss or penalty is none.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from .certificates import one_thread
from .convex_problems import draw
from .findings import Findings
from .oracle import EPS, LONG, ROUNDINGS
from .quadratic import quadratic_program

RELATIVE, NOTHING = 1e-9, 1e-15
FAINT = 1e-6                                 # of the objective at 0: what the two figures are relative to at least
WIDTHS = (1e-2, 1e-4, 1e-6, 1e-8)            # of kinks, rounded off
LIMITS = {"objective off": RELATIVE, "gap left after enough passes": 1e-2, "ours above theirs": 1e-2,
          "theirs above ours": 1e-6}


@dataclass
class Convex:
    """min sum l2/2 w^2 + l1 |w| (or l1 of groups' norms) + cost b + sum m F(t - y (<w, x> + b)), lower <= w <= upper.

    F is a sum over ``sides`` (sign, e, kind, c, delta): of x = max(0, sign u - e), c x, c x^2, or c times Huber's loss.
    Column p of the penalty's arrays is the intercept's.
    """

    rows: np.ndarray
    m: np.ndarray
    t: np.ndarray
    y: np.ndarray
    sides: list
    l2: np.ndarray
    l1: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    intercept: bool = True
    groups: list | None = None               # arrays of columns
    cost: float = 0.0
    logistic: bool = False
    constraints: tuple | None = None         # (A, b): A w + b >= 0

    def loss(self, u):
        if self.logistic:
            return np.logaddexp(0, u - 1)
        return sum(of_side(np.maximum(0, sign * u - e), kind, c, delta) for sign, e, kind, c, delta in self.sides)

    def slacks(self, v):
        return self.t - self.y * (self.rows @ v[:-1] + v[-1])

    def penalty(self, v):
        value = (self.l2 / 2 * v * v).sum() + self.cost * v[-1]
        if self.groups is None:
            return value + (self.l1 * np.abs(v)).sum()
        return value + sum(self.l1[g[0]] * np.sqrt(LONG(len(g))) * np.sqrt((v[g] ** 2).sum()) for g in self.groups)

    def value(self, v):
        v = np.asarray(v, LONG)
        return self.penalty(v) + self.m @ self.loss(self.slacks(v))

    def rounding(self, v):
        """What rounding in float64 may add to the value: of every row's terms, times the slope of its loss."""
        v = np.asarray(v, LONG)
        terms = np.abs(self.t) + np.abs(self.rows) @ np.abs(v[:-1]) + abs(v[-1])
        u = np.abs(self.slacks(v)) + terms * EPS * ROUNDINGS
        slope = 1 if self.logistic else sum(c * (2 * u if kind == "square" else np.minimum(u, delta)
                                                 if kind == "huber" else 1) for _, _, kind, c, delta in self.sides)
        return ROUNDINGS * EPS * (self.m @ (slope * terms) + self.penalty(np.abs(v)))

    def missed(self, v):
        """By what part of its sizes the worst constraint is missed."""
        A, b = self.constraints or (np.zeros((1, len(v) - 1)), np.ones(1))
        return -((A @ v[:-1] + b) / (np.abs(b) + np.abs(A) @ np.abs(v[:-1]))).min()

    def points(self, start):
        """Points that were found without the library, within the bounds."""
        if self.groups is None and not self.logistic:
            return [self.by_program()]
        return [self.by_steps(np.zeros(len(start))), self.by_steps(np.asarray(start, float))]

    def by_program(self):
        """v of the quadratic program: v, |v| where it costs, and of every row and side the parts of its excess."""
        p, n, used = len(self.l2), len(self.m), np.flatnonzero(self.m > 0)
        size = np.append(np.abs(self.rows).max(axis=0, initial=0), 1).astype(float)
        size[size == 0] = 1
        A = np.column_stack([self.rows, np.ones(n, LONG)])[used] * self.y[used, None] / size
        A, m, t = A.astype(float), self.m[used].astype(float), self.t[used].astype(float)
        D, q = [self.l2 / size**2], [np.append(np.zeros(p - 1), self.cost)]
        blocks, ones = [], np.eye(len(used))
        n_own = [p]

        def more(k, cost, square):
            """Unknowns behind those before, and where they begin."""
            D.append(square)
            q.append(cost)
            n_own.append(k)
            return sum(n_own[:-1])

        kinks = np.flatnonzero(self.l1 > 0)
        if len(kinks):
            at = more(len(kinks), self.l1[kinks] / size[kinks], np.zeros(len(kinks)))
            for sign in (1.0, -1.0):
                blocks.append(({0: sign * np.eye(p)[kinks], at: -np.eye(len(kinks))}, np.zeros(len(kinks))))
        for sign, e, kind, c, delta in self.sides:
            excess = {0: -sign * A}
            if kind != "square":                                     # the part that costs in proportion
                at = more(len(used), c * m * (delta if kind == "huber" else 1), np.zeros(len(used)))
                excess[at] = -ones
                blocks.append(({at: -ones}, np.zeros(len(used))))
            if kind != "line":
                at = more(len(used), np.zeros(len(used)), (2 if kind == "square" else 1) * c * m)
                excess[at] = -ones
                blocks.append(({at: -ones}, np.zeros(len(used))))
                if kind == "huber":
                    blocks.append(({at: ones}, np.full(len(used), delta)))
            blocks.append((excess, e - sign * t))
        for sign, bound in ((1.0, self.upper), (-1.0, self.lower)):
            there = np.flatnonzero(np.isfinite(bound))
            blocks.append(({0: sign * np.eye(p)[there]}, sign * bound[there] * size[there]))
        if self.constraints is not None:                              # a little inside, so that the point meets them
            A_w, b = self.constraints
            room = 1e-9 * (np.abs(b) + 1e-3)
            blocks.append(({0: -np.column_stack([A_w, np.zeros(len(b))]) / size}, b - room))
        if not self.intercept:
            blocks += [({0: sign * np.eye(p)[-1:]}, np.full(1, 1e-12)) for sign in (1.0, -1.0)]
        G = np.zeros((sum(len(h) for _, h in blocks), sum(n_own)))
        row = 0
        for parts, h in blocks:
            for at, part in parts.items():
                G[row:row + len(h), at:at + part.shape[1]] = part
            row += len(h)
        x = quadratic_program(np.concatenate(D).astype(float), np.concatenate(q).astype(float), G,
                              np.concatenate([h for _, h in blocks]).astype(float))
        return self.within(x[:p] / size)

    def within(self, v):
        v = np.clip(v, self.lower, self.upper)
        v[-1] *= self.intercept
        return v

    def by_steps(self, v):
        """By L-BFGS-B on kinks that are rounded off less and less."""
        rows, m, t, y, l2, l1 = (np.asarray(part, float) for part in (self.rows, self.m, self.t, self.y, self.l2,
                                                                      self.l1))
        groups = [np.array([j]) for j in np.flatnonzero(l1)] if self.groups is None else self.groups
        bounds = [*zip(self.lower, self.upper, strict=True)]
        bounds[-1] = bounds[-1] if self.intercept else (0.0, 0.0)

        def smooth(v, width):
            u = t - y * (rows @ v[:-1] + v[-1])
            value, slope = (np.logaddexp(0, u - 1), 1 / (1 + np.exp(np.clip(1 - u, -700, 700)))) if self.logistic \
                else map(sum, zip(*(rounded(sign, u, e, kind, c, delta, width)
                                    for sign, e, kind, c, delta in self.sides), strict=True))
            pull = -(m * slope * y)
            gradient = np.append(rows.T @ pull, pull.sum()) + l2 * v
            gradient[-1] += self.cost
            total = m @ value + (l2 / 2 * v * v).sum() + self.cost * v[-1]
            for g in groups:
                norm = np.sqrt((v[g] ** 2).sum() + width**2)
                total += l1[g[0]] * np.sqrt(len(g)) * norm
                gradient[g] += l1[g[0]] * np.sqrt(len(g)) * v[g] / norm
            return total, gradient

        for width in WIDTHS:
            v = minimize(smooth, v, (width,), jac=True, method="L-BFGS-B", bounds=bounds,
                         options={"maxiter": 500, "ftol": 1e-15, "gtol": 1e-12}).x
        return self.within(v)


def of_side(x, kind, c, delta):
    if kind == "line":
        return c * x
    return c * x * x if kind == "square" else c * np.where(x <= delta, x * x / 2, delta * x - delta * delta / 2)


def rounded(sign, u, e, kind, c, delta, width):
    """Value and slope in u of a side whose kink is rounded off."""
    root = np.hypot(sign * u - e, width)
    x, dx = ((sign * u - e) + root) / 2, (1 + (sign * u - e) / root) / 2
    slope = c if kind == "line" else 2 * c * x if kind == "square" else c * np.minimum(x, delta)
    return of_side(x, kind, c, delta), sign * slope * dx


SIDES = {"hinge": [(1, 0, "line", 1, 0)], "squared_hinge": [(1, 0, "square", 1, 0)],
         "modified_huber": [(1, 0, "huber", 2, 2)], "logistic": []}


def sides_of(settings, level):
    loss = settings["loss"]
    if loss == "quantile":
        return [(1, 0, "line", level, 0), (-1, 0, "line", 1 - level, 0)]
    if loss == "huberised_hinge":
        return [(1, 0, "huber", 1 / settings["delta"], settings["delta"])]
    if loss == "huber":
        return [(sign, 0, "huber", 1, settings["delta"]) for sign in (1, -1)]
    if loss.endswith("epsilon_insensitive"):
        return [(sign, settings["epsilon"], "square" if loss.startswith("squared") else "line", 1, 0)
                for sign in (1, -1)]
    return SIDES[loss]


# ------------------------------------------------------------ the check

def check_seed(seed):
    drawn = draw(seed)
    found = Findings(seed, drawn.tags)
    fitted = fit(drawn, found)
    if fitted is None:
        return found
    model, warned = fitted
    gap = np.atleast_1d(model.duality_gap_)
    short = bool((gap > drawn.settings["tol"]).any())
    found.figures["short"] = int(short)
    found.note("gap left after enough passes", float(gap[~np.isnan(gap)].max(initial=0)))
    if short and not warned:
        found.add("silent", f"gap {np.nanmax(gap):.3g}, no warning")
    if not all(np.isfinite(part).all() for part in (model.coef_, model.intercept_, model.objective_)):
        found.add("nan", "weights or the objective are not finite")
        return found
    with one_thread():
        if drawn.kind == "crammer_singer":
            check_joint(drawn, model, found)
        else:
            for c, problem in enumerate(problems_of(drawn, np.shape(np.atleast_1d(model.intercept_))[0])):
                v = np.append(np.atleast_2d(model.coef_)[c], np.atleast_1d(model.intercept_)[c])
                check(problem, v, float(model.objective_[c]), float(gap[c]), f"problem {c}: ", found,
                      least_of(drawn) if drawn.kind == "SmSVMOneClass" else None)
    return found


def fit(drawn, found):
    """(model, whether it warned), or None where it was refused or raised."""
    import cmargin

    kind = "SmSVMClassifier" if drawn.kind == "crammer_singer" else drawn.kind
    more = {} if drawn.offset is None else {"offset": drawn.offset}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = getattr(cmargin, kind)(n_jobs=1, **drawn.settings)
            args = (drawn.X,) if drawn.y is None else (drawn.X, drawn.y)
            model.fit(*args, sample_weight=drawn.weights, **more)
        except Exception as error:
            words = f"{type(error).__name__}: {error}"[:200]
            refused = isinstance(error, ValueError) and len(words) > 30
            found.count("refused") if refused else found.add("exception", words)
            if refused:
                found.count(words[:60])
            return None
    return model, any(issubclass(one.category, ConvergenceWarning) for one in caught)


def problems_of(drawn, n_problems):
    """`Convex` of every target, quantile, class, or of the one class."""
    X, s = drawn.dense, drawn.settings
    n, p = X.shape
    m = np.ones(n, LONG) if drawn.weights is None else drawn.weights.astype(LONG)
    m = m / m.sum()
    one, none = np.ones(n, LONG), np.zeros(n, LONG)
    if drawn.kind == "SmSVMOneClass":
        free = np.zeros(p + 1)
        yield Convex(X, m / LONG(s["nu"]), none, one, SIDES["hinge"], np.append(np.ones(p), 0.0), free, free - np.inf,
                     free + np.inf, cost=1.0)
        return
    own = s["penalize_intercept"] and s["fit_intercept"]

    def by_column(name, none):
        value = s.get(name)
        return np.append(np.broadcast_to(none if value is None else value, p).astype(float), none)

    l2, l1 = by_column("l2", 0.0), by_column("l1", 0.0)
    if own:
        l2[-1], l1[-1] = s["l2"], s["l1"]
    groups = None
    if "groups" in s:
        groups = [np.flatnonzero(s["groups"] == label) for label in np.unique(s["groups"])]
        groups += [np.array([p])] * own
    shared = {"l2": l2, "l1": l1, "lower": by_column("lower", -np.inf), "upper": by_column("upper", np.inf),
              "intercept": s["fit_intercept"], "groups": groups, "logistic": s["loss"] == "logistic",
              "constraints": s.get("constraints")}
    for c in range(n_problems):
        if drawn.kind == "SmSVMRegressor":
            levels = np.atleast_1d(s["quantile"])
            target = drawn.y.reshape(n, -1)[:, c // len(levels) if s["loss"] == "quantile" else c]
            level = levels[c % len(levels)]
            yield Convex(X, m, target.astype(LONG), one, sides_of(s, level), **shared)
        else:
            labels = np.unique(drawn.y)
            y = np.where(drawn.y == labels[1 if n_problems == 1 else c], 1, -1).astype(LONG)
            offset = none if drawn.offset is None else drawn.offset[:, c]
            yield Convex(X, m, 1 - y * offset, y, sides_of(s, None), **shared)


def least_of(drawn):
    """Half the rows' mean square times 1e-6, beside which gaps of one class are relative at least."""
    weights = np.ones(drawn.X.shape[0]) if drawn.weights is None else drawn.weights
    return 1e-6 * float(weights @ (drawn.dense ** 2).sum(axis=1).astype(float) / weights.sum()) / 2


def check(problem, v, objective, gap, where, found, least=None):
    value, rounding = problem.value(v), problem.rounding(v)
    unit = max(abs(value), LONG(NOTHING) * np.abs(problem.t).max(initial=0))
    if abs(LONG(objective) - value) > RELATIVE * unit + rounding:
        found.add("objective", f"{where}{objective:.8g} reported, is {float(value):.8g}")
    found.note("objective off", float(max(abs(LONG(objective) - value) - rounding, 0) / max(unit, LONG(1e-300))))
    if (v < problem.lower).any() or (v > problem.upper).any():
        found.add("bounds", f"{where}weights leave their bounds by "
                            f"{np.maximum(problem.lower - v, v - problem.upper).max():.3g}")
    if problem.missed(v) > RELATIVE:
        found.add("constraints", f"{where}weights miss constraints by {problem.missed(v):.3g} of their size")
    if np.isnan(gap):
        found.count("no gap")
        return
    points = [point for point in problem.points(v) if np.isfinite(point).all() and problem.missed(point) <= 0]
    if not points:
        found.count("no point of ours")
        return
    best = min(points, key=problem.value)
    upper, allowed = problem.value(best), RELATIVE * unit + 2 * rounding + problem.rounding(best)
    # (objective - bound) / objective; of one class over -bound, which is the larger
    claimed = objective * (1 - gap) if least is None else min(objective - gap * least, (objective / (1 - gap))
                                                               if gap < 1 else -np.inf)
    if upper < claimed - allowed:
        found.add("false gap", f"{where}gap {gap:.3g} claims at least {float(claimed):.8g}, another point has "
                               f"{float(upper):.8g}")
    size = max(abs(value), FAINT * abs(problem.value(np.zeros(len(v)))), least or 0, LONG(1e-300))
    found.note("ours above theirs", float(max(value - upper - rounding, 0) / size))
    found.note("theirs above ours", float(max(upper - value - rounding, 0) / size))


def check_joint(drawn, model, found):
    """The joint hinge: rows of all classes in one program."""
    X, s, classes = drawn.dense, drawn.settings, model.classes_
    (n, p), k = X.shape, len(classes)
    m = np.ones(n, LONG) if drawn.weights is None else drawn.weights.astype(LONG)
    m, own = m / m.sum(), np.searchsorted(classes, drawn.y)
    l2 = np.append(np.full(p, s["l2"]), s["l2"] * s["penalize_intercept"])

    def value(V):
        scores = X @ V[:, :-1].T + V[:, -1]
        lacking = scores + 1 - np.eye(k)[own]
        lacking = lacking.max(axis=1) - scores[np.arange(n), own]
        return (l2 / 2 * V * V).sum() + m @ lacking

    V = np.column_stack([model.coef_, model.intercept_]).astype(LONG)
    if k == 2:
        found.count("two classes")
        return
    objective, gap = float(np.ravel(model.objective_)[0]), float(np.ravel(model.duality_gap_)[0])
    if abs(objective - value(V)) > RELATIVE * max(1, abs(value(V))):
        found.add("objective", f"{objective:.8g} reported, is {float(value(V)):.8g}")
    size = np.append(np.abs(X).max(axis=0, initial=0), 1).astype(float)
    size[size == 0] = 1
    A = (np.column_stack([X, np.ones(n, LONG)]) / size).astype(float)
    if not s["fit_intercept"]:
        A[:, -1] = 0
    used = np.flatnonzero(m > 0)
    G = np.zeros((len(used) * k, k * (p + 1) + len(used)))
    h = np.zeros(len(G))
    for row, i in enumerate(used):
        for c in range(k):
            at = row * k + c
            G[at, c * (p + 1):(c + 1) * (p + 1)] += A[i]
            G[at, own[i] * (p + 1):(own[i] + 1) * (p + 1)] -= A[i]
            G[at, k * (p + 1) + row] = -1
            h[at] = -float(c != own[i])
    D = np.concatenate([np.tile((l2 / size**2).astype(float), k), np.zeros(len(used))])
    x = quadratic_program(D, np.concatenate([np.zeros(k * (p + 1)), m[used].astype(float)]), G, h)
    best = x[:k * (p + 1)].reshape(k, p + 1) / size
    best[:, -1] *= s["fit_intercept"]
    upper = value(best.astype(LONG))
    if upper < objective * (1 - gap) - RELATIVE:
        found.add("false gap", f"gap {gap:.3g} claims at least {objective * (1 - gap):.8g}, another point has "
                               f"{float(upper):.8g}")
    found.note("theirs above ours", float(max(upper - value(V), 0) / max(value(V), LONG(1e-300))))
