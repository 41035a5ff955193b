"""A path of 100 penalties with l1, logistic loss, beside celer, skglm and glmnet: one thread, at equal objectives.

    python asv_benches/compare_l1_paths.py [--data FOLDER] [--sets genes topics sector] [--seeds 0 3] [--ratios 0.5 1]
                                           [--near 1e-3] [--turns 5] [--intercept] [--peers glmnet skglm celer]

``genes``: 72 rows of 7,129 columns of 40 factors, drawn; ``topics``: 5,000 drawn sparse rows of 20,000 columns;
others are NAME.npz of FOLDER (dense ``X`` and ``y``, or CSR rows in parts, as the race has them), the commonest class
against the rest, dense columns standardised. ``--ratios``: the l1 part, 1 for l1 alone; the path falls evenly in its
logarithms from the strength that holds every column at zero to a hundredth of it.

Ours is certified to ``--near``; the reference is ours to a hundredth of that. Each of the others runs at its largest
tolerance at which all 100 objectives are within ``--near`` of it. Processor time by turns, medians; weights of all
penalties included. celer has l1 alone, and no intercept. skglm's is the faster of ProxNewton and AndersonCD with warm
starts. glmnet is R's, as the command named by RSCRIPT runs it (default "Rscript"). None of them is required here.
"""

import argparse
import os
import subprocess
import tempfile
import warnings
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from cmargin import smsvm_path

TOLERANCES = 10.0**-np.arange(0.5, 12.5, 0.5)
LIMIT = 60.0                   # seconds of a run, after which a peer's smaller tolerances are not tried
SCRIPT = """
suppressMessages(library(glmnet))
f <- file("{given}", "rb")
n <- readBin(f, "integer", 5); i <- readBin(f, "integer", n[3]); p <- readBin(f, "integer", n[2] + 1)
x <- readBin(f, "double", n[3]); y <- readBin(f, "double", n[1]); l <- readBin(f, "double", n[4])
r <- readBin(f, "double", 2); close(f)
X <- sparseMatrix(i=i, p=p, x=x, dims=n[1:2], index1=FALSE)
if (n[3] == n[1] * n[2]) X <- as.matrix(X)
glmnet.control(fdev=0, devmax=1)
t <- proc.time()
g <- glmnet(X, y, family="binomial", alpha=r[1], lambda=l, standardize=FALSE, intercept=n[5] == 1, thresh=r[2],
            maxit=1e8)
t <- proc.time() - t
b <- as(g$beta, "CsparseMatrix")
f <- file("{found}", "wb")
writeBin(as.double(t[1] + t[2]), f); writeBin(length(b@x), f); writeBin(b@p, f); writeBin(b@i, f)
writeBin(b@x, f); writeBin(as.double(g$a0), f); close(f)
"""


# ---------------------------------------------------------------- rows

def genes(seed):
    rng = np.random.default_rng([seed, 1])
    factors = rng.standard_normal((72, 40))
    X = scale(factors @ rng.standard_normal((40, 7129)) + 3 * rng.standard_normal((72, 7129)))
    score = factors[:, :5] @ rng.standard_normal(5) + 0.5 * rng.standard_normal(72)
    return X, np.where(score > np.quantile(score, 0.6), 1.0, -1.0)


def topics(seed):
    rng = np.random.default_rng([seed, 2])
    words = np.minimum((20_000 * rng.random((5000, 60))**3).astype(int), 19_999)
    X = sp.csr_matrix((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, 60)), shape=(5000, 20_000))
    X.sum_duplicates()
    X = sp.csr_matrix(X.multiply(1 / sp.linalg.norm(X, axis=1)[:, None]))
    score = X @ (rng.standard_normal(20_000) * (rng.random(20_000) < 0.01))
    score = score / score.std() + 0.3 * rng.standard_normal(5000)
    return X, np.where(score > np.quantile(score, 0.7), 1.0, -1.0)


def stored(name, folder, seed):
    with np.load(Path(folder) / f"{name}.npz") as of:
        if "X" in of:
            X, y = scale(of["X"].astype(float)), of["y"]
        else:
            end = "_train" if "data_train" in of else ""
            X = sp.csr_matrix((of["data" + end].astype(float), of["indices" + end].astype(np.int32),
                               of["indptr" + end]), shape=tuple(of["shape" + end]))
            y = of["y" + end]
    classes, counts = np.unique(y, return_counts=True)
    return X, np.where(y == classes[np.argsort(-counts)[seed]], 1.0, -1.0)


def strengths(X, y, ratio, intercept):
    share = (y > 0).mean() if intercept else 0.5
    return np.geomspace(1, 0.01, 100) * np.abs(X.T @ ((y > 0) - share)).max() / len(y) / ratio


def objectives(X, y, found, lams, ratio):
    coefs, intercepts = found
    losses = np.logaddexp(0, -y * ((X @ coefs.T).T + intercepts[:, None])).mean(axis=1)
    return losses + lams * (ratio * np.abs(coefs).sum(axis=1) + (1 - ratio) / 2 * (coefs**2).sum(axis=1))


# ---------------------------------------------------------------- who runs

def timed(work):
    begin = process_time()
    found = work()
    return process_time() - begin, found


def ours(X, y, lams, ratio, intercept, tol):
    given = {"l1s": lams} if ratio == 1 else {"l2s": (1 - ratio) * lams, "l1_ratio": ratio}

    def run():
        path = smsvm_path(X, y, **given, loss="logistic", tol=tol, fit_intercept=intercept, n_jobs=1, max_passes=1e5)
        return path.coefs[:, 0], path.intercepts[:, 0]

    return timed(run)


