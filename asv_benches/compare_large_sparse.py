"""Counts of words in 300,000 documents and 2^20 columns: reads, and seconds of one thread and of two, beside LinearSVC.

    python asv_benches/compare_large_sparse.py [--rows 300000] [--seeds 11 12] [--C 0.01 1] [--threads 1 2]
        [--losses hinge squared_hinge logistic] [--linear-svc 1000]

Columns are Zipf's (exponent 1.1), 18 words a document, a plane through three tenths of the words, 15 % of the labels
wrong, a penalised intercept, certified to 1e-4. Wall time: run it on a quiet machine. ``--linear-svc``: its iterations
at C = 1, a few minutes; what it prints besides is how far its objective is above the bound of ours.
"""

import argparse
import warnings
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from cmargin import SmSVMClassifier

COLUMNS, WORDS, EXPONENT, USED, WRONG = 1 << 20, 18, 1.1, 0.3, 0.15


def documents(seed, n):
    rng = np.random.default_rng(seed)
    parts = np.cumsum(np.arange(1.0, COLUMNS + 1)**-EXPONENT)
    words = np.searchsorted(parts, parts[-1] * rng.random(n * WORDS)).clip(0, COLUMNS - 1)
    X = sp.csr_matrix((np.ones(n * WORDS), words, np.arange(0, n * WORDS + 1, WORDS)), shape=(n, COLUMNS))
    X.sum_duplicates()
    score = X @ (rng.standard_normal(COLUMNS) * (rng.random(COLUMNS) < USED))
    return X, (score > np.median(score)) != (rng.random(n) < WRONG)


def excess_of_liblinear(X, y, loss, iterations, bound):
    """Seconds of LinearSVC at C = 1, and its objective over the ``bound`` of the least, less 1."""
    begin = perf_counter()
    svm = LinearSVC(C=1.0, loss=loss, max_iter=iterations, tol=1e-3, random_state=0).fit(X, y)
    seconds, slack = perf_counter() - begin, np.maximum(0, 1 - np.where(y, 1, -1) * svm.decision_function(X))
    size = svm.coef_.ravel() @ svm.coef_.ravel() + svm.intercept_[0]**2
    return seconds, (size / 2 + (slack if loss == "hinge" else slack**2).sum()) / X.shape[0] / bound - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--seeds", nargs="+", type=int, default=[11, 12])
    parser.add_argument("--C", nargs="+", type=float, default=[0.01, 1.0])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--losses", nargs="+", default=["hinge", "squared_hinge", "logistic"])
    parser.add_argument("--linear-svc", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for seed in options.seeds:
        X, y = documents(seed, options.rows)
        for loss in options.losses:
            for C in options.C:
                seconds = []
                for threads in options.threads:
                    begin = perf_counter()
                    model = SmSVMClassifier(C=C, loss=loss, penalize_intercept=True, n_jobs=threads,
                                            random_state=0).fit(X, y)
                    seconds.append(f"{perf_counter() - begin:.2f} s by {threads}")
                gap = model.duality_gap_[0]
                print(f"seed {seed}, {loss}, C {C:g}: {model.n_passes_:.0f} reads, gap {gap:.0e}, "
                      f"{', '.join(seconds)}", flush=True)
                if options.linear_svc and C == 1 and loss != "logistic":
                    took, excess = excess_of_liblinear(X, y, loss, options.linear_svc,
                                                       model.objective_[0] * (1 - gap))
                    print(f"    LinearSVC, at most {options.linear_svc} iterations: {took:.1f} s, {excess:.0e} above")


if __name__ == "__main__":
    main()
