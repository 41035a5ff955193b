"""Squared hinge: what "auto" takes beside Newton's method and the dual, processor milliseconds of one thread.

    python asv_benches/compare_dual.py [--seeds 13 14] [--stored dense csr] [--repeat 3]

The least of some fits each, taken in turn, to a certified 1e-4, with an intercept without penalty. Constants of
cmargin/solvers/dual/smooth_choice.py were chosen on seeds 1, 2, 11 and 12. The dual is given up after 60 reads.
"""

import argparse
import warnings
from time import process_time

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from cmargin import SmSVMClassifier

DENSE = ((10_000, 51), (5_000, 101), (8_000, 125), (5_000, 200), (2_000, 500), (1_500, 1_000))
CSR = (("flat", 50_000, 300, 12), ("flat", 50_000, 1_000, 12), ("words", 20_000, 500, 40), ("words", 20_000, 1_000, 50),
       ("words", 5_000, 2_000, 40), ("words", 20_000, 50_000, 70), ("flat", 5_000, 150, 10), ("flat", 100_000, 130, 20))
L2 = (1e-1, 1e-2, 1e-3, 1e-5)


def clouds(rng, n, m):
    centres, label = rng.standard_normal((10, m)), rng.integers(0, 10, n)
    return centres[label] + 2 * rng.standard_normal((n, m)), label == 3


def plane(rng, n, m):
    X = rng.standard_normal((n, m))
    return X, X @ rng.standard_normal(m) / np.sqrt(m) + rng.standard_normal(n) > 0


def hard(rng, n, m):
    X = rng.standard_normal((n, m)) @ rng.standard_normal((m, m))
    X /= X.std(axis=0)
    score = X @ rng.standard_normal(m)
    return X, score / score.std() + 0.3 * rng.standard_normal(n) > 0


def two(rng, n, m):
    y, X = rng.random(n) < 0.5, rng.standard_normal((n, m))
    X[:, :5] += 0.9 * np.where(y, 1, -1)[:, None]
    return X, y


def apart(rng, n, m):
    y = np.where(rng.random(n) < 0.5, 1, -1)
    return rng.standard_normal((n, m)) + 3.6 / np.sqrt(m) * y[:, None] * np.sign(rng.standard_normal(m)), y > 0


def rare(rng, n, m):
    X = rng.standard_normal((n, m))
    score = X @ rng.standard_normal(m) / np.sqrt(m) + 0.3 * rng.standard_normal(n)
    return X, score > np.quantile(score, 0.95)


def correlated(rng, n, m):
    factors = rng.standard_normal((n, m // 10))
    X = factors @ rng.standard_normal((m // 10, m)) + 0.3 * rng.standard_normal((n, m))
    X /= X.std(axis=0)
    score = X @ rng.standard_normal(m)
    return X, score / score.std() + 0.5 * rng.standard_normal(n) > 0


def sparse_rows(rng, kind, n, m, each):
    """``flat``: 0/1, 3 % positive; ``words``: unit length, Zipf columns."""
    p = np.ones(m) if kind == "flat" else 1 / (np.arange(m) + 10)
    X = sp.csr_matrix((np.ones(n * each), (np.repeat(np.arange(n), each), rng.choice(m, n * each, p=p / p.sum()))),
                      shape=(n, m))
    X.sum_duplicates()
    if kind == "flat":
        X.data[:] = 1
        score, share = X @ rng.standard_normal(m) + rng.logistic(size=n), 0.03
    else:
        X = sp.csr_matrix(sp.diags(1 / np.sqrt(X.multiply(X).sum(axis=1).A1)) @ X)
        score = X @ rng.standard_normal(m)
        score, share = score / score.std() + 0.5 * rng.standard_normal(n), 0.5
    return X, score > np.quantile(score, 1 - share)


def cases(stored, seeds):
    for seed in seeds:
        if "dense" in stored:
            for n, m in DENSE:
                for make in (clouds, plane, hard, two, apart, rare, correlated):
                    yield f"{make.__name__} {n} x {m}, seed {seed}", *make(np.random.default_rng([seed, n, m]), n, m)
        if "csr" in stored:
            for kind, n, m, each in CSR:
                yield (f"{kind} {n} x {m}, {each} entries, seed {seed}",
                       *sparse_rows(np.random.default_rng([seed, n, m]), kind, n, m, each))


def measured(X, y, l2, repeat, newton):
    """{way: least milliseconds}, {way: the last model}."""
    least, models = {}, {}
    for number in range(repeat):
        for way in (newton, "dual", "auto"):
            if way == "dual" and number and models[way].duality_gap_[0] > 1e-4:
                continue
            start = process_time()
            models[way] = SmSVMClassifier(l2=l2, loss="squared_hinge", linear_solver=way, n_jobs=1,
                                          max_passes=60 if way == "dual" else 1000, random_state=0).fit(X, y)
            least[way] = min(least.get(way, np.inf), 1e3 * (process_time() - start))
    return least, models


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[13, 14])
    parser.add_argument("--stored", nargs="+", choices=["dense", "csr"], default=["dense", "csr"])
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    taken, left = [], []
    with threadpool_limits(1):
        for name, X, y in cases(options.stored, options.seeds):
            for l2 in L2:
                newton = "cg" if sp.issparse(X) and X.shape[1] > 4000 else "cholesky"
                least, models = measured(X, y, l2, options.repeat, newton)
                by_dual = not np.array_equal(models["auto"].coef_, models[newton].coef_)
                (taken if by_dual else left).append(least["auto"] / least[newton])
                print(f"{name}, l2 {l2:g}: " + ", ".join(f"{way} {ms:.2f} ms {models[way].n_passes_:.1f} reads"
                                                        for way, ms in least.items())
                      + f"; auto {'goes by the dual' if by_dual else 'does not'}, {least['auto'] / least[newton]:.2f}",
                      flush=True)
    for what, ratios in (("by the dual", taken), ("not", left)):
        if ratios:
            print(f"{what}: {len(ratios)} of {len(taken) + len(left)}, auto over Newton's method: least "
                  f"{min(ratios):.2f}, median {np.median(ratios):.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    main()
