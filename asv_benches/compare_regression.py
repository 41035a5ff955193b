"""SmSVMRegressor beside LIBLINEAR, ReHLine and HiGHS: processor time of one thread to an objective within 1e-4.

    python asv_benches/compare_regression.py [--sets tall,middle,...] [--losses epsilon_insensitive,...] [--l2s 1e-4]
        [--rows 29000] [--turns 3] [--most 60]

Ours is one fit to a certified gap of 1e-4. Peers are given tolerances 0.3, 0.1, ... until their objective is within
1e-4 of the least that is known, by a fit of ours to 1e-6; the time is that of this last fit alone. The intercept is
penalised like a weight, as LIBLINEAR does it, but beside QuantileRegressor, whose penalty is l1. ``--most``: seconds of
a fit after which a peer is given up. Three quantiles are three problems; ours solves them in one fit. A peer that is
not installed is left out.
"""

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_diabetes
from sklearn.linear_model import QuantileRegressor
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVR

from cmargin import SmSVMRegressor

WITHIN, QUANTILES, TOLERANCES = 1e-4, (0.1, 0.5, 0.9), [0.3 / 3.0**k for k in range(18)]


def made_up(rng, n, m, density=1.0):
    """Rows of decaying columns and targets whose spread depends on the first; a tenth of the residuals are heavy."""
    X = rng.standard_normal((n, m)) / np.sqrt(1 + np.arange(m) / 5)
    if density < 1:
        X = sp.random_array((n, m), density=density, rng=rng, format="csr", data_sampler=rng.standard_normal)
    first = np.asarray(X[:, [0]].todense() if density < 1 else X[:, [0]]).ravel()
    noise = rng.standard_normal(n) * (1 + 0.3 * np.abs(first)) * np.where(rng.random(n) < 0.1, 5, 1)
    return X, X @ rng.standard_normal(m) + noise + 2


def rows_of(name, n_tall, seed=0):
    rng = np.random.default_rng(seed)
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        return scale(X), y / 50
    shape = {"tall": (n_tall, 20), "middle": (20_000, 100), "wide": (300, 2_000), "few": (500, 10),
             "sparse": (20_000, 5_000, 0.005), "long sparse": (100_000, 300, 0.02)}[name]
    return made_up(rng, *shape)


def objective(X, y, w, b, loss, parameter, l2, l1, penalised):
    u = y - X @ w - b
    up, down, e = (1, 1, parameter) if loss == "epsilon_insensitive" else (parameter, 1 - parameter, 0)
    mean = np.mean(up * np.maximum(u - e, 0) + down * np.maximum(-u - e, 0))
    return mean + l2 / 2 * (w @ w + penalised * b * b) + l1 * np.abs(w).sum()


# ---------------------------------------------------------------- who is compared

def ours(X, y, loss, parameters, l2, l1, penalised, tol):
    name = "epsilon" if loss == "epsilon_insensitive" else "quantile"
    value = parameters[0] if name == "epsilon" else list(parameters)
    model = SmSVMRegressor(loss, **{name: value}, l2=l2, l1=l1, tol=tol, penalize_intercept=penalised, n_jobs=1)
    model.fit(X, y)
    return np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_), model.n_passes_


def liblinear(X, y, loss, parameter, l2, tol):
    C = 1 / (l2 * len(y))
    model = LinearSVR(epsilon=parameter, C=C, tol=tol, max_iter=10**6, random_state=0).fit(X, y)
    return model.coef_, float(np.ravel(model.intercept_)[0])


def rehline(X, y, loss, parameter, l2, tol):
    import rehline as package
    of = {"name": "svr", "epsilon": parameter} if loss == "epsilon_insensitive" else {"name": "QR", "qt": parameter}
    X = np.column_stack([X, np.ones(len(y))])
    model = package.plqERM_Ridge(loss=of, C=1 / (l2 * len(y)), tol=tol, max_iter=10**6).fit(X, y)
    return model.coef_[:-1], float(model.coef_[-1])


