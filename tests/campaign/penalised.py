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
from scipy.special import entr
from sklearn.exceptions import ConvergenceWarning

from .findings import Findings

LONG = np.longdouble
ROWS = 1500                    # of a large set, chosen at random
BUNDLED = ("digits", "iris", "wine", "breast_cancer", "records")
SHARED = ("covtype", "hflights", "a9a", "australian", "colon", "mnist", "banking77_embedded")
SCALES = ("raw", "standardised", "unit rows", "to one", "unequal columns")
PENALTIES = tuple(10.0 ** np.arange(-4, 7))          # C, LogisticRegression's
TOL = 1e-4
RELATIVE = 1e-8                # how far a reported objective may be from its recomputation
LIMITS = {"reads": 1000.0, "objective off": RELATIVE, "uncertified": 0.0}


def cells():
    sets = BUNDLED + (SHARED if os.environ.get("CMARGIN_DATA") else ())
    return [(name, scale, dtype, C) for name in sets for scale in SCALES for dtype in ("float64", "float32")
            for C in PENALTIES]


CELLS = cells()


def describe(seed):
    name, scale, dtype, C = CELLS[seed]
    return [name, scale, dtype, f"C={C:g}"]


def records(n=1500, seed=77):
    """Rows as of connections to a computer: sizes and counts over nine orders of magnitude, rates, flags.

    Of a few kinds, one has most of the rows and some have ten.
    """
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


def fit(seed):
    """The model, its rows, labels, penalty and warnings."""
    from cmargin import SLNDClassifier

    name, scale, dtype, C = CELLS[seed]
    X, y = rows(name)
    X = scaled(X, scale).astype(dtype)
    l2 = 1 / (C * len(y))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SLNDClassifier(l2=l2, loss="multinomial", tol=TOL, n_jobs=1).fit(X, y)
    return model, X, y, l2, caught


def optimum(X, y, l2, model):
    """(P, D): the objective at the model's weights, and a bound below it, as `multinomial_newton` has it on paper."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, LONG)
    n, own = len(y), np.searchsorted(model.classes_, y)
    W, bias = model.coef_.astype(LONG), model.intercept_.astype(LONG)
    if len(W) == 1:
        W, bias = np.concatenate([0 * W, W]), np.concatenate([0 * bias, bias])
    scores = X @ W.T + bias
    scores -= scores.max(axis=1, keepdims=True)
    total = np.exp(scores).sum(axis=1, keepdims=True)
    k, half = len(W), 2 if len(W) == 2 else 1            # two classes: one row of weights, twice the penalty of two
    objective = np.mean(np.log(total[:, 0]) - scores[np.arange(n), own]) + l2 / 2 * (model.coef_.astype(LONG)**2).sum()
    p, truth = np.exp(scores) / total, np.eye(k)[own]
    share = truth.mean(axis=0)
    off = (p - truth).mean(axis=0)
    odds = max(np.max(off / share), LONG(1e-300))
    q = share - off / odds
    mixed = (p + odds * np.maximum(q, 0)) / (1 + odds)   # balances the classes
    V = (truth - mixed).T @ X / n
    entropy = entr_of(mixed).sum(axis=1).mean()
    return objective, entropy - (V**2).sum() / (2 * half * l2)


def entr_of(p):
    return np.where(p > 0, -p * np.log(np.where(p > 0, p, 1)), 0) if p.dtype == LONG else entr(p)


def check_seed(seed):
    found = Findings(seed, describe(seed))
    model, X, y, l2, caught = fit(seed)
    objective, bound = optimum(X, y, l2, model)
    gap = float((objective - bound) / objective)
    told = [str(one.message) for one in caught if issubclass(one.category, ConvergenceWarning)]
    off = float(abs(model.objective_ - objective) / objective)
    found.note("reads", model.n_passes_)
    found.note("objective off", off)
    found.note("uncertified", float(model.duality_gap_ > TOL))
    if off > RELATIVE:
        found.add("objective", f"{model.objective_:.8g} reported, is {float(objective):.8g}")
    if gap > 1.01 * model.duality_gap_ + RELATIVE:
        found.add("false gap", f"{model.duality_gap_:.3g} reported, is {gap:.3g}")
    if model.duality_gap_ > TOL:
        words = re.search(r"gap of (\S+) where", told[0]) if told else None
        if words is None or float(words[1]) < 0.9 * model.duality_gap_:
            found.add("silent", f"gap {model.duality_gap_:.3g}, warnings {told}")
        found.add("short", f"gap {model.duality_gap_:.3g} after {model.n_passes_:.0f} reads: {told}")
    elif told:
        found.add("false warning", told[0])
    return found
