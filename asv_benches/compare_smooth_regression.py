"""Huber's loss beside HuberRegressor and L-BFGS; the squared epsilon-insensitive one beside LinearSVR.

    python asv_benches/compare_smooth_regression.py [--sets tall,middle,...] [--alphas 1e-4,1] [--epsilons 1.35]
        [--l2s 1e-2,1e-4] [--rows 29000] [--turns 3] [--most 60] [--seed 0]

Processor time of one thread to an objective within 1e-4 of the least. HuberRegressor(epsilon, alpha) estimates a scale
sigma along with the weights. At the sigma that it ends with, its weights minimise our objective with
delta = epsilon sigma and l2 = alpha sigma / N, so both are asked for the same weights: it finds sigma besides, which
ours is given; "L-BFGS" is given it too, and minimises the same function by SciPy, as HuberRegressor does. Each has the
largest tolerance (of 1e-1, 3e-2, ... ; iterations of L-BFGS: 5, 8, 12, ...) that is enough; ours is one fit to a
certified gap of 1e-4. "dual" and "primal" are LinearSVR's.
"""

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes
from sklearn.linear_model import HuberRegressor
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVR

from cmargin import SmSVMRegressor

WITHIN = 1e-4
TOLERANCES = [0.1 / 3.0**k for k in range(18)]
ITERATIONS = [int(5 * 1.5**k) for k in range(16)]


def rows_of(name, n_tall, seed):
    """Rows and targets; a tenth of the residuals are five times as large."""
    rng = np.random.default_rng(seed)
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        return scale(X), y / 50
    n, m = {"tall": (n_tall, 20), "middle": (20_000, 100), "few": (500, 10), "sparse": (20_000, 300)}[name]
    X = rng.standard_normal((n, m)) / np.sqrt(1 + np.arange(m) / 5)
    if name == "sparse":
        X = sp.random_array((n, m), density=0.02, rng=rng, format="csr", data_sampler=rng.standard_normal)
    noise = rng.standard_normal(n) * np.where(rng.random(n) < 0.1, 5, 1)
    return X, X @ rng.standard_normal(m) + noise + 2


def huber(u, delta):
    inside = np.clip(u, -delta, delta)
    return inside * (u - inside / 2), inside


def squared_epsilon(u, epsilon):
    over = np.maximum(np.abs(u) - epsilon, 0)
    return over * over, 2 * np.sign(u) * over


def objective(loss, X, y, w, b, parameter, l2, penalised=False):
    return loss(y - X @ w - b, parameter)[0].mean() + l2 / 2 * (w @ w + penalised * b * b)


def timed(turns, call, *arguments):
    times = []
    for _ in range(turns):
        started = time.process_time()
        found = call(*arguments)
        times.append(time.process_time() - started)
    return found, float(np.median(times))


def first_enough(grid, turns, most, call, value, least):
    """Processor time at the first of the grid that is enough, or None."""
    for tried in grid:
        (w, b), seconds = timed(1, call, tried)
        if value(w, b) <= least * (1 + WITHIN):
            return timed(turns, call, tried)[1]
        if seconds > most:
            return None
    return None


def ours(loss, X, y, parameter, l2, penalised, tol):
    name = "delta" if loss == "huber" else "epsilon"
    model = SmSVMRegressor(loss, **{name: parameter}, l2=l2, tol=tol, penalize_intercept=penalised, n_jobs=1)
    model.fit(X, y)
    return model.coef_, model.intercept_, model.n_passes_


def lbfgs(X, y, delta, l2, iterations):
    n, m = X.shape

    def value(v):
        F, slope = huber(y - X @ v[:m] - v[m], delta)
        return F.mean() + l2 / 2 * v[:m] @ v[:m], np.append(-(X.T @ slope) / n + l2 * v[:m], -slope.mean())

    v = minimize(value, np.zeros(m + 1), jac=True, method="L-BFGS-B", options={"maxiter": iterations, "ftol": 0,
                                                                               "gtol": 1e-14}).x
    return v[:m], v[m]


