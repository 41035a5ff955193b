"""Slow, obvious NumPy twins of SmSVM: the smoothed objective, one pass over the rows, the certificate, and the
paper's Algorithms 1-4 as printed (with the l1 weight put back into line 13 of Algorithm 4). Formulas, not speed.
"""

from itertools import combinations

import numpy as np
from scipy.optimize import minimize


def dense(X):
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)


def with_ones(X, intercept):
    X = dense(X)
    return np.column_stack([X, np.ones(len(X))]) if intercept else X


def smoothed(u, width):
    """F, a = F' and h = F'' of the smoothed positive part at the slacks u = 1 - y <w, x>."""
    root = np.sqrt(width**2 + u**2)
    return (u + root) / 2, (1 + u / root) / 2, width**2 / (2 * root**3)


def dual_curvature(a, u, width):
    """h from 2 a root = root + u linearised in (a, u); F''(u) where a = F'(u)."""
    root = np.sqrt(width**2 + u**2)
    return (1 - (2 * a - 1) * u / root) / (2 * root)


def evaluate(X, y, s, w, e, width_before, width, step=1.0, dual=None, offset=1.0):
    """What one read of the rows gives at w + step e; X already holds the column of ones. Slacks are offset - y <w, x>.

    Sums, gradient rows, curvature, and the dual variables carried on (``dual``: before the step, None at the start).
    """
    change = y * (X @ e)
    u0 = offset - y * (X @ w)
    u1 = u0 - step * change
    _, a0, h0 = smoothed(u0, width_before)
    line, line_slope, _ = smoothed(u1, width_before)
    value, a1, h1 = smoothed(u1, width)
    if dual is not None:
        h0 = dual_curvature(dual, u0, width_before)
    a_hat = np.clip(a0 - h0 * change, 0, 1)
    carried = a1
    if dual is not None:
        carried = dual + min(1, step) * (a_hat - dual)
        h1 = dual_curvature(carried, u1, width)
    sums = [s @ line, -(s * line_slope) @ change, s @ np.maximum(u1, 0), s @ value,
            (s * a_hat)[y > 0].sum(), (s * a_hat)[y < 0].sum()]
    gradient = np.stack([X.T @ (s * y * a1), X.T @ (s * a_hat * (y > 0)), -(X.T @ (s * a_hat * (y < 0)))])
    return np.array(sums), gradient, (X.T * (s * h1)) @ X, carried


LARGEST = {"logistic": 1.0, "squared_hinge": np.inf, "modified_huber": 4.0}        # dual variables


def smooth_evaluation(X, y, s, w, e, step, offset, loss):
    """The same of a loss that is smooth itself, as `LARGEST` names them: the sums value, slope in the step, gains of
    the predicted dual variables of either side, their own sums, curvature; gradient rows.
    """
    def at(u):
        if loss == "logistic":
            share = 1 / (1 + np.exp(-u + 1))
            return np.log1p(np.exp(u - 1)), share, share * (1 - share)
        if loss == "modified_huber":
            return np.where(u <= 2, np.maximum(u, 0) ** 2, 4 * u - 4), 2 * np.clip(u, 0, 2), 2.0 * ((u >= 0) & (u <= 2))
        return np.maximum(u, 0) ** 2, 2 * np.maximum(u, 0), 2.0 * (u >= 0)

    change, u0 = y * (X @ e), offset - y * (X @ w)
    value, a1, h1 = at(u0 - step * change)
    _, a0, h0 = at(u0)
    a = np.clip(a0 - h0 * change, 0, LARGEST[loss])
    with np.errstate(all="ignore"):
        gain = a - a**2 / 4 if loss != "logistic" else -np.nan_to_num(a * np.log(a) + (1 - a) * np.log(1 - a))
    gains = s * (gain + (offset - 1) * a)
    sides = y > 0, y < 0
    of_sides = [part[side].sum() for part in (gains, s * a) for side in sides]
    sums = [s @ value, -(s * a1) @ change, *of_sides, s @ h1]
    return np.array(sums), np.stack([X.T @ (s * y * a1), *(X.T @ (s * y * a * side) for side in sides)])


def curvature_above(X, s, h, floor):
    """sum s h x x' of the rows with h > floor, and its diagonal of those below, down to a thousandth of the floor."""
    rest = np.where((h <= floor) & (h > 1e-3 * floor), s * h, 0)
    return (X.T * np.where(h > floor, s * h, 0)) @ X + np.diag(rest @ X**2)


def sampled_curvature(X, s, h, stands_for, numbers, squares=1.0):
    """sum s h x x' / chance over the rows whose number is below their chance, which grows with s h and x' x."""
    chance = s * h * (0.1 + 0.9 * squares) / stands_for
    chance = np.minimum(np.where(chance > 0, chance, 1), 1)
    return (X.T * np.where(numbers < chance, s * h / chance, 0)) @ X


def objective(X, y, s, w, l2, l1, free=None):
    """The unsmoothed P(w) with mean weights s (sum s = n); column `free` is not penalised."""
    beta = np.delete(w, free) if free is not None else w
    return l2 / 2 * beta @ beta + s @ np.maximum(0, 1 - y * (X @ w)) / len(y) + l1 * np.abs(beta).sum()


