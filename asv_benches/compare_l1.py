"""SmSVM with an l1 penalty: does a fit reach the minimum, in how many reads of the rows, and beside whom.

    python asv_benches/compare_l1.py [--part correlated drawn text wide] [--seeds 0 60] [--limit 6]
                                     [--loss logistic squared_hinge hinge]

``correlated``: hinge without l2 on 160 rows of 48 columns, mixed of 13 factors and noise, whose labels have none; the
minimum is a linear program's. ``drawn``: hinge on sets of ``compare_products.py`` at two penalties, as l2 and as l1, at
most 12,000 rows and ``--limit`` seconds a fit; to compare two revisions, run it on either. ``text``: smooth losses on
sparse sets of ``compare_products.py`` with more than 256 columns, and on five more, without an intercept: ours to a
certified 1e-3 as "auto" and by factors, and LIBLINEAR at its largest tolerance that gets as near; one thread,
``--limit`` seconds a fit. ``wide``: pure l1 on 100 to 1,200 rows with 0.3 to 10 times as many columns, dense
(independent, of factors, of heavy tails) or a twentieth not zero, C from 0.1 to 100: processor time of one thread and
reads to a certified 1e-3; with ``--beside`` LIBLINEAR too. To compare two revisions, run it on either.
Constants were chosen on seeds 0 to 59 of ``correlated``, 9000 to 9021 of ``drawn``, 9000 to 9235 and
13000 to 13119 of ``text``, 0 to 23 of ``wide``.
"""

import argparse
import warnings
from time import process_time

import numpy as np
import scipy.sparse as sp
from compare_products import KINDS, NEAR, TOLERANCES, drawn, seconds
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from cmargin import SmSVMClassifier
from cmargin.solvers.cost import L1_BLOCK_UP_TO_COLUMNS

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


def liblinear(loss, C, tol):
    if loss == "logistic":
        return LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", tol=tol, fit_intercept=False, max_iter=1000,
                                  random_state=0)
    return LinearSVC(C=C, penalty="l1", dual=False, tol=tol, fit_intercept=False, max_iter=3000, random_state=0)


def as_near(X, y, C, loss, wanted, limit):
    """Seconds of LIBLINEAR at the largest tolerance that reaches ``wanted``; inf: none within the limit."""
    sign = np.where(y, 1, -1)
    for tol in TOLERANCES:
        took, model = seconds(lambda tol=tol: liblinear(loss, C, tol).fit(X, y), 1)
        margins = sign * (X @ model.coef_[0])
        losses = np.logaddexp(0, -margins) if loss == "logistic" else np.maximum(0, 1 - margins) ** 2
        if losses.mean() + np.abs(model.coef_).sum() / (C * len(sign)) <= wanted:
            return min(took, seconds(lambda tol=tol: liblinear(loss, C, tol).fit(X, y), 2)[0])
        if took > limit:
            break
    return np.inf


def sparse_sets(options):
    for seed, C in TEXT:
        name, X, y, _ = drawn(seed)
        yield name, X, y, C
    for seed in range(*options.seeds):
        name, X, y, _ = drawn(seed)
        if sp.issparse(X) and X.shape[1] > L1_BLOCK_UP_TO_COLUMNS:
            for C in (1.0, 30.0):
                yield f"{seed} {name}", X, y, C


def text(options):
    ratios = {loss: [] for loss in options.loss if loss != "hinge"}
    for name, X, y, C in sparse_sets(options):
        for loss in ratios:
            settings = dict(loss=loss, l2=0.0, l1=1 / (C * len(y)), tol=NEAR, fit_intercept=False, n_jobs=1,
                            max_time=options.limit)
            own, block = SmSVMClassifier(**settings), SmSVMClassifier(**settings, linear_solver="cholesky")
            took, model = seconds(lambda own=own, X=X, y=y: own.fit(X, y), 3)
            by_block, other = seconds(lambda block=block, X=X, y=y: block.fit(X, y), 1)
            best = max(one.objective_[0] * (1 - one.duality_gap_[0]) for one in (model, other))
            theirs = as_near(X, y, C, loss, best * (1 + NEAR), options.limit)
            ratios[loss].append((took / by_block, took / theirs, model.duality_gap_[0] <= NEAR))
            print(f"{loss} {name} C={C:g}: {1e3 * took:.1f} ms, {(model.coef_ != 0).sum()} columns in use, "
                  f"{model.n_passes_:.0f} reads, gap {model.duality_gap_[0]:.0e}; by factors {1e3 * by_block:.1f}, gap "
                  f"{other.duality_gap_[0]:.0e}; LIBLINEAR {1e3 * theirs:.1f} ms", flush=True)
    for loss, found in ratios.items():
        block, theirs, certified = np.array(found).T
        print(f"{loss}: {certified.sum():.0f} of {len(found)} certified; of the time by factors: geometric mean "
              f"{np.exp(np.log(block).mean()):.2f}, worst {block.max():.2f}; of LIBLINEAR's, where it got there: "
              f"median {np.median(theirs[theirs > 0]):.2f}, worst {theirs.max():.2f}, slower in "
              f"{(theirs > 1).sum()} of {len(theirs)}")


