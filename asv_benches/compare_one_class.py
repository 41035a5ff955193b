"""SmSVMOneClass beside LIBLINEAR (-s 21), OneClassSVM(kernel="linear") and SGDOneClassSVM: seconds to an objective.

    python -m asv_benches.compare_one_class [--nu 0.1] [--turns 3] [--most 60]

Every solver is run at looser tolerances first, and the first one counts at which its objective is within 1e-4 of the
least that is known. Seconds are those of one thread of this process, a median of turns; "-": it did not get there in
``most`` seconds. LIBLINEAR (pip install liblinear-official) reads its own copy of the rows, which is not timed. rho is
the best for the weights that a solver found. Rows of CMARGIN_DATA are left out where there is no such folder.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDOneClassSVM
from sklearn.svm import OneClassSVM
from threadpoolctl import threadpool_limits

from cmargin import SmSVMOneClass

CLOSE = 1e-4


def shapes():
    """Yield (name, X)."""
    rng = np.random.default_rng(31)
    yield "tall, 200,000 x 20", 2 + rng.normal(size=(200_000, 20)) @ rng.normal(size=(20, 20))
    yield "square, 3,000 x 500", 0.5 + rng.normal(size=(3000, 500))
    yield "wide, 200 x 5,000", 0.3 + rng.normal(size=(200, 5000))
    yield "sparse, 20,000 x 5,000", sp.random(20_000, 5000, 0.01, format="csr", random_state=5)
    if folder := os.environ.get("CMARGIN_DATA"):
        sys.path.insert(0, str(Path(folder)))
        from load import load

        X, y = load("covtype", np.float64)[:2]
        yield "covtype, class 2", np.ascontiguousarray(X[y == 1]) / np.abs(X).max(axis=0).clip(1)
        X, y = load("mnist", np.float64)[:2]
        yield "mnist, digit 3", np.ascontiguousarray(X[y == 3]) / 255
        yield "sector", load("sector", np.float64)[0]


def objective(X, w, nu):
    """The least over rho."""
    scores = X @ w
    rho = np.partition(scores, int(nu * len(scores)))[int(nu * len(scores))]
    return w @ w / 2 - rho + np.maximum(0, rho - scores).mean() / nu


def ours(X, nu):
    return [lambda tol=tol: SmSVMOneClass(nu=nu, tol=tol, n_jobs=1).fit(X).coef_[0] for tol in (1e-2, 1e-3, 1e-4, 1e-8)]


def liblinear(X, nu):
    try:
        from liblinear.liblinearutil import parameter, problem, train
    except ImportError:
        return []
    held = problem(np.ones(X.shape[0]), sp.csr_matrix(X))

    def fit(eps):
        w = np.array(train(held, parameter(f"-s 21 -n {nu} -e {eps} -q")).get_decfun()[0]) / (nu * X.shape[0])
        return w if len(w) == X.shape[1] else np.append(w, np.zeros(X.shape[1] - len(w)))

    return [lambda eps=eps: fit(eps) for eps in 10.0 ** -np.arange(0, 7)]


def libsvm(X, nu):
    if X.shape[0] > 20_000:
        return []

    def fit(tol):
        coef = OneClassSVM(kernel="linear", nu=nu, tol=tol, cache_size=500).fit(X).coef_
        return np.asarray(coef.todense() if sp.issparse(coef) else coef).ravel() / (nu * X.shape[0])

    return [lambda tol=tol: fit(tol) for tol in 10.0 ** -np.arange(0, 7)]


def sgd(X, nu):
    return [lambda n=n: SGDOneClassSVM(nu=nu, max_iter=n, tol=None, random_state=0, average=True).fit(X).coef_.ravel()
            for n in (1, 10, 100)]


def seconds_to(X, nu, fits, best, turns, most):
    """(seconds, relative distance from ``best``) of the first of the ``fits`` that is close enough, or of the last."""
    found = np.nan, np.inf
    for fit in fits:
        begin = time.process_time()
        w = fit()
        taken = time.process_time() - begin
        away = (objective(X, w, nu) - best) / abs(best)
        found = taken, away
        if away <= CLOSE:
            again = []
            for _ in range(turns - 1):
                begin = time.process_time()
                fit()
                again.append(time.process_time() - begin)
            return float(np.median([taken, *again])), away
        if 10 * taken > most:
            break
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nu", type=float, default=0.1)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--most", type=float, default=60.0)
    parser.add_argument("--only", default="", help="shapes whose names begin so")
    parser.add_argument("--solvers", default="SmSVMOneClass,LIBLINEAR,OneClassSVM,SGDOneClassSVM")
    given = parser.parse_args()
    solvers = {"SmSVMOneClass": ours, "LIBLINEAR": liblinear, "OneClassSVM": libsvm, "SGDOneClassSVM": sgd}
    solvers = {name: solvers[name] for name in given.solvers.split(",")}
    print(f"nu={given.nu:g}: seconds, and relative distance from the least objective")
    print(f"{'rows':24}" + "".join(f"{name:>22}" for name in solvers))
    with threadpool_limits(1):
        for name, X in shapes():
            if not name.startswith(given.only):
                continue
            best = objective(X, ours(X, given.nu)[-1](), given.nu)
            line = f"{name:24}"
            for of in solvers.values():
                taken, away = seconds_to(X, given.nu, of(X, given.nu), best, given.turns, given.most)
                line += f"{f'{taken:.3f}' if away <= CLOSE else '-':>12}{away:>10.1e}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