def smoothed_objective(X, y, w, l2, l1, width):
    return l2 / 2 * w @ w + smoothed(1 - y * (X @ w), width)[0].mean() + l1 * np.abs(w).sum()


def smoothed_gradient(X, y, w, l2, width):
    return l2 * w - X.T @ (y * smoothed(1 - y * (X @ w), width)[1]) / len(y)


def smoothed_hessian(X, y, w, l2, width):
    h = smoothed(1 - y * (X @ w), width)[2]
    return l2 * np.eye(X.shape[1]) + (X.T * h) @ X / len(y)


def dual_value(X, y, s, a, l2, l1):
    """D(a) for penalised columns only; a in [0, 1]."""
    v = X.T @ (s * a * y) / len(y)
    return s @ a / len(y) - (np.maximum(np.abs(v) - l1, 0) ** 2).sum() / (2 * l2)


def line_search_l1(w, d, b, a, l1, s_max=np.inf):
    """Algorithm 4: argmin over 0 <= s <= s_max of a s^2 + b s + l1 |w + s d|_1, and the index that vanishes there."""
    with np.errstate(divide="ignore", invalid="ignore"):
        sigma = np.where(d != 0, -w / d, 0.0)
    order = [j for j in np.argsort(sigma, kind="stable") if d[j] != 0 and sigma[j] > 0]

    def slope(s, side):                       # derivative from the left (-1) or the right (+1)
        at = w + s * d
        at[[j for j in order if sigma[j] == s]] = 0.0
        sign = np.where(at != 0, np.sign(at), side * np.sign(d))
        return 2 * a * s + b + l1 * sign @ d

    if slope(0.0, 1) >= 0:
        return 0.0, -1
    left = 0.0
    for j in order:
        if sigma[j] >= s_max:
            break
        if slope(sigma[j], -1) >= 0:
            return left - slope(left, 1) / (2 * a), -1
        if slope(sigma[j], 1) >= 0:
            return sigma[j], j
        left = sigma[j]
    if a <= 0:
        return s_max, -1
    return min(s_max, left - slope(left, 1) / (2 * a)), -1


def paper(X, y, l2, l1, width=1.0, width_min=1e-6, beta=0.1, eta=0.1, c1=1e-4, max_steps=500):
    """Algorithms 1-4. Returns w, the list of active sets (one per Newton step) and the number of evaluations."""
    m = X.shape[1]
    w = np.zeros(m)
    g_hat = smoothed_gradient(X, y, w, l2, width)
    admitted = np.abs(g_hat) > l1
    active = (w != 0) | admitted
    adjust, actives, evaluations = True, [], 0
    while width > beta * width_min and len(actives) < max_steps:
        g_hat = smoothed_gradient(X, y, w, l2, width)
        g = g_hat + l1 * np.sign(w)
        g[active & (w == 0)] -= l1 * np.sign(g_hat[active & (w == 0)])
        H = smoothed_hessian(X, y, w, l2, width)
        d = np.zeros(m)
        d[active] = -np.linalg.solve(H[np.ix_(active, active)], g[active])
        evaluations += 1
        if abs(d @ g) < eta * width:
            J = ~active & (np.abs(g_hat) > l1)
            if not (J.any() and adjust):
                width, adjust = beta * width, True
                continue
            active |= J
            g[J] = g_hat[J] - l1 * np.sign(g_hat[J])
            d[J] = -g[J]
            adjust = False
        actives.append(active.copy())
        s, hit = line_search_l1(w, d, d @ g_hat, d @ H @ d / 2, l1)
        before = smoothed_objective(X, y, w, l2, l1, width)
        while s > 1e-10 and smoothed_objective(X, y, w + s * d, l2, l1, width) > before + c1 * s * (d @ g):
            s, hit = s / 2, -1
        if s <= 1e-10:
            width, adjust = beta * width, True
            continue
        new = w + s * d
        gone = (w != 0) & ((new == 0) | (np.sign(new) == -np.sign(w)))
        if hit >= 0:
            gone[hit] = True
        new[gone] = 0.0
        active = (active & ~gone)
        w = new
    return w, actives, evaluations


# ---------------------------------------------------------------- rows near the hinge

def bin_of(number):
    """A sixteenth of a power of two, as the upper 16 bits of a float64 >= 0 have it."""
    if number == 0 or not np.isfinite(number):
        return 0 if number == 0 else 0x7FF0
    power = int(np.floor(np.log2(number)))
    return ((power + 1023) << 4) + int((number / 2.0**power - 1) * 16)


def distances(u, norms):
    """Of rows from the hinge: the square of what w has to change by."""
    with np.errstate(all="ignore"):
        return u**2 / norms


def counted(numbers):
    """{bin: how many numbers are in it}."""
    bins = [bin_of(number) for number in numbers]
    return {at: bins.count(at) for at in sorted(set(bins))}


