"""The multinomial optimum beside scikit-learn's: seconds to a given distance from it; prints ratios.

    python asv_benches/compare_multinomial.py --data FOLDER [--sets mnist,tinyimagenet] [--C 1,10,100] [--threads 2]
                                              [--solvers lbfgs,newton-cg,newton-cholesky] [--limit 600]

FOLDER holds `load.py` and the sets; rows are float32, l2-normalised; `digits`, `planes` and `blobs` (generated, nearly
separable) need no FOLDER. Ours runs to a certified relative gap of 1e-4,
from the rows as given. Then scikit-learn's lbfgs runs, and every fifth iterate is looked at in float64 while its clock
stands still: the first one within 1e-4 of the optimum (ours, certified to 1e-6, less its gap) gives its time. --limit,
in processor seconds, ends its run. Other solvers run to their own end at tol = 1e-6. Processor seconds are printed
beside; on a machine that does other things too compare those, with --threads 1, as BLAS waits busily for its threads.
"""

import argparse
import time
import warnings

import numpy as np
import sklearn.linear_model._logistic as logistic
from compare_slnd import read_set
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from cmargin.data import open_rows
from cmargin.solvers.multinomial.newton import Settings, solve

DISTANCE = 1e-4


class Enough(Exception):
    """scikit-learn's solver is near enough, or out of time."""


class Clock:
    """Wall and processor seconds since its beginning, less those spent while it stood still."""

    def __init__(self):
        self.skipped = np.zeros(2)
        self.begin = self.now()

    def now(self):
        return np.array([time.perf_counter(), time.process_time()]) - self.skipped

    def seconds(self):
        return self.now() - self.begin

    def still(self, work):
        before = self.now()
        out = work()
        self.skipped += self.now() - before
        return out


def ours(X, y, n_classes, l2, tol, threads):
    clock = Clock()
    fit, _ = solve(open_rows(X), y, None, n_classes, Settings(l2, tol, n_threads=threads))
    return fit, clock.seconds()


def scikit_learn(X, y, n_classes, C, solver, enough, limit, threads):
    """Iterations and seconds to an objective of at most ``enough``, and whether it got there."""
    source, l2 = open_rows(X).softmax_pass(y, None, n_classes, True, threads), 1 / (C * len(y))
    clock, seen = Clock(), {"n": 0}

    def visit(coef):
        seen["n"] += 1
        if seen["n"] % 5 == 0:                 # an evaluation costs as much as an iteration, and is not counted
            value = clock.still(lambda: objective(source, np.reshape(coef, (n_classes, -1), order="F"), l2))
            seen["ok"] = value <= enough
            if seen["ok"] or clock.seconds()[1] > limit:
                raise Enough

    original = logistic.optimize.minimize
    logistic.optimize.minimize = lambda *a, **k: original(*a, **{**k, "callback": visit})
    try:
        with warnings.catch_warnings(), threadpool_limits(threads):
            warnings.simplefilter("ignore")
            fit = LogisticRegression(C=C, solver=solver, tol=1e-6, max_iter=5000).fit(X, y)
            look_once = np.column_stack([fit.coef_, fit.intercept_])
            seconds, count = clock.seconds(), int(np.max(fit.n_iter_))
            return count, seconds, objective(source, look_once, l2) <= enough
    except Enough:
        return seen["n"], clock.seconds(), seen["ok"]
    finally:
        logistic.optimize.minimize = original


def objective(source, coef, l2):
    V = np.ascontiguousarray(coef.T, dtype=np.float64)
    if not source.precise:
        source.keep(np.float64)
    return source.risk(V)[0] + l2 / 2 * np.sum(V[:-1] ** 2)


def rows_of(name, folder):
    """A set of the folder, the digits, or 8,000 generated rows: 30 classes apart by random planes, or hardly apart."""
    rng = np.random.default_rng(0)
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return normalize(X).astype(np.float32), y
    if name == "planes":
        X = rng.standard_normal((8000, 120))
        return X.astype(np.float32), (X @ rng.standard_normal((30, 120)).T).argmax(axis=1)
    if name == "blobs":
        means, y = 0.3 * rng.standard_normal((30, 120)), rng.integers(0, 30, 8000)
        return (means[y] + rng.standard_normal((8000, 120))).astype(np.float32), y
    return read_set(name, folder)[:2]


def compare(name, options):
    X, y = rows_of(name, options.data)
    n_classes = int(y.max()) + 1
    solve(open_rows(X[:2000]), y[:2000], None, n_classes, Settings(1e-3, 1e-2))            # libraries loaded
    for C in map(float, options.C.split(",")):
        l2 = 1 / (C * len(y))
        fit, spent = ours(X, y, n_classes, l2, DISTANCE, options.threads)
        best, spent_best = ours(X, y, n_classes, l2, 1e-6, options.threads)
        print(f"{name} C = {C:g}: certified {fit.gap:.1e} in {spent[0]:.1f} s ({spent[1]:.1f} s of processors), "
              f"{fit.n_newton} Newton steps, {fit.reads:.0f} reads; {best.gap:.1e} in {spent_best[0]:.1f} s "
              f"({spent_best[1]:.1f})", flush=True)
        optimum = best.objective * (1 - best.gap)
        for solver in filter(None, options.solvers.split(",")):
            n, other, there = scikit_learn(X, y, n_classes, C, solver, optimum * (1 + DISTANCE), options.limit,
                                           options.threads)
            print(f"  {solver}: {'' if there else 'not there after '}{n} iterations, {other[0]:.1f} s "
                  f"({other[1]:.1f}), {'' if there else 'more than '}{other[0] / spent[0]:.1f} times ours, "
                  f"{other[1] / spent[1]:.1f} in processor seconds", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--sets", default="mnist,tinyimagenet")
    parser.add_argument("--C", default="1,10,100")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--solvers", default="lbfgs")
    parser.add_argument("--limit", type=float, default=600.0)
    options = parser.parse_args()
    for name in options.sets.split(","):
        compare(name, options)


if __name__ == "__main__":
    main()
