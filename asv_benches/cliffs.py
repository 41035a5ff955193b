"""Fits that cost or lose many times what their neighbours do: reads of the data along grids of penalties.

    python asv_benches/cliffs.py [--kind wide factors sparse separable records stored text counts one_hot l1]
                                 [--seeds 0 20] [--time-limit 15] [--intercepts free penalised]

Every seed is a drawn set of two classes. A line of a grid says the median and the largest number of reads, the largest
duality gap, and how many of its fits are cliffs: more than ten reads and than four times the median, or a gap above
`tol`. Counts, not seconds, so that any machine prints the same, unless a fit meets the time limit.

``wide``: 40 to 150 rows of 1,000 to 5,000 columns, standardised or not, 25 penalties by the hinge. ``factors``: 610 to
1,990 dense rows of as many columns or more that lean on 2 to 200 common directions, 5 penalties by every loss.
``sparse``: the same with a twentieth of the entries, as CSR. ``separable``: 40,000 to 80,000 rows of 8 to 30 columns
that a plane through them separates into two halves or into few and many, 25 penalties by every loss. ``records``: as
many rows, most of them near copies of few templates, columns of which some are heavy-tailed and others indicators, and
a class of 5 to 500 rows.

The others are CSR rows, 25 penalties by both hinges. ``stored``: 200 to 1,990 rows of more columns that lean on 2 to 60
directions, with a fifth, half or all of the entries. ``text``: 300 to 2,500 documents of Zipf words, tf-idf of unit
length; ``counts``: the words themselves. ``one_hot``: 500 to 5,000 rows of categories.
"""

import argparse
import warnings
from itertools import product

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from cmargin import SmSVMClassifier

LOSSES = ("hinge", "squared_hinge", "logistic")


def wide(seed):
    r = np.random.default_rng(700 + seed)
    n, m, k = int(r.integers(40, 150)), int(r.integers(1000, 5000)), r.integers(2, 20)
    F = r.standard_normal((n, k))
    X = F @ r.standard_normal((k, m)) * np.exp(r.standard_normal(m)) + r.standard_normal((n, m))
    if seed % 3 == 1:
        X = np.exp(X / 3)
    if seed % 3 != 2:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, np.where(F[:, 0] + 0.5 * r.standard_normal(n) > 0, 1, -1), LOSSES[:1], np.logspace(-5, 3, 25)


def factors(seed, density=1.0):
    r = np.random.default_rng(51_000 + seed)
    n = int(r.integers(610, 1990))
    m, k = int(n * r.uniform(1.02, 4)), int(r.integers(2, 200))
    X = r.standard_normal((n, k)) @ r.standard_normal((k, m)) * r.uniform(0.2, 2) \
        + r.standard_normal((n, m)) * np.exp(0.5 * r.standard_normal(m))
    s = X @ r.standard_normal(m)
    if density < 1:
        X = sp.csr_matrix(X * (r.random((n, m)) < density))
    y = np.where(s + r.uniform(0, 1) * s.std() * r.standard_normal(n) > 0, 1, -1)
    return X, y, LOSSES, np.logspace(-4, 2, 5)


def separable(seed):
    r = np.random.default_rng(63_000 + seed)
    n, m = int(r.integers(40_000, 80_000)), int(r.integers(8, 30))
    X = r.standard_normal((n, m))
    s = X @ r.standard_normal(m)
    return X, np.where(s > np.quantile(s, r.choice([0.5, 0.9, 0.99])), 1, -1), LOSSES, np.logspace(-2, 3, 25)