def celer(X, y, lams, _ratio, _intercept, tol):
    from celer import celer_path
    X = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
    seconds, found = timed(lambda: celer_path(X, y, "logreg", alphas=lams * len(y), tol=tol, max_iter=50))
    return seconds, (found[1].T, np.zeros(len(lams)))


def skglm(X, y, lams, ratio, intercept, tol, solver="ProxNewton"):
    import skglm.solvers
    from skglm.datafits import Logistic
    from skglm.penalties import L1, L1_plus_L2
    from skglm.utils.jit_compilation import compiled_clone
    X = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
    penalty, loss = compiled_clone(L1(1.0) if ratio == 1 else L1_plus_L2(1.0, ratio)), compiled_clone(Logistic())
    solves = getattr(skglm.solvers, solver)(tol=tol, fit_intercept=intercept, max_iter=50)

    def run():
        w, product, found = np.zeros(X.shape[1] + intercept), np.zeros(len(y)), []
        for lam in lams:
            penalty.alpha, solves.p0 = lam, max(10, np.count_nonzero(w))
            w = solves.solve(X, y, loss, penalty, w.copy(), product, run_checks=False)[0]
            found.append(w)
        return np.array(found)

    seconds, found = timed(run)
    return seconds, (found[:, :-1], found[:, -1]) if intercept else (found, np.zeros(len(lams)))


def glmnet(X, y, lams, ratio, intercept, tol):
    X = sp.csc_matrix(X)
    with tempfile.TemporaryDirectory() as folder:
        given, found, script = (Path(folder) / name for name in ("given", "found", "script.R"))
        with open(given, "wb") as file:
            for part in (np.array([*X.shape, X.nnz, len(lams), intercept], np.int32), X.indices.astype(np.int32),
                         X.indptr.astype(np.int32), X.data, (y > 0).astype(float), lams, np.array([ratio, tol])):
                part.tofile(file)
        script.write_text(SCRIPT.format(given=given, found=found))
        subprocess.run([*os.environ.get("RSCRIPT", "Rscript").split(), str(script)], check=True, capture_output=True)
        with open(found, "rb") as file:
            seconds, n = np.fromfile(file, float, 1)[0], np.fromfile(file, np.int32, 1)[0]
            starts = np.fromfile(file, np.int32, len(lams) + 1)
            rows, values, intercepts = np.fromfile(file, np.int32, n), np.fromfile(file, float, n), np.fromfile(file)
    return seconds, (sp.csc_matrix((values, rows, starts), shape=(X.shape[1], len(lams))).T.toarray(), intercepts)


PEERS = {"glmnet": [glmnet], "celer": [celer],
         "skglm": [partial(skglm, solver="ProxNewton"), partial(skglm, solver="AndersonCD")]}


def largest_tolerance(run, given, wanted):
    """The largest tolerance at which a peer's objectives are all as ``wanted``, and its time; None: none is."""
    X, y, lams, ratio, _ = given
    for tol in TOLERANCES:
        seconds, found = run(*given, tol)
        if len(found[0]) == len(lams) and (objectives(X, y, found, lams, ratio) <= wanted).all():
            return seconds, tol
        if seconds > LIMIT:
            break
    return None


def compare(name, given, peers, options):
    X, y, lams, ratio, intercept = given
    reference = objectives(X, y, ours(*given, options.near / 100)[1], lams, ratio)
    reached = objectives(X, y, ours(*given, options.near)[1], lams, ratio) / reference - 1
    wanted, runs = reference * (1 + options.near), {"ours": partial(ours, *given, options.near)}
    for peer in peers:
        if peer == "celer" and (intercept or ratio < 1):
            continue
        for run in PEERS[peer]:
            run(*given, 0.1)                     # compiled, where it is
        found = [(*best, run) for run in PEERS[peer] if (best := largest_tolerance(run, given, wanted)) is not None]
        if found:
            _, tol, run = min(found, key=lambda one: one[0])
            runs[f"{peer} {tol:.0e}"] = partial(run, *given, tol)
    took = {who: [] for who in runs}
    for _ in range(options.turns):
        for who, run in runs.items():
            took[who].append(run()[0])
    own = np.median(took.pop("ours"))
    beside = [f"{who} {1e3 * np.median(each):.1f} ms, {np.median(each) / own:.1f}x" for who, each in took.items()]
    print(f"{name} {X.shape[0]:,} x {X.shape[1]:,}, l1 part {ratio:g}: ours {1e3 * own:.1f} ms, {reached.max():.0e} "
          "above; " + "; ".join(beside), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=".")
    parser.add_argument("--sets", nargs="+", default=["genes", "topics"])
    parser.add_argument("--seeds", nargs=2, type=int, default=[0, 3], help="the first, and the one after the last")
    parser.add_argument("--ratios", nargs="+", type=float, default=[0.5, 1.0])
    parser.add_argument("--near", type=float, default=1e-3)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--intercept", action="store_true")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    drawn = {"genes": genes, "topics": topics}
    with threadpool_limits(1):
        for name in options.sets:
            for seed in range(*options.seeds):
                X, y = drawn[name](seed) if name in drawn else stored(name, options.data, seed)
                for ratio in options.ratios:
                    given = X, y, strengths(X, y, ratio, options.intercept), ratio, options.intercept
                    compare(f"{name} {seed}", given, options.peers, options)


if __name__ == "__main__":
    main()