def told(peers, seconds, most):
    return "; ".join(f"{peer} not within {most:g} s" if took is None else f"{peer} {took / seconds:.1f} x"
                     for peer, took in peers.items())


def compare_huber(name, X, y, epsilon, alpha, asked):
    theirs = HuberRegressor(epsilon=epsilon, alpha=alpha, max_iter=10**5, tol=1e-9).fit(X, y)
    delta, l2 = epsilon * theirs.scale_, alpha * theirs.scale_ / len(y)
    w, b, _ = ours("huber", X, y, delta, l2, False, 1e-9)

    def value(w, b):
        return objective(huber, X, y, w, b, delta, l2)

    least = min(value(w, b), value(theirs.coef_, theirs.intercept_))
    (w, b, reads), seconds = timed(asked.turns, ours, "huber", X, y, delta, l2, False, 1e-4)

    def regressor(tol):
        model = HuberRegressor(epsilon=epsilon, alpha=alpha, max_iter=10**5, tol=tol).fit(X, y)
        return model.coef_, model.intercept_

    def given_scale(iterations):
        return lbfgs(X, y, delta, l2, iterations)

    peers = {"HuberRegressor": first_enough(TOLERANCES, asked.turns, asked.most, regressor, value, least),
             "L-BFGS": first_enough(ITERATIONS, asked.turns, asked.most, given_scale, value, least)}
    print(f"{name:12} huber, epsilon {epsilon:g}, alpha {alpha:g} (delta {delta:.2g}, l2 {l2:.1e})  "
          f"ours {seconds:.3f} s, {reads:.1f} reads, {value(w, b) / least - 1:.0e} above; "
          f"{told(peers, seconds, asked.most)}", flush=True)


def compare_svr(name, X, y, l2, asked, epsilon=0.5):
    def value(w, b):
        return objective(squared_epsilon, X, y, w, b, epsilon, l2, True)

    w, b, _ = ours("squared_epsilon_insensitive", X, y, epsilon, l2, True, 1e-8)
    least = value(w, b)
    (w, b, reads), seconds = timed(asked.turns, ours, "squared_epsilon_insensitive", X, y, epsilon, l2, True, 1e-4)
    peers = {}
    for peer, dual in (("LinearSVR, primal", False), ("dual", True)):
        def regressor(tol, dual=dual):
            model = LinearSVR(epsilon=epsilon, C=1 / (l2 * len(y)), loss="squared_epsilon_insensitive", dual=dual,
                              tol=tol, max_iter=10**6, random_state=0).fit(X, y)
            return model.coef_, float(np.ravel(model.intercept_)[0])

        peers[peer] = first_enough(TOLERANCES, asked.turns, asked.most, regressor, value, least)
    print(f"{name:12} squared epsilon-insensitive, l2 {l2:.0e}  ours {seconds:.3f} s, {reads:.1f} reads, "
          f"{value(w, b) / least - 1:.0e} above; {told(peers, seconds, asked.most)}", flush=True)


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--sets", default="diabetes,few,tall,middle,sparse")
    asked.add_argument("--losses", default="huber,squared_epsilon_insensitive")
    asked.add_argument("--epsilons", default="1.35,1.1")
    asked.add_argument("--alphas", default="1e-4,1")
    asked.add_argument("--l2s", default="1e-2,1e-4,1e-6")
    asked.add_argument("--rows", type=int, default=29_000)
    asked.add_argument("--turns", type=int, default=3)
    asked.add_argument("--most", type=float, default=60.0)
    asked.add_argument("--seed", type=int, default=0)
    asked = asked.parse_args()
    warnings.simplefilter("ignore")
    for name in asked.sets.split(","):
        X, y = rows_of(name, asked.rows, asked.seed)
        if "huber" in asked.losses.split(","):
            for epsilon in map(float, asked.epsilons.split(",")):
                for alpha in map(float, asked.alphas.split(",")):
                    compare_huber(name, X, y, epsilon, alpha, asked)
        if "squared_epsilon_insensitive" in asked.losses.split(","):
            for l2 in map(float, asked.l2s.split(",")):
                compare_svr(name, X, y, l2, asked)


if __name__ == "__main__":
    main()