def records(seed):
    r = np.random.default_rng(74_000 + seed)
    n, m, n_templates = int(r.integers(40_000, 80_000)), int(r.integers(15, 45)), int(r.integers(20, 200))
    heavy = m // 2
    sizes = np.exp(1.5 * r.standard_normal((n_templates, heavy))) * (r.random((n_templates, heavy)) < 0.5)
    marks = r.random((n_templates, m - heavy)) < r.uniform(0.02, 0.5, m - heavy)
    chances = 1 / np.arange(1, n_templates + 1) ** 1.2
    template = r.choice(n_templates, n, p=chances / chances.sum())
    X = np.hstack([sizes, marks])[template]
    X[:, :heavy] *= np.exp(0.2 * r.standard_normal((n, heavy)) * (r.random((n, 1)) < 0.5))
    rare = template >= n_templates // 2
    rare &= r.random(n) < r.integers(5, 500) / rare.sum()
    scale = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1)
    return X, np.where(rare, 1, -1), LOSSES, np.logspace(-2, 3, 25)


def stored(seed):
    r = np.random.default_rng(90_000 + seed)
    n = int(r.integers(200, 1990))
    m, k = int(n * r.uniform(1.05, 5)), int(r.integers(2, 60))
    X = r.standard_normal((n, k)) @ r.standard_normal((k, m)) + r.uniform(0.01, 1) * r.standard_normal((n, m))
    s, density = X @ r.standard_normal(m), r.choice([1.0, 0.5, 0.2])
    X = sp.csr_matrix(X if density == 1 else X * (r.random((n, m)) < density))
    return X, labelled(r, s, 0.5), LOSSES[:2], np.logspace(-4, 1, 25)


def counts(seed):
    """Words of topics, and the median or the top tenth of a score of words and topic, with noise."""
    r = np.random.default_rng(80_000 + seed)
    n, m, k = int(r.integers(300, 2500)), int(r.integers(2000, 20000)), int(r.integers(2, 30))
    topic, mean_length = r.integers(0, k, n), r.uniform(3, 5)
    length = np.maximum(3, np.exp(r.normal(mean_length, 0.7, n))).astype(int)
    words = 1 / np.arange(1, m + 1) ** r.uniform(0.8, 1.2)
    words = np.exp(r.uniform(0.5, 2) * r.standard_normal((k, m))) * words
    columns = [r.choice(m, each, p=words[t] / words[t].sum()) for t, each in zip(topic, length, strict=True)]
    X = sp.csr_matrix((np.ones(length.sum()), (np.repeat(np.arange(n), length), np.concatenate(columns))), (n, m))
    X.sum_duplicates()
    s = X @ (r.standard_normal(m) * (r.random(m) < 0.2))
    return X, labelled(r, s / s.std() + 0.7 * r.standard_normal(k)[topic], r.choice([0.5, 0.9])), LOSSES[:2], \
        np.logspace(-4, 1, 25)


def text(seed):
    X, y, losses, _ = counts(seed)
    frequency = np.bincount(X.indices, minlength=X.shape[1])
    X = X @ sp.diags(np.log((1 + X.shape[0]) / (1 + frequency)) + 1)
    X = sp.diags(1 / np.sqrt(X.multiply(X).sum(axis=1).A1)) @ X
    return sp.csr_matrix(X), y, losses, np.logspace(-3, 2, 25)


def one_hot(seed):
    r = np.random.default_rng(98_000 + seed)
    n, k = int(r.integers(500, 5000)), int(r.integers(4, 20))
    sizes = r.integers(2, 600, k)
    columns = np.minimum(r.zipf(1.5, (n, k)) - 1, sizes - 1) + np.cumsum(sizes) - sizes
    X = sp.csr_matrix((np.ones(n * k), columns.ravel(), np.arange(0, n * k + 1, k)), shape=(n, sizes.sum()))
    return X, labelled(r, X @ r.standard_normal(sizes.sum()), r.choice([0.5, 0.9])), LOSSES[:2], np.logspace(-3, 2, 25)


def genes(seed):
    r = np.random.default_rng(41_000 + seed)
    n, m, k = int(r.integers(50, 150)), int(r.integers(2000, 8000)), int(r.integers(5, 40))
    F = r.standard_normal((n, k))
    X = F @ (r.standard_normal((k, m)) * (r.random((k, m)) < 0.3)) + r.uniform(0.3, 1.5) * r.standard_normal((n, m))
    return np.exp(0.5 * X + r.normal(4, 1.5, m)), labelled(r, F[:, 0] + 0.5 * F[:, 1], 0.5)