# ---------------------------------------------------------------- a penalty by column

def column_penalty(w, l2, l1, lower, upper):
    """phi(w) of one column, infinite beyond its bounds."""
    return np.where((w < lower) | (w > upper), np.inf, l2 * w**2 / 2 + l1 * np.abs(w))


def column_conjugate(v, l2, l1, lower, upper):
    """phi*(v) = max over w of v w - phi(w), of one column: the function is concave, and its kinks are known."""
    if l2 > 0:
        candidates = np.array([lower, upper, 0.0, (v - l1) / l2, (v + l1) / l2])
    elif (v > l1 and upper == np.inf) or (v < -l1 and lower == -np.inf):
        return np.inf
    else:
        candidates = np.array([lower, upper, 0.0])
    candidates = np.clip(candidates[np.isfinite(candidates)], lower, upper)
    return float(np.max(v * candidates - column_penalty(candidates, l2, l1, lower, upper)))


def dual_value_by_column(total, v, own):
    """max over t of t S - sum phi_j*(t v_j), 0 <= t <= 1, by thirds; ``own`` (4, p): l2, l1, lower and upper bounds."""
    def value(t):
        return t * total - sum(column_conjugate(t * each, *column) for each, column in zip(v, own.T, strict=True))

    low, high = 0.0, 1.0
    for _ in range(150):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if value(left) < value(right) else (low, right)
    return max(value(0.0), value(low), value(1.0))


def column_model_minimum(H, g, w, l1, lower, upper, sweeps=20000):
    """argmin over d of g'd + d'Hd/2 + sum l1_j |w_j + d_j| for lower <= w + d <= upper, one column after the other."""
    x, gradient = w.astype(float).copy(), g.astype(float).copy()
    for _ in range(sweeps):
        before = x.copy()
        for j in range(len(x)):
            aim = H[j, j] * x[j] - gradient[j]
            to = np.clip(np.sign(aim) * max(abs(aim) - l1[j], 0) / H[j, j], lower[j], upper[j])
            gradient += H[j] * (to - x[j])
            x[j] = to
        if np.abs(x - before).max() < 1e-15:
            break
    return x - w


def projected_direction(H, g, w, l1, lower, upper, part):
    """Conjugate gradients on the columns that do not rest, scaled by H's diagonal, until a part of their slope is left;
    then each column up to its first kink, and half of that until it falls."""
    right, left = g + np.where(w >= 0, l1, -l1), g + np.where(w > 0, l1, -l1)      # slopes to both sides
    up, down = (w < upper) & (right < 0), (w > lower) & (left > 0)
    held = (w == lower) | (w == upper) | ((w == 0) & (l1 > 0))
    free = ~held | up | down
    slope = np.where(free, np.where(up & held, right, left), 0.0)
    rises = (w > 0) | ((w == 0) & up)               # on that side of 0 a column stays
    x, r = np.zeros(len(g)), -slope
    search = r / np.diag(H)
    rz = r @ search
    while r @ r > part**2 * (slope @ slope):
        product = np.where(free, H @ search, 0.0)
        x, r = x + rz / (search @ product) * search, r - rz / (search @ product) * product
        before, rz = rz, r @ (r / np.diag(H))
        search = r / np.diag(H) + rz / before * search
    for t in 0.5 ** np.arange(60):
        to = np.clip(w + t * x, lower, upper)
        beyond = (l1 > 0) & np.where(rises, to < 0, to > 0)
        d = np.where(free, np.where(beyond, 0.0, to), w) - w
        if slope @ d <= 1e-4 * t * (slope @ x):
            return d


# ---------------------------------------------------------------- linear constraints

def dual_value_within(total, v, l2, A, b):
    """max over t of t S - phi*(t v), 0 <= t <= 1, by thirds; phi*(v) = |v + A'mu|^2 / (2 l2) + mu'b at its best mu."""
    def value(t):
        def conjugate(mu):
            moved = t * v + mu @ A
            return moved @ moved / (2 * l2) + mu @ b, A @ moved / l2 + b

        found = minimize(conjugate, np.zeros(len(b)), jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(b),
                         options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 10**4})
        return t * total - found.fun

    low, high = 0.0, 1.0
    for _ in range(60):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if value(left) < value(right) else (low, right)
    return max(value(0.0), value(low), value(1.0))


def model_minimum_within(H, g, w, A, b):
    """argmin over d of g'd + d'Hd/2 with A (w + d) + b >= 0: the best of the minima with some of them as equations."""
    best, least = np.zeros(len(w)), np.inf
    for size in range(min(len(b), len(w)) + 1):
        for met in map(list, combinations(range(len(b)), size)):
            system = np.block([[H, A[met].T], [A[met], np.zeros((size, size))]])
            if np.linalg.matrix_rank(A[met]) < size:
                continue
            d = np.linalg.solve(system, np.concatenate([-g, -(A[met] @ w + b[met])]))[:len(w)]
            value = g @ d + d @ H @ d / 2
            if (A @ (w + d) + b >= -1e-9).all() and value < least:
                best, least = d, value
    return best
