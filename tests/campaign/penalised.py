"""Do penalised multinomial fits reach the optimum, whatever the rows, their scale and the penalty, and say so if not?

A cell is a set of rows, a scale, a type and a penalty. The objective is computed anew at the weights that the estimator
holds, and a bound below all objectives from their probabilities, both without the library and in extended precision.
"""

import os
import re
import warnings
from functools import cache

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from .findings import Findings

LONG = np.longdouble
ROWS = 1500                    # of a large set, chosen at random
BUNDLED = ("digits", "iris", "wine", "breast_cancer", "records")
SHARED = ("covtype", "hflights", "a9a", "australian", "colon", "mnist", "banking77_embedded")
SCALES = ("raw", "standardised", "unit rows", "to one", "unequal columns")
PENALTIES = tuple(10.0 ** np.arange(-4, 7))          # C, LogisticRegression's
TOL = 1e-4
RELATIVE = 1e-9                # how far a reported objective may be from its recomputation, rounding aside
EPS = 2.0**-52
ALIKE = 1e4                    # times the spread of one column that of another may be: then all fits are to end at tol
LIMITS = {"reads": 1000.0, "objective off": RELATIVE}


def cells():
    sets = BUNDLED + (SHARED if os.environ.get("CMARGIN_DATA") else ())
    return [(name, scale, dtype, C) for name in sets for scale in SCALES for dtype in ("float64", "float32")
            for C in PENALTIES]


CELLS = cells()


def describe(seed):
    name, scale, dtype, C = CELLS[seed]
    return [name, scale, dtype, f"C={C:g}"]


def records(n=1500, seed=77):
    """Rows as of connections to a computer: sizes and counts over nine orders of magnitude, rates, flags; a few kinds,
    of which one has most rows and some have ten."""
    rng = np.random.default_rng(seed)
    y = np.sort(np.concatenate([np.repeat(np.arange(5), 10), rng.choice(5, n - 50, p=[0.6, 0.3, 0.06, 0.03, 0.01])]))
    middle = rng.uniform(-1, 6, (5, 8))
    sizes = np.floor(np.exp(middle[y] + rng.uniform(0.2, 3.0, 8) * rng.standard_normal((n, 8))))
    rates = np.round(rng.beta(0.3, 0.3, (n, 6)) * (rng.random((5, 6)) < 0.6)[y], 2)
    flags = rng.random((n, 10)) < (rng.random((5, 10)) ** 4)[y]
    return np.column_stack([sizes, rates, flags, np.zeros(n)]), y


@cache
def rows(name):
    from cmargin import datasets

    if name == "records":
        return records()
    data = datasets.load(name)
    X, y = data.X, data.y
    if len(y) > ROWS:
        chosen = np.random.default_rng(5).choice(len(y), ROWS, replace=False)
        X, y = X[chosen], y[chosen]
    if sp.issparse(X):                                   # columns that these rows have
        X = X[:, np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) > 2)]
    return X.astype(np.float64), y


def scaled(X, scale):
    dense = X.toarray() if sp.issparse(X) else X
    if scale == "standardised":
        spread = dense.std(axis=0)
        return (dense - dense.mean(axis=0)) / np.where(spread > 0, spread, 1)
    if scale == "unit rows":
        factor = 1 / np.maximum(np.linalg.norm(dense, axis=1), 1e-300)
        return sp.diags_array(factor).tocsr() @ sp.csr_array(X) if sp.issparse(X) else dense * factor[:, None]
    if scale == "to one":
        low, high = dense.min(axis=0), dense.max(axis=0)
        return (dense - low) / np.where(high > low, high - low, 1)
    if scale == "unequal columns":
        factor = 10.0 ** np.where(np.arange(X.shape[1]) % 2, 3, -3)
        return sp.csr_array(X) @ sp.diags_array(factor).tocsr() if sp.issparse(X) else dense * factor
    return X


def fit(seed, **sharper):
    """The model, its rows, labels, penalty and warnings."""
    from cmargin import SLNDClassifier

    name, scale, dtype, C = CELLS[seed]
    X, y = rows(name)
    X = scaled(X, scale).astype(dtype)
    l2 = 1 / (C * len(y))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SLNDClassifier(l2=l2, loss="multinomial", n_jobs=1, **{"tol": TOL, **sharper}).fit(X, y)
    return model, X, y, l2, caught


