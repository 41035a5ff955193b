"""Smooth losses whose steps begin by conjugate gradients, beside steps by a factor and the best of scikit-learn.

    python asv_benches/compare_products.py [--loss logistic squared_hinge] [--seeds 3000 3080] [--repeat 3] [--limit 1]

Every seed is a set of its own: its kind, shape, dtype, scale, noise, share of positives and two penalties are drawn.
Sets of which ``linear_solver="auto"`` tries no products are left out. Seconds of one thread, the least of some fits
each, taken in turn, without an intercept: ours to a certified 1e-3, theirs at the largest tolerance that gets as near.
By a factor: "cholesky", or "woodbury" where there are more columns than rows. Constants were chosen on other sets.
"""

import argparse
import warnings
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from cmargin import SmSVMClassifier
from cmargin.data.loss import Loss
from cmargin.data.open import open_rows
from cmargin.solvers.penalty import ElasticNet
from cmargin.solvers.prices import products_limit, reducing_pays_off
from cmargin.solvers.problem import Problem, Settings

NEAR = 1e-3
TOLERANCES = 10.0 ** -np.arange(1, 7)
OTHERS = {
    "logistic": {name: lambda C, tol, name=name: LogisticRegression(
        C=C, tol=tol, max_iter=2000, fit_intercept=False, solver=name) for name in
        ("lbfgs", "liblinear", "newton-cholesky")},
    "squared_hinge": {name: lambda C, tol, dual=dual: LinearSVC(
        C=C, tol=tol, max_iter=5000, fit_intercept=False, dual=dual, random_state=0)
        for name, dual in (("dual", True), ("primal", False))},
}
KINDS = {                          # (rng, rows, columns) -> rows
    "plane": lambda r, n, m: r.standard_normal((n, m)),
    "factors": lambda r, n, m: (r.standard_normal((n, m // 4 + 1)) @ r.standard_normal((m // 4 + 1, m))
                                + 0.3 * r.standard_normal((n, m))),
    "heavy": lambda r, n, m: r.standard_t(2.5, (n, m)),
    "lognormal": lambda r, n, m: np.exp(r.standard_normal((n, m))),
    "counts": lambda r, n, m: r.poisson(r.gamma(1, 1, m), (n, m)).astype(float),
    "waves": lambda r, n, m: np.cos(r.standard_normal((n, 5)) @ r.standard_normal((5, m)) + r.uniform(0, 6, m)),
    "pixels": lambda r, n, m: np.maximum(0, r.standard_normal((n, m // 5 + 1)) @ r.standard_normal((m // 5 + 1, m))),
    "table": lambda r, n, m: entries_at(np.minimum((m // 10 * r.random((n, 10)) ** 2), m // 10 - 1).astype(int)
                                        + m // 10 * np.arange(10), m // 10 * 10),
    "text": lambda r, n, m: unit_length(entries_at(r.zipf(1.3, (n, r.integers(10, 80))) % (20 * m), 20 * m)),
}


def entries_at(columns, m):
    n, each = columns.shape
    X = sp.csr_matrix((np.ones(n * each), columns.ravel(), np.arange(n + 1) * each), shape=(n, m))
    X.sum_duplicates()
    return X


def unit_length(X):
    X.data = np.log1p(X.data)
    X.data /= np.repeat(np.sqrt(np.asarray(X.multiply(X).sum(axis=1))[:, 0]), np.diff(X.indptr))
    return X


def drawn(seed):
    """(name, X, y, two C)"""
    rng = np.random.default_rng(seed)
    kind, n, m = rng.choice(list(KINDS)), int(10 ** rng.uniform(2, 4.6)), int(10 ** rng.uniform(1.6, 3))
    X = KINDS[kind](rng, n, max(20, min(m, 4_000_000 // n)))
    if not sp.issparse(X):
        if rng.random() < 0.5:
            X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
        X = np.ascontiguousarray(X, np.float32 if rng.random() < 0.4 else np.float64)
    score = X @ (rng.standard_normal(X.shape[1]) * (rng.random(X.shape[1]) < rng.uniform(0.05, 1)))
    score = score / (score.std() + 1e-12) + rng.choice([0, 0.1, 0.5, 2]) * rng.standard_normal(n)
    y = score > np.quantile(score, rng.choice([0.5, 0.5, 0.7, 0.9, 0.97]))
    return f"{kind} {X.shape[0]:,} x {X.shape[1]:,} {X.dtype}", X, y, 10.0 ** rng.choice(range(-2, 3), 2, replace=False)


def objective(X, y, w, C, loss):
    margins = np.where(y, 1, -1) * (X @ w)
    losses = np.logaddexp(0, -margins) if loss == "logistic" else np.maximum(0, 1 - margins) ** 2
    return losses.mean() + w @ w / (2 * C * len(y))


def seconds(fit, repeat):
    least = np.inf
    for _ in range(repeat):
        start = perf_counter()
        model = fit()
        least = min(least, perf_counter() - start)
    return least, model


def best_other(X, y, C, loss, best, options):
    """Seconds and name of the quickest that gets as near, or inf."""
    found = np.inf, "none"
    for name, make in OTHERS[loss].items():
        if name == "newton-cholesky" and (sp.issparse(X) or X.shape[1] > 2000):
            continue
        for tol in TOLERANCES:
            took, model = seconds(lambda: make(C, tol).fit(X, y), 1)            # noqa: B023
            if objective(X, y, model.coef_[0].astype(float), C, loss) <= best * (1 + NEAR):
                found = min(found, (min(took, seconds(lambda: make(C, tol).fit(X, y), options.repeat - 1)[0]), name))  # noqa: B023
                break
            if took > options.limit:
                break
    return found


def compared(name, X, y, C, loss, options):
    """(auto over factor, auto over the best other), or None where no products are tried."""
    stats, problem = open_rows(X).describe(), Problem(ElasticNet(1 / (C * len(y))), None, Loss(loss))
    if not products_limit(stats, problem, Settings(max_passes=1000.0)):
        return None
    factor = "woodbury" if reducing_pays_off(stats) else "cholesky"
    took = {}
    for _ in range(options.repeat):
        for way in ("auto", factor):
            model = SmSVMClassifier(loss=loss, C=C, tol=NEAR, fit_intercept=False, n_jobs=1, linear_solver=way)
            one, model = seconds(lambda: model.fit(X, y), 1)                    # noqa: B023
            took[way] = min(took.get(way, np.inf), one)
            if way == "auto":
                best, reads = model.objective_[0] * (1 - model.duality_gap_[0]), model.n_passes_
    other, who = best_other(X, y, C, loss, best, options)
    print(f"{loss} {name} C={C:g}: {1e3 * took['auto']:.2f} ms, {reads:.1f} reads; {factor} "
          f"{1e3 * took[factor]:.2f} ms; {who} {1e3 * other:.2f} ms", flush=True)
    return took["auto"] / took[factor], took["auto"] / other


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loss", nargs="+", choices=list(OTHERS), default=list(OTHERS))
    parser.add_argument("--seeds", nargs=2, type=int, default=[3000, 3080],
                        help="the first, and the one after the last")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=1.0, help="seconds that others may take")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ratios = {}
    with threadpool_limits(1):
        for seed in range(*options.seeds):
            name, X, y, strengths = drawn(seed)
            for loss in options.loss:
                for C in strengths:
                    if (pair := compared(f"{name}, seed {seed},", X, y, C, loss, options)) is not None:
                        ratios.setdefault((loss, "CSR" if sp.issparse(X) else "dense"), []).append(pair)
    for (loss, stored), pairs in ratios.items():
        for what, part in zip(("by a factor", "of the best of scikit-learn"), np.array(pairs).T, strict=True):
            print(f"{loss}, {stored}, {len(part)} fits: of the time {what} {part.min():.3f} to {part.max():.2f}, "
                  f"median {np.median(part):.2f}, geometric mean {np.exp(np.log(np.maximum(part, 1e-6)).mean()):.2f}")


if __name__ == "__main__":
    main()
