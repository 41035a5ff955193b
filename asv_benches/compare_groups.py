"""Group lasso by logistic loss, beside skglm: processor time of one thread at an equal objective.

    python asv_benches/compare_groups.py --data FOLDER [--part tall wide text] [--seeds 0 20] [--near 1e-4] [--turns 7]

``tall``: 50,000 rows of 60 columns in groups of 5, drawn. ``wide``: 72 rows of 7,129 columns of 30 factors in groups of
10, drawn, and ``colon`` and ``a9a`` of FOLDER in groups of 10 and 5. ``text``: 1,000 to 3,000 drawn sparse rows of
2,000 to 8,000 columns in groups of 10; skglm has them dense, as its logistic loss of groups takes no sparse rows. The
l1 is 0.3, 0.1 and 0.03 of that which holds every group at zero; a group of k columns weighs sqrt(k).

Ours is fitted to a certified ``--near``; skglm's GroupProxNewton and GroupBCD at their largest tolerance whose
objective is within ``--near`` of our bound. No intercept. By turns, medians; the ratio is to the faster of the two,
which are compiled before. skglm is no requirement of this package.
"""

import argparse
import warnings
from functools import partial
from time import process_time

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from cmargin import SmSVMClassifier

TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
PARTS_OF_LARGEST = (0.3, 0.1, 0.03)


def labels_of(rng, score, noise=0.5):
    score = score / (score.std() + 1e-12) + noise * rng.standard_normal(len(score))
    return np.where(score > np.median(score), 1.0, -1.0)


def group_weights(rng, n_groups, size, share):
    return np.repeat(rng.random(n_groups) < share, size) * rng.standard_normal(n_groups * size)


def tall(seed, _):
    rng = np.random.default_rng([seed, 1])
    X = rng.standard_normal((50_000, 60)) + 0.5 * rng.standard_normal((50_000, 12)).repeat(5, axis=1)
    yield "tall 50,000 x 60", X, labels_of(rng, X @ group_weights(rng, 12, 5, 0.4)), 5


def wide(seed, folder):
    rng = np.random.default_rng([seed, 2])
    X = rng.standard_normal((72, 30)) @ rng.standard_normal((30, 7129)) * 0.3 + rng.standard_normal((72, 7129))
    yield "wide 72 x 7,129", X, labels_of(rng, X[:, :7120] @ group_weights(rng, 712, 10, 0.02)), 10
    if folder is not None and seed == 0:
        for name, size in (("colon", 10), ("a9a", 5)):
            yield name, *stored(folder, name), size


def stored(folder, name):
    import sys

    sys.path.insert(0, folder)
    from load import load

    X, y = load(name)[:2]
    X = np.asarray(X.todense() if sp.issparse(X) else X, float)
    X = X - X.mean(axis=0)
    X /= np.maximum(X.std(axis=0), 1e-12)
    return X, np.where(y == np.unique(y)[0], -1.0, 1.0)


def text(seed, _):
    rng = np.random.default_rng([seed, 3])
    n, m = int(rng.integers(1000, 3001)), 10 * int(rng.integers(200, 801))
    columns = np.minimum((m * rng.random(60 * n) ** 4).astype(int), m - 1)
    X = sp.csr_matrix((rng.random(60 * n) + 0.5, (np.repeat(np.arange(n), 60), columns)), (n, m))
    X.sum_duplicates()
    yield f"text {n:,} x {m:,}", X, labels_of(rng, X @ group_weights(rng, m // 10, 10, 0.3)), 10


def objective(X, y, w, groups, l1):
    norms = np.sqrt(np.bincount(groups, w * w))
    return np.logaddexp(0, -y * (X @ w)).mean() + l1 * np.sqrt(np.bincount(groups)) @ norms


def skglm_fit(X, y, groups, l1, tol, solver):
    from skglm.datafits.group import LogisticGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD, GroupProxNewton

    starts = np.append(0, np.cumsum(np.bincount(groups))).astype(np.int32)
    indices = np.argsort(groups, kind="stable").astype(np.int32)
    penalty = WeightedGroupL2(l1, np.sqrt(np.diff(starts).astype(float)), starts, indices)
    datafit = LogisticGroup(starts, indices)
    kind = {"GroupProxNewton": GroupProxNewton, "GroupBCD": GroupBCD}[solver]
    return kind(fit_intercept=False, tol=tol, max_iter=1000).solve(X, y, datafit, penalty)[0]


def took(fit):
    begin = process_time()
    found = fit()
    return process_time() - begin, found


def of_set(name, X, y, size, options, found):
    groups = np.arange(X.shape[1]) // size
    at_zero = np.sqrt(np.bincount(groups, (X.T @ y / (2 * len(y))) ** 2) / np.bincount(groups)).max()
    dense = np.asfortranarray(X.toarray() if sp.issparse(X) else X)
    for part in PARTS_OF_LARGEST:
        l1 = part * at_zero
        ours = SmSVMClassifier(0.0, l1=l1, loss="logistic", groups=groups, fit_intercept=False, n_jobs=1,
                               tol=options.near, max_passes=300)
        own, model = took(lambda ours=ours: ours.fit(X, y))
        wanted = model.objective_[0] * (1 - model.duality_gap_[0]) * (1 + options.near)
        fits = {"ours": partial(ours.fit, X, y)}
        for solver in ("GroupProxNewton", "GroupBCD"):
            for tol in TOLERANCES:
                fit = partial(skglm_fit, dense, y, groups, l1, tol, solver)
                seconds, w = took(fit)
                if objective(X, y, w, groups, l1) <= wanted:
                    fits[solver] = fit
                    break
                if seconds > options.limit:
                    break
        times = {solver: [] for solver in fits}
        for _ in range(options.turns if own < options.limit / 4 else 1):
            for solver, fit in fits.items():
                times[solver].append(took(fit)[0])
        medians = {solver: np.median(each) for solver, each in times.items()}
        theirs = min((each for solver, each in medians.items() if solver != "ours"), default=np.inf)
        used = len(np.unique(groups[model.coef_[0] != 0]))
        print(f"{name} l1={part:g} of the largest: {used} of {groups[-1] + 1} groups, {model.n_passes_:.0f} reads, gap "
              f"{model.duality_gap_[0]:.0e}; " + ", ".join(f"{k} {1e3 * t:.1f} ms" for k, t in medians.items())
              + f"; {theirs / medians['ours']:.1f} times", flush=True)
        found.append(theirs / medians["ours"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="FOLDER", help="the stored sets; without it drawn ones alone")
    parser.add_argument("--part", nargs="+", choices=("tall", "wide", "text"), default=["tall", "wide", "text"])
    parser.add_argument("--seeds", nargs=2, type=int, default=[0, 3], help="the first, and the one after the last")
    parser.add_argument("--near", type=float, default=1e-4, help="how near the minimum both come")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of a fit of theirs that ends the trials")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    for solver in ("GroupProxNewton", "GroupBCD"):                         # compiles it
        X, y = np.asfortranarray(rng.standard_normal((9, 4))), np.array([1.0, -1] * 4 + [1])
        skglm_fit(X, y, np.arange(4) // 2, 0.01, 1e-2, solver)
    with threadpool_limits(1):
        for part in options.part:
            found = []
            for seed in range(*options.seeds):
                for name, X, y, size in {"tall": tall, "wide": wide, "text": text}[part](seed, options.data):
                    of_set(name, X, y, size, options, found)
            print(f"{part}: median {np.median(found):.1f} times, least {min(found):.1f}")


if __name__ == "__main__":
    main()