def few_columns(seed):
    r = np.random.default_rng(42_000 + seed)
    n = int(r.integers(800, 3000))
    k, m = int(r.integers(2, 20)), n // 20
    X = r.standard_normal((n, k)) @ r.standard_normal((k, m)) + r.uniform(0.2, 2) * r.standard_normal((n, m))
    return X + 3 * r.standard_normal(m), labelled(r, X @ (r.standard_normal(m) * (r.random(m) < 0.3)), 0.5)


def l1(seed):
    """A set, and two grids of settings: l1 alone, and l2 beside the thousandth of the l1 that holds every column."""
    X, y = ((genes, genes, text, few_columns)[seed % 4](seed))[:2]
    if seed % 4 == 0:
        X = np.log(X)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    n = X.shape[0]
    largest = abs(X.T @ (y - y.mean())).max() / n
    size = X.multiply(X).mean() * X.shape[1] if sp.issparse(X) else (X * X).mean()
    return X, y, LOSSES, {
        "l1": [{"l2": 0.0, "l1": part * largest} for part in np.logspace(-4, -0.1, 13)],
        "l2": [{"l2": part * size, "l1": 1e-3 * largest} for part in np.logspace(-6, 1, 13)]}


def labelled(r, score, quantile):
    """1 above the quantile of a score with up to as much noise, else -1."""
    score = score / score.std() + r.uniform(0, 1) * r.standard_normal(len(score))
    return np.where(score > np.quantile(score, quantile), 1, -1)


KINDS = {"wide": wide, "factors": factors, "sparse": lambda seed: factors(seed, 0.05), "separable": separable,
         "records": records, "stored": stored, "text": text, "counts": counts, "one_hot": one_hot, "l1": l1}


def grids_of(Cs):
    """Settings of the fits of every grid by its name, of a kind that gives one grid of C or several of settings."""
    return Cs if isinstance(Cs, dict) else {"C": [{"C": C} for C in Cs]}


def grid(X, y, loss, settings, time_limit, penalize_intercept=False):
    """Reads and gaps of a fit for each of the settings, arrays."""
    reads, gaps = [], []
    for each in settings:
        model = SmSVMClassifier(**each, loss=loss, max_time=time_limit, penalize_intercept=penalize_intercept,
                                random_state=0, n_jobs=1).fit(X, y)
        reads.append(model.n_passes_)
        gaps.append(model.duality_gap_[0])
    return np.array(reads), np.array(gaps)


def is_cliff(reads, gaps, tol=1e-4):
    """(n_fits,) booleans."""
    return (reads > np.maximum(10, 4 * np.median(reads))) | ~(gaps <= tol)


def main(args=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 20), metavar=("FIRST", "END"))
    parser.add_argument("--intercepts", nargs="+", default=["free"], choices=("free", "penalised"))
    parser.add_argument("--time-limit", type=float, default=15.0, help="seconds of a fit")
    options = parser.parse_args(args)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for kind in options.kind:
        found = tried = 0
        for seed in range(*options.seeds):
            X, y, losses, Cs = KINDS[kind](seed)
            for (name, settings), loss, intercept in product(grids_of(Cs).items(), losses, options.intercepts):
                reads, gaps = grid(X, y, loss, settings, options.time_limit, intercept == "penalised")
                cliffs = int(is_cliff(reads, gaps).sum())
                found, tried = found + cliffs, tried + len(settings)
                print(f"{kind} {seed} {X.shape[0]} x {X.shape[1]} {loss}, {intercept}, {name}: "
                      f"median {np.median(reads):.0f}, "
                      f"worst {reads.max():.0f} reads, gap {gaps.max():.1e}, {cliffs} cliffs", flush=True)
        print(f"{kind}: {found} cliffs in {tried} fits")


if __name__ == "__main__":
    main()
