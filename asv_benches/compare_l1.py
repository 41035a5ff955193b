"""SmSVM with an l1 penalty: does a fit reach the minimum, in how many reads of the rows, and beside whom.

    python asv_benches/compare_l1.py [--part correlated drawn text] [--seeds 0 60] [--limit 6]

``correlated``: hinge without l2 on 160 rows of 48 columns, mixed of 13 factors and noise, whose labels have none; the
minimum is a linear program's. ``drawn``: hinge on sets of ``compare_products.py`` at two penalties, as l2 and as l1, at
most 12,000 rows and ``--limit`` seconds a fit; to compare two revisions, run it on either. ``text``: logistic loss
beside LIBLINEAR, one thread, ours to a certified 1e-3, LIBLINEAR's largest tolerance that gets as near. The seeds are
those of ``correlated`` and ``drawn``; constants were chosen on 0 to 59 of the one and 9000 to 9021 of the other.
"""

import argparse
import warnings

import numpy as np
import scipy.sparse as sp
from compare_products import NEAR, TOLERANCES, drawn, seconds
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from cmargin import SmSVMClassifier

TEXT = ((7001, 100.0), (7008, 100.0), (7010, 100.0), (7001, 0.1), (7008, 1.0))      # seed of `drawn`, C
L1 = 1 / 1600


def correlated_columns(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((160, 13)) @ rng.standard_normal((13, 48)) + 0.3 * rng.standard_normal((160, 48))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    score = X @ (rng.standard_normal(48) * (rng.random(48) < 0.3))
    return X, score > np.median(score)


def least_hinge(X, y, l1):
    """The minimum of the mean hinge plus l1 |w|_1, with an intercept, by a linear program."""
    (n, p), sign = X.shape, np.where(y, 1.0, -1.0)[:, None]
    A = sign * X
    return linprog(np.concatenate([np.full(2 * p, l1), [0, 0], np.full(n, 1 / n)]),
                   -np.hstack([A, -A, sign, -sign, np.eye(n)]), -np.ones(n)).fun


def correlated(options):
    rows = []
    for seed in range(*options.seeds):
        X, y = correlated_columns(seed)
        model = SmSVMClassifier(l2=0.0, l1=L1, tol=1e-3, n_jobs=1, random_state=0).fit(X, y)
        rows.append((model.duality_gap_[0], model.objective_[0] / least_hinge(X, y, L1) - 1, model.n_passes_))
        print(f"{seed}: gap {rows[-1][0]:.2e}, {rows[-1][1]:.2e} above the minimum, {rows[-1][2]:.0f} reads")
    gap, above, reads = np.array(rows).T
    print(f"of {len(gap)}: {(gap <= 1e-3).sum()} certified to 1e-3, {(gap <= 1e-2).sum()} to 1e-2; above the minimum: "
          f"median {np.median(above):.1e}, worst {above.max():.1e}; reads: median {np.median(reads):.0f}, "
          f"most {reads.max():.0f}")


def penalties(rng, X, C):
    """Settings of a fit with l2, unless the columns are too many for factors, and of one with l1."""
    n = X.shape[0]
    ways = [1] if sp.issparse(X) and X.shape[1] > 3000 else [0, 1]
    for l1 in ways:
        settings = {"tol": float(rng.choice([1e-3, 1e-4, 1e-6])), "fit_intercept": bool(rng.random() < 0.6)}
        l2 = 0.0 if rng.random() < 0.5 else 0.01 / C / n
        if l1:
            yield {**settings, "l1": 1 / (C * n), "l2": l2}
        else:
            factors = not sp.issparse(X) or X.shape[1] < 1000
            yield {**settings, "l2": 1 / (C * n), "linear_solver": "cholesky" if factors else "auto"}


def drawn_sets(options):
    short, reads = [], []
    for seed in range(*options.seeds):
        rng = np.random.default_rng([seed, 3])
        name, X, y, two = drawn(seed)
        X, y = X[:12_000], y[:12_000]
        for C in two:
            for settings in penalties(rng, X, C):
                model = SmSVMClassifier(n_jobs=1, random_state=0, max_time=options.limit, **settings).fit(X, y)
                short.append(model.duality_gap_[0] > settings["tol"])
                reads.append(model.n_passes_)
                print(f"{seed} {name} C={C:g} {'l1' if 'l1' in settings else 'l2'} tol={settings['tol']:g}: "
                      f"gap {model.duality_gap_[0]:.1e}, {model.n_passes_:.1f} reads", flush=True)
    print(f"of {len(short)}: {sum(short)} not certified; reads: geometric mean {np.exp(np.log(reads).mean()):.2f}, "
          f"most {max(reads):.0f}")


def text(options):
    for seed, C in TEXT:
        name, X, y, _ = drawn(seed)
        sign = np.where(y, 1, -1)

        def objective(w, X=X, sign=sign, C=C):
            return np.logaddexp(0, -sign * (X @ w)).mean() + np.abs(w).sum() / (C * len(sign))

        own = SmSVMClassifier(loss="logistic", l2=0.0, l1=1 / (C * len(y)), tol=NEAR, fit_intercept=False, n_jobs=1)
        took, model = seconds(lambda own=own, X=X, y=y: own.fit(X, y), 3)
        wanted = model.objective_[0] * (1 - model.duality_gap_[0]) * (1 + NEAR)
        for tol in TOLERANCES:
            other = LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", tol=tol, fit_intercept=False,
                                       max_iter=1000, random_state=0)
            theirs, other = seconds(lambda other=other, X=X, y=y: other.fit(X, y), 3)
            if objective(other.coef_[0]) <= wanted:
                break
        else:
            theirs = np.inf
        print(f"{name} C={C:g}: {1e3 * took:.1f} ms, {(model.coef_ != 0).sum()} columns in use, {model.n_passes_:.0f} "
              f"reads; LIBLINEAR {1e3 * theirs:.1f} ms", flush=True)


PARTS = {"correlated": correlated, "drawn": drawn_sets, "text": text}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=["correlated", "text"])
    parser.add_argument("--seeds", nargs=2, type=int, default=[0, 60], help="the first, and the one after the last")
    parser.add_argument("--limit", type=float, default=6.0, help="seconds of a fit of ``drawn``")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for part in options.part:
            PARTS[part](options)


if __name__ == "__main__":
    main()