def wide_set(seed):
    """(name, X, y, C)"""
    rng = np.random.default_rng([seed, 5])
    kind, n = rng.choice(["plane", "factors", "heavy", "sparse"]), int(10 ** rng.uniform(2, 3.08))
    m = int(min(n * 10 ** rng.uniform(-0.5, 1), 5_000_000 // n))
    if kind == "sparse":
        X = sp.random(n, m, 0.05, "csr", rng=rng, data_rvs=rng.standard_normal)
    else:
        X = KINDS[kind](rng, n, m)
    score = X @ (rng.standard_normal(m) * (rng.random(m) < 10 ** rng.uniform(-2, 0)))
    score = score / (score.std() + 1e-12) + rng.choice([0, 0.1, 0.5, 2]) * rng.standard_normal(n)
    return f"{kind} {n:,} x {m:,}", X, score > np.quantile(score, rng.choice([0.5, 0.8])), 10 ** rng.uniform(-1, 2)


def processor_time(fit):
    start = process_time()
    model = fit()
    return process_time() - start, model


def wide(options):
    found = {loss: [] for loss in options.loss}
    for seed in range(*options.seeds):
        name, X, y, C = wide_set(seed)
        for loss in options.loss:
            settings = dict(loss=loss, l2=0.0, l1=1 / (C * len(y)), tol=NEAR, fit_intercept=False, n_jobs=1,
                            max_passes=1e4, max_time=options.limit)
            took, model = processor_time(lambda settings=settings, X=X, y=y: SmSVMClassifier(**settings).fit(X, y))
            gap = model.duality_gap_[0]
            line = (f"{loss} {seed} {name} C={C:.2g}: {took:.3f} s, {model.n_passes_:.0f} reads, gap {gap:.1e}, "
                    f"objective {model.objective_[0]:.8g}, {(model.coef_ != 0).sum()} columns in use")
            theirs = np.nan
            if options.beside and loss != "hinge":
                wanted = model.objective_[0] * (1 + NEAR) * (1 - gap if gap <= NEAR else 1)
                theirs = as_near(X, y, C, loss, wanted, options.limit)
                line += f"; LIBLINEAR {theirs:.3f} s"
            print(line, flush=True)
            found[loss].append((took, model.n_passes_, gap <= NEAR, took / theirs))
    for loss, rows in found.items():
        took, reads, certified, ratio = np.array(rows).T
        print(f"{loss}: {certified.sum():.0f} of {len(rows)} certified; seconds: {took.sum():.1f}, geometric mean "
              f"{np.exp(np.log(took).mean()):.3f}, most {took.max():.2f}; reads: median {np.median(reads):.0f}, most "
              f"{reads.max():.0f}" + (f"; of LIBLINEAR's time: median {np.median(ratio):.2f}, most {ratio.max():.2f}, "
                                      f"slower in {(ratio > 1).sum()}" if np.isfinite(ratio).any() else ""))


PARTS = {"correlated": correlated, "drawn": drawn_sets, "text": text, "wide": wide}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=["correlated", "text"])
    parser.add_argument("--seeds", nargs=2, type=int, default=[0, 60], help="the first, and the one after the last")
    parser.add_argument("--loss", nargs="+", choices=["logistic", "squared_hinge", "hinge"], default=["logistic"])
    parser.add_argument("--limit", type=float, default=6.0, help="seconds of a fit of ``drawn``, ``text``, ``wide``")
    parser.add_argument("--beside", action="store_true", help="``wide``: LIBLINEAR too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for part in options.part:
            PARTS[part](options)


if __name__ == "__main__":
    main()
