"""The multinomial optimum with l1, elastic net or norms of columns beside saga and adelie, one thread each.

    OMP_NUM_THREADS=1 python asv_benches/compare_multinomial_l1.py [--data FOLDER] [--sets digits,blobs,wide,...]
                                                                   [--part 0.1] [--turns 3] [--near 1e-4] [--most 60]

``--part`` is l1 over the least l1 at which all weights are 0; of the elastic net l1 is half of l1 + l2. Ours is
certified to 1e-4, and the processor seconds of a peer are those of the first of its tolerances, or numbers of passes,
that comes within ``--near`` of our objective; "-" where none does in half of ``--most`` seconds, or it is not made for
the problem. adelie is not required, nor are the sets in FOLDER: mnist, its first 10,000 rows, and sector.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from cmargin import SLNDClassifier


def made(n, d, k, seed, told=10, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) if density == 1 else sp.random_array((n, d), density=density, format="csr", rng=rng)
    W = np.zeros((d, k))
    W[:told] = rng.standard_normal((told, k)) / np.sqrt(density)
    return X, (X @ W + rng.gumbel(size=(n, k))).argmax(axis=1)


def stored(folder, name, most):
    with np.load(Path(folder) / f"{name}.npz") as z:
        X = z["X_train"] if "X_train" in z else None
        if X is None:
            X = sp.csr_matrix((z["data_train"], z["indices_train"].astype(np.int32), z["indptr_train"]),
                              shape=tuple(z["shape_train"]))
        X, y = X[:most].astype(np.float64), np.unique(z["y_train"][:most], return_inverse=True)[1]
    return X / 255 if name == "mnist" else X, y


SETS = {
    "digits": lambda folder: (scale(load_digits(return_X_y=True)[0]), load_digits(return_X_y=True)[1]),
    "tall": lambda folder: made(20_000, 100, 5, 11),
    "blobs": lambda folder: made(2000, 200, 10, 12),
    "wide": lambda folder: made(300, 5000, 4, 13),
    "sparse": lambda folder: made(3000, 20_000, 20, 14, 40, 0.003),
    "mnist": lambda folder: stored(folder, "mnist", 10_000),
    "sector": lambda folder: stored(folder, "sector", None),
}


def objective(X, y, W, b, l2, l1, grouped):
    scores = X @ W.T + b
    sizes = np.sqrt((W**2).sum(axis=0)) if grouped else np.abs(W)
    return np.mean(logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]) + l2 / 2 * (W**2).sum() + l1 * sizes.sum()


def saga(X, y, l2, l1, grouped, trial):
    if grouped:
        return None
    model = LogisticRegression(solver="saga", C=1 / ((l1 + l2) * len(y)), l1_ratio=l1 / (l1 + l2), tol=1e-12,
                               max_iter=8 * 2**trial, random_state=0)
    return lambda: (model.fit(X, y).coef_, model.intercept_)


def adelie(X, y, l2, l1, grouped, trial):
    try:
        import adelie as ad
    except ImportError:
        return None
    if not grouped or sp.issparse(X) or trial > 6:
        return None
    k, columns = y.max() + 1, np.asfortranarray(X)
    glm = ad.glm.multinomial(np.eye(k)[y], dtype=np.float64)

    def fit():
        found = ad.grpnet(X=columns, glm=glm, alpha=l1 / (l1 + l2), penalty=np.ones(X.shape[1]), early_exit=False,
                          lmda_path=[(l1 + l2) / k], progress_bar=False, n_threads=1, tol=10.0**(-5 - trial),
                          irls_tol=max(1e-9, 10.0**(-4 - trial)))
        return found.betas.toarray()[-1].reshape(-1, k).T, found.intercepts[-1]

    return fit


def timed(fit):
    begin = time.process_time()
    return fit(), time.process_time() - begin


def seconds_of(peer, X, y, penalty, target, options):
    for trial in range(20):
        fit = peer(X, y, *penalty, trial)
        if fit is None:
            return np.nan
        (W, b), seconds = timed(fit)
        if objective(X, y, W, b, *penalty) <= target * (1 + options.near):
            return seconds
        if seconds > options.most / 2:
            break
    return np.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--data", None), ("--sets", "digits,tall,blobs,wide,sparse"), ("--part", 0.1),
                          ("--turns", 3), ("--near", 1e-4), ("--most", 60.0)):
        parser.add_argument(name, default=default, type=str if default is None else type(default))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("set, penalty: ours (gap; columns and weights in use), times as long saga / adelie")
    for name in options.sets.split(","):
        X, y = SETS[name](options.data)
        slope = np.asarray(X.T @ (np.eye(y.max() + 1)[y] - np.eye(y.max() + 1)[y].mean(axis=0))) / len(y)
        for kind in ("l1", "elastic net", "columns"):
            grouped = kind == "columns"
            l1 = options.part * (np.sqrt((slope**2).sum(axis=1)) if grouped else np.abs(slope)).max()
            l2 = l1 if kind == "elastic net" else 0.0
            model = SLNDClassifier(loss="multinomial", l2=l2, l1=l1, groups="classes" if grouped else None, n_jobs=1)
            ours = np.median([timed(lambda model=model, X=X, y=y: model.fit(X, y))[1] for _ in range(options.turns)])
            theirs = [seconds_of(peer, X, y, (l2, l1, grouped), model.objective_, options) for peer in (saga, adelie)]
            used = model.coef_ != 0
            told = " / ".join("-" if np.isnan(t) else f"{t / ours:.1f}" for t in theirs)
            print(f"{name} {X.shape[0]}x{X.shape[1]}, {y.max() + 1} classes, {kind}: {ours:.3f} s "
                  f"({model.duality_gap_:.0e}; {used.any(axis=0).sum()}, {used.sum()}), {told}", flush=True)


if __name__ == "__main__":
    main()