def optimum(X, y, l2, model):
    """(P, D, rounding of P, of D): the objective at the model's weights, and a bound below it, which is
    `multinomial_newton`'s on paper. What rounding scores to double precision makes of both is told by the products that
    they are sums of; a logarithm of nearly 1 is besides wrong by EPS."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, LONG)
    n, own = len(y), np.searchsorted(model.classes_, y)
    W, bias = model.coef_.astype(LONG), model.intercept_.astype(LONG)
    if len(W) == 1:
        W, bias = np.concatenate([0 * W, W]), np.concatenate([0 * bias, bias])
    scores = X @ W.T + bias
    scores -= scores.max(axis=1, keepdims=True)
    total = np.exp(scores).sum(axis=1, keepdims=True)
    p, truth = np.exp(scores) / total, np.eye(len(W))[own]
    objective = np.mean(np.log(total[:, 0]) - scores[np.arange(n), own]) + l2 / 2 * (model.coef_.astype(LONG)**2).sum()
    share, off = truth.mean(axis=0), (p - truth).mean(axis=0)
    odds = max(np.max(off / share), LONG(1e-300))
    mixed = (p + odds * np.maximum(share - off / odds, 0)) / (1 + odds)              # balances the classes
    V = (truth - mixed).T @ X / n
    entropy = -(mixed * np.log(np.where(mixed > 0, mixed, 1))).sum(axis=1).mean()
    twice = 2 * l2 if len(W) == 2 else l2                # two classes have one row of weights and two of the solver's
    missed = EPS * (np.abs(X) @ np.abs(W).max(axis=0) + np.abs(bias).max())          # of a row's scores
    unsure = p.max(axis=1) * (1 - p.max(axis=1)) * missed
    in_V = np.abs(X).T @ unsure / n + EPS * np.abs(V).max(axis=0)
    return (objective, entropy - (V**2).sum() / (2 * twice), EPS + np.mean((1 - p[np.arange(n), own]) * missed),
            np.sum((np.abs(V).max(axis=0) + in_V) * in_V) * len(W) / twice)


def are_alike(X):
    """Whether the columns that are not constant spread alike, roughly."""
    spread = np.asarray(X.toarray() if sp.issparse(X) else X, np.float64).std(axis=0)
    spread = spread[spread > 1e-7 * spread.max()] if spread.max() > 0 else np.ones(1)
    return spread.max() <= ALIKE * spread.min()


def check_seed(seed):
    found = Findings(seed, describe(seed))
    model, X, y, l2, caught = fit(seed)
    objective, bound, rounding, of_bound = optimum(X, y, l2, model)
    received = [str(one.message) for one in caught if issubclass(one.category, ConvergenceWarning)]
    off, gap = float(abs(model.objective_ - objective)), model.duality_gap_
    found.note("reads", model.n_passes_)
    found.note("objective off", off / float(objective))
    if off > RELATIVE * objective + rounding:
        found.add("objective", f"{model.objective_:.8g} reported, is {float(objective):.8g}")
    if objective - bound > (1.01 * gap + RELATIVE) * objective + rounding + of_bound:
        # the solver may know a better bound, of another point: what disproves a gap is a point that is lower by more
        excess = objective - optimum(X, y, l2, fit(seed, tol=TOL / 100, max_time=60.0)[0])[0]
        found.count("gaps told by a better bound than that of the weights")
        if excess > gap * objective + rounding:
            found.add("false gap", f"{gap:.3g} reported, is at least {float(excess / objective):.3g}")
    if gap > TOL:
        words = re.search(r"gap of (\S+) where", received[0]) if received else None
        if words is None or not np.isclose(float(words[1]), gap, rtol=0.1):
            found.add("silent", f"gap {gap:.3g}, warnings {received}")
        if are_alike(X):
            found.add("short", f"gap {gap:.3g} after {model.n_passes_:.0f} reads")
        else:
            found.count("columns far from alike, and a gap above tol that is told")
    elif received:
        found.add("false warning", received[0])
    return found
