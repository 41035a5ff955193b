"""What "auto" takes beside Newton's method and the dual, processor milliseconds of one thread.

    python asv_benches/compare_dual.py [--loss squared_hinge] [--stored dense csr few wide short texts]
        [--seeds 13 14] [--repeat 3] [--most 60]

The least of some fits each, taken in turn, to a certified 1e-4, with an intercept without penalty. Constants of
cmargin/solvers/dual/smooth_choice.py were chosen on seeds 1, 2, 11 and 12, those of
cmargin/data/memory/dual_rows.py on seeds below 10. The dual is given up after ``--most`` reads.
``few`` and ``wide``: CSR rows of 16 to 128 and of more than 4,000 columns; ``texts``: of which a few are common,
most of them rare, and some have no entry, with labels of which a tenth is wrong. ``short``: dense rows with more
columns than rows, those of every other set standardised; Newton's method has as many unknowns as rows there.
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
SIZES = (5, 8, 8, 16, 16, 7, 14, 6, 5, 2, 4, 4, 5, 23)         # of the categories of a table like that of incomes
FEW = (("one-hot", 32_000, SIZES, 0.24), ("one-hot", 8_000, SIZES, 0.24), ("one-hot", 32_000, (3,) * 20, 0.5),
       ("one-hot", 60_000, (8,) * 14, 0.005), ("ones", 50_000, (60, 20), 0.5), ("numbers", 30_000, (120, 30), 0.5))
WIDE = ((8_000, 6_000, 30), (6_000, 9_000, 30), (20_000, 4_500, 30), (30_000, 5_000, 30), (12_000, 5_000, 30))
TEXTS = (("counts", 30, 1.3), ("counts", 20, 1.1), ("ones", 20, 1.2), ("ones", 20, 1.5), ("unit", 20, 1.3),
         ("numbers", 20, 1.2), ("numbers", 20, 1.3))
SHORT = ((60, 2_000), (70, 500), (120, 8_000), (200, 800), (300, 4_000), (700, 2_000))
L2 = {"short": (1e1, 1e0, 1e-2, 1e-4), "dense": (1e-1, 1e-2, 1e-3, 1e-5),
      "csr": (1e-1, 1e-2, 1e-3, 1e-5), "few": (1e-1, 1e-2, 1e-3, 1e-5),
      "wide": (1e-4, 1e-5, 1e-6, 1e-7), "texts": (1e-3, 1e-4, 1e-5, 1e-6)}


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


def few_columns(rng, kind, n, sizes, share):
    """``one-hot``: a 1 in each of some groups of columns; ``ones`` and ``numbers``: entries anywhere."""
    if kind == "one-hot":
        parts = [1 / np.arange(1, size + 1)**1.2 for size in sizes]
        columns = [rng.choice(len(p), n, p=p / p.sum()) for p in parts]
        indices, m = np.stack(columns, axis=1) + np.cumsum((0, *sizes[:-1])), sum(sizes)
    else:
        m, each = sizes
        indices = np.argsort(rng.random((n, m)), axis=1)[:, :each]
    each = indices.shape[1]
    entries = rng.standard_normal(n * each) if kind == "numbers" else np.ones(n * each)
    X = sp.csr_matrix((entries, indices.ravel().astype(np.int32), np.arange(0, n * each + 1, each)), shape=(n, m))
    score = X @ rng.standard_normal(m) / np.sqrt(each / 12) + rng.logistic(size=n)
    return X, score > np.quantile(score, 1 - share)


def wide(rng, n, m, each):
    """0/1 rows beside a noisy plane."""
    X = sp.csr_matrix((np.ones(n * each), (np.repeat(np.arange(n), each), rng.integers(0, m, n * each))), shape=(n, m))
    X.sum_duplicates()
    X.data[:] = 1
    score = X @ rng.standard_normal(m)
    return X, score / score.std() + 0.5 * rng.standard_normal(n) > 0


def texts(rng, kind, each, exponent, n=20_000, m=90_000):
    """``counts`` of Zipf columns, 0/1 ``ones``, rows of ``unit`` length, or normal ``numbers`` in their place."""
    X = sp.csr_matrix((np.ones(n * each), rng.zipf(exponent, n * each) % m, np.arange(n + 1) * each), shape=(n, m))
    X.sum_duplicates()
    if kind != "counts":
        X.data = rng.standard_normal(X.nnz) if kind == "numbers" else np.ones(X.nnz)
    if kind == "unit":
        X.data /= np.repeat(np.sqrt(np.diff(X.indptr)), np.diff(X.indptr))
    score = X @ rng.standard_normal(m)
    return X, (score + 0.5 * score.std() * rng.standard_normal(n) > np.median(score)) != (rng.random(n) < 0.1)


def cases(stored, seeds):
    """(set, name, X, y)"""
    for seed in seeds:
        for n, m in DENSE if "dense" in stored else ():
            for make in (clouds, plane, hard, two, apart, rare, correlated):
                yield ("dense", f"{make.__name__} {n} x {m}, seed {seed}",
                       *make(np.random.default_rng([seed, n, m]), n, m))
        for n, m in SHORT if "short" in stored else ():
            for number, make in enumerate((clouds, plane, hard, two, rare, correlated)):
                X, y = make(np.random.default_rng([seed, n, m]), n, m)
                if (number + seed) % 2:
                    X = (X - X.mean(axis=0)) / X.std(axis=0)
                yield "short", f"{make.__name__} {n} x {m}, seed {seed}", X, y
        for kind, n, m, each in CSR if "csr" in stored else ():
            yield ("csr", f"{kind} {n} x {m}, {each} entries, seed {seed}",
                   *sparse_rows(np.random.default_rng([seed, n, m]), kind, n, m, each))
        for kind, n, sizes, share in FEW if "few" in stored else ():
            X, y = few_columns(np.random.default_rng([seed, n, *sizes]), kind, n, sizes, share)
            yield "few", f"{kind} {n} x {X.shape[1]}, {100 * share:g} % positive, seed {seed}", X, y
        for number, kind in enumerate(TEXTS if "texts" in stored else ()):
            yield "texts", "{} {}, exponent {}, seed {seed}".format(*kind, seed=seed), \
                *texts(np.random.default_rng([seed, number]), *kind)
        for n, m, each in WIDE if "wide" in stored else ():
            yield ("wide", f"wide {n} x {m}, {each} entries, seed {seed}",
                   *wide(np.random.default_rng([seed, n, m]), n, m, each))


def measured(X, y, l2, newton, options):
    """{way: least milliseconds}, {way: the last model}."""
    least, models = {}, {}
    for number in range(options.repeat):
        for way in (newton, "dual", "auto"):
            if way == "dual" and number and models[way].duality_gap_[0] > 1e-4:
                continue
            start = process_time()
            models[way] = SmSVMClassifier(l2=l2, loss=options.loss, linear_solver=way, n_jobs=1, random_state=0,
                                          max_passes=options.most if way == "dual" else 1000).fit(X, y)
            least[way] = min(least.get(way, np.inf), 1e3 * (process_time() - start))
    return least, models


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loss", choices=["hinge", "squared_hinge"], default="squared_hinge")
    parser.add_argument("--seeds", nargs="+", type=int, default=[13, 14])
    parser.add_argument("--stored", nargs="+", choices=list(L2), default=["dense", "csr"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--most", type=int, default=60)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    taken, left = [], []
    with threadpool_limits(1):
        for stored, name, X, y in cases(options.stored, options.seeds):
            for l2 in L2[stored]:
                newton = "woodbury" if stored == "short" else \
                    "cg" if sp.issparse(X) and X.shape[1] > 4000 else "cholesky"
                least, models = measured(X, y, l2, newton, options)
                by_dual = (models["auto"].n_passes_ != models[newton].n_passes_
                           or not np.array_equal(models["auto"].coef_, models[newton].coef_))
                (taken if by_dual else left).append(least["auto"] / least[newton])
                said = ", ".join(f"{way} {ms:.2f} ms {models[way].n_passes_:.1f} reads"
                                 + " (not enough)" * int(models[way].duality_gap_[0] > 1e-4)
                                 for way, ms in least.items())
                print(f"{name}, l2 {l2:g}: {said}; auto {'begins with the dual' if by_dual else 'does not'}, "
                      f"{least['auto'] / least[newton]:.2f}", flush=True)
    for what, ratios in (("begins with the dual", taken), ("does not", left)):
        if ratios:
            print(f"{what}: {len(ratios)} of {len(taken) + len(left)}, auto over Newton's method: least "
                  f"{min(ratios):.2f}, median {np.median(ratios):.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    main()