def highs(X, y, loss, parameter, l1):
    model = QuantileRegressor(quantile=parameter, alpha=l1, solver="highs").fit(X, y)
    return model.coef_, model.intercept_


# ---------------------------------------------------------------- their times

def timed(turns, call, *arguments):
    times = []
    for _ in range(turns):
        started = time.process_time()
        found = call(*arguments)
        times.append(time.process_time() - started)
    return found, float(np.median(times))


def of_peer(call, turns, most, X, y, loss, parameters, l2, best):
    """Processor time of all problems at the first tolerance that is enough for each, or None."""
    total = 0.0
    for parameter, least in zip(parameters, best, strict=True):
        for tol in TOLERANCES:
            (w, b), seconds = timed(1, call, X, y, loss, parameter, l2, tol)
            if objective(X, y, w, b, loss, parameter, l2, 0.0, True) <= least * (1 + WITHIN):
                break
            if seconds > most:
                return None
        else:
            return None
        total += timed(turns, call, X, y, loss, parameter, l2, tol)[1]
    return total


def compare(name, loss, l2, asked):
    X, y = rows_of(name, asked.rows)
    parameters = (0.5,) if loss == "epsilon_insensitive" else QUANTILES
    W, B, _ = ours(X, y, loss, parameters, l2, 0.0, True, 1e-6)
    best = [objective(X, y, w, b, loss, q, l2, 0.0, True) for w, b, q in zip(W, B, parameters, strict=True)]
    (W, B, reads), seconds = timed(asked.turns, ours, X, y, loss, parameters, l2, 0.0, True, 1e-4)
    over = max(objective(X, y, w, b, loss, q, l2, 0.0, True) / least - 1
               for w, b, q, least in zip(W, B, parameters, best, strict=True))
    told = [f"{name:12} {loss:20} {l2:8.0e}  ours {seconds:8.3f} s, {reads:6.1f} reads, {over:.0e} above"]
    peers = {"LIBLINEAR": liblinear} if loss == "epsilon_insensitive" else {}
    if not sp.issparse(X):
        peers["ReHLine"] = rehline
    for peer, call in peers.items():
        try:
            took = of_peer(call, asked.turns, asked.most, X, y, loss, parameters, l2, best)
        except ImportError:
            continue
        told.append(f"{peer} not within {asked.most:g} s" if took is None else f"{peer} {took / seconds:.1f} x")
    print("; ".join(told), flush=True)


def compare_with_highs(name, l1, asked):
    X, y = rows_of(name, asked.rows)
    for q in QUANTILES:
        (w, b), took = timed(asked.turns, highs, X, y, "quantile", q, l1)
        least = objective(X, y, w, b, "quantile", q, 0.0, l1, False)
        (W, B, reads), seconds = timed(asked.turns, ours, X, y, "quantile", (q,), 0.0, l1, False, 1e-4)
        over = objective(X, y, W[0], B[0], "quantile", q, 0.0, l1, False) / least - 1
        print(f"{name:12} quantile {q:.1f}, l1 = {l1:.0e}  ours {seconds:8.3f} s, {reads:6.1f} reads, "
              f"{over:.0e} above; HiGHS {took / seconds:.1f} x", flush=True)


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--sets", default="diabetes,few,tall,middle,wide,sparse,long sparse")
    asked.add_argument("--losses", default="epsilon_insensitive,quantile")
    asked.add_argument("--l2s", default="1e-2,1e-4,1e-6")
    asked.add_argument("--rows", type=int, default=29_000)
    asked.add_argument("--turns", type=int, default=3)
    asked.add_argument("--most", type=float, default=60.0)
    asked = asked.parse_args()
    warnings.simplefilter("ignore")
    for name in asked.sets.split(","):
        for loss in asked.losses.split(","):
            for l2 in map(float, asked.l2s.split(",")):
                compare(name, loss, l2, asked)
        if name in ("diabetes", "few") and "quantile" in asked.losses:
            compare_with_highs(name, 1e-2, asked)


if __name__ == "__main__":
    main()
