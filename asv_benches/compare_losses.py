"""SmSVM's squared hinge and logistic loss beside LinearSVC and LogisticRegression, on one objective each.

    python asv_benches/compare_losses.py --data FOLDER [--limit SECONDS] [--quick]

Forest cover, class 2 against the rest, standardised. A peer is run with twice as many iterations each time until it is
within 1e-4 of the optimum or a run takes more than ``--limit`` seconds; the seconds of its last run alone are printed.
LinearSVC penalises its intercept, and so does SmSVM beside it. ``--quick`` takes breast_cancer, to see that it runs.
"""

import argparse
import os
import warnings
from time import perf_counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from cmargin import SmSVMClassifier
from cmargin.datasets import load
from cmargin.measure.race.data import prepare
from cmargin.measure.report import heading, table

TOL = 1e-4                     # certified gap of SmSVM, and the distance that peers must come to
L2 = (1e-3, 1e-5)
MOST = 1 << 16                 # iterations of a peer
PEERS = {
    "squared_hinge": {
        "LinearSVC, primal": lambda C, n: LinearSVC(C=C, dual=False, tol=1e-12, max_iter=n),
        "LinearSVC, dual": lambda C, n: LinearSVC(C=C, dual=True, tol=1e-12, max_iter=n),
    },
    "logistic": {
        "lbfgs": lambda C, n: LogisticRegression(C=C, tol=1e-12, max_iter=n),
        "newton-cholesky": lambda C, n: LogisticRegression(C=C, tol=1e-12, max_iter=n, solver="newton-cholesky"),
    },
}


def objective(loss, X, y, l2, model, penalised):
    w, b = model.coef_[0], model.intercept_[0]
    z = y * (X @ w + b)
    risk = np.maximum(1 - z, 0) ** 2 if loss == "squared_hinge" else np.logaddexp(0, -z)
    return risk.mean() + l2 / 2 * (w @ w + penalised * b * b)


def timed(model, X, y):
    start = perf_counter()
    model.fit(X, y)
    return perf_counter() - start


def peer(make, loss, X, y, l2, best, limit):
    """(iterations, seconds, distance) of the first run within TOL, or of the last within the limit."""
    n = 2
    while True:
        model = make(1 / (l2 * len(y)), n)
        seconds = timed(model, X, y)
        distance = objective(loss, X, y, l2, model, loss == "squared_hinge") / best - 1
        if distance <= TOL or seconds > limit or n >= MOST:
            return n, seconds, distance
        n *= 2


def rows(X, y, threads, limit):
    for loss, peers in PEERS.items():
        for l2 in L2:
            settings = {"loss": loss, "l2": l2, "penalize_intercept": loss == "squared_hinge", "n_jobs": threads}
            exact = SmSVMClassifier(**settings, tol=1e-8).fit(X, y)
            model = SmSVMClassifier(**settings, tol=TOL)
            ours = min(timed(model, X, y) for _ in range(3))
            distance = objective(loss, X, y, l2, model, settings["penalize_intercept"]) / exact.objective_[0] - 1
            yield [loss, l2, "SmSVM", f"{model.n_passes_:.1f} reads", ours, f"{max(distance, 0.0):.0e}", 1.0]
            for name, make in peers.items():
                n, seconds, distance = peer(make, loss, X, y, l2, exact.objective_[0], limit)
                yield [loss, l2, name, f"{n} iterations", seconds, f"{max(distance, 0.0):.0e}", seconds / ours]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", metavar="FOLDER")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of one run of a peer (default: 20)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.data:
        os.environ["CMARGIN_DATA"] = options.data
    warnings.simplefilter("ignore", ConvergenceWarning)
    data, positive = (load("breast_cancer"), 1) if options.quick else (load("covtype"), 1)
    X, y = prepare(data.X, intercept=False), np.where(data.y == positive, 1, -1)
    print(heading(options.threads))
    with threadpool_limits(options.threads):
        print(table(f"Seconds to within {TOL:g} of the optimum, {len(X)} x {X.shape[1]} float64",
                    ("loss", "l2", "solver", "work", "seconds", "distance", "ratio to SmSVM"),
                    list(rows(X, y, options.threads, options.limit))))


if __name__ == "__main__":
    main()
