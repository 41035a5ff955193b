"""Fits that cost or lose many times what their neighbours do: reads of the data along grids of penalties.

    python asv_benches/cliffs.py [--kind wide factors sparse separable records] [--seeds 0 20] [--time-limit 15]
                                 [--intercepts free penalised]

Every seed is a drawn set of two classes. A line of a grid says the median and the largest number of reads, the largest
duality gap, and how many of its fits are cliffs: more than ten reads and than four times the median, or a gap above
`tol`. Counts, not seconds, so that any machine prints the same, unless a fit meets the time limit.

``wide``: 40 to 150 rows of 1,000 to 5,000 columns, standardised or not, 25 penalties by the hinge. ``factors``: 610 to
1,990 dense rows of as many columns or more that lean on 2 to 200 common directions, 5 penalties by every loss.
``sparse``: the same with a twentieth of the entries, as CSR. ``separable``: 40,000 to 80,000 rows of 8 to 30 columns
that a plane through them separates into two halves or into few and many, 25 penalties by every loss. ``records``: as
many rows, most of them near copies of few templates, columns of which some are heavy-tailed and others indicators, and
a class of 5 to 500 rows.
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


KINDS = {"wide": wide, "factors": factors, "sparse": lambda seed: factors(seed, 0.05), "separable": separable,
         "records": records}


def grid(X, y, loss, Cs, time_limit, penalize_intercept=False):
    """Reads and gaps of a fit for each C, arrays."""
    reads, gaps = [], []
    for C in Cs:
        model = SmSVMClassifier(C=C, loss=loss, max_time=time_limit, penalize_intercept=penalize_intercept,
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
            for loss, intercept in product(losses, options.intercepts):
                reads, gaps = grid(X, y, loss, Cs, options.time_limit, intercept == "penalised")
                cliffs = int(is_cliff(reads, gaps).sum())
                found, tried = found + cliffs, tried + len(Cs)
                print(f"{kind} {seed} {X.shape[0]} x {X.shape[1]} {loss}, {intercept}: median {np.median(reads):.0f}, "
                      f"worst {reads.max():.0f} reads, gap {gaps.max():.1e}, {cliffs} cliffs", flush=True)
        print(f"{kind}: {found} cliffs in {tried} fits")


if __name__ == "__main__":
    main()
