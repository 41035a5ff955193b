"""SmSVM and margin pursuit: passes to a certificate, evaluations beside the machine's limits, memory, l1, L-BFGS-B.

    python asv_benches/compare_smsvm.py --data FOLDER [--quick]
                                        [--part passes limits memory size l1 sparse dense pursuit]

FOLDER holds covtype.npz, mnist.npz, sector.npz and tinyimagenet.npz; a part whose set is missing says so. ``--quick``
takes scikit-learn's bundled sets and drawn ones in a few seconds, to see that it runs. Passes, reads, evaluations,
zeros and memory hold on a busy machine too, seconds do not. Races against others: `python -m cmargin race`.
"""

import argparse
import os
import warnings
from functools import partial
from time import perf_counter
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from benchmarks.common import noisy_plane
from benchmarks.smsvm import SHAPES, Pass, make_text
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from cmargin import MarginPursuitClassifier, SmSVMClassifier
from cmargin.datasets import DataNotFound, load
from measure.limits import best_of
from measure.report import exponent, heading, peak_beyond, table
from race.data import prepare

TOL = 1e-4                     # certified gap of every SmSVM fit
CURVED = {"all": 1.0, "half": 0.5, "one in twenty": 0.05, "one in a hundred": 0.01}
EPOCHS = 100                  # of LinearSVC on dense rows
ARRIVED = 1e-8                 # pursuit: of the gradient norm at w = 0
EVALUATIONS = 500              # of L-BFGS-B, about; [0, 1] columns at l2 = 1e-6 are at 1.7e-7 only after 2,000


class Plan(NamedTuple):
    """The sets and sizes of every part."""

    passes: str                # set, class 2 of which is looked at closely
    positive: int              # class 2, as labelled
    limits: tuple              # (n, m, dtype)
    memory: str                # set, or "drawn",
    penalties: tuple           # and l2 of its fits
    sizes: tuple               # rows
    l1: tuple                  # sets
    sparse: tuple              # sets, or (n, m, entries a row) of drawn text
    dense: tuple               # (set, rows, class) or (n, m, classes, noise) of drawn clouds
    longest: float             # seconds of one fit to them
    pursuit: str


FULL = Plan("covtype", 1, (SHAPES["tall"], SHAPES["square"]), "covtype", (1e-3, 1e-5),
            (10_000, 30_000, 100_000, 300_000, 1_000_000), ("mnist", "sector"),
            ((20_000, 500, 40), (20_000, 1_000, 50), (20_000, 3_900, 60), (20_000, 50_000, 70), "sector"),
            ((5_000, 200, 100, 2.7), (1_560, 617, 26, 3.0), (20_000, 400, 50, 2.7), ("mnist", 20_000, 5),
             ("tinyimagenet", 5_000, 3), (8_000, 300, 2, 30.0)), 5.0, "covtype")
QUICK = Plan("digits", 1, ((20_000, 54, np.float64), (5_000, 256, np.float32)), "drawn", (1e-3,),
             (1_000, 3_000, 9_000), ("digits", "drawn"), ((1_500, 300, 30),), ((600, 150, 10, 3.0), ("digits", 900, 3)),
             0.3, "breast_cancer")


def fit(X, y, threads, **parameters):
    return SmSVMClassifier(tol=TOL, n_jobs=threads, **{"random_state": 0, **parameters}).fit(X, y)


def timed(work, *arguments, **parameters):
    """(what it returns, seconds)"""
    start = perf_counter()
    result = work(*arguments, **parameters)
    return result, perf_counter() - start


# ------------------------------------------------------------ passes


def passes(plan, threads):
    data = load(plan.passes)
    X, rows = prepare(data.X, intercept=False), []
    classes = np.unique(data.y)
    runs = [(plan.positive, l2, (0, 1, 2)) for l2 in (1e-3, 1e-5, 1e-7)] + [(c, 1e-5, (0, 1)) for c in classes]
    for c, l2, seeds in runs:
        fits = [fit(X, np.where(data.y == c, 1, -1), threads, l2=l2, random_state=seed) for seed in seeds]
        rows.append([int(np.searchsorted(classes, c)) + 1, l2, ", ".join(f"{model.n_passes_:.2f}" for model in fits),
                     f"{max(model.duality_gap_[0] for model in fits):.1e}"])
    return table(f"Passes to a certified gap of {TOL:g}: {plan.passes}, {len(X)} x {X.shape[1]}, standardised, a class "
                 "against the rest, seeds 0, 1, ...", ("class", "l2", "passes", "largest gap"), rows)


# ------------------------------------------------------------ limits


def limits(plan, threads):
    rows = []
    for n, m, dtype in plan.limits:
        bench = Pass()
        bench.threads = threads
        bench.start(*noisy_plane(n, m, dtype))
        for words, curved in CURVED.items():
            evaluation = bench.against_the_limits(curved)
            limit = max(evaluation.memory, evaluation.dsyrk)
            milliseconds = (f"{1e3 * seconds:.2f}" for seconds in (evaluation.seconds, evaluation.dearest,
                                                                   evaluation.memory, evaluation.dsyrk))
            rows.append([f"{n} x {m} {np.dtype(dtype)}", words, evaluation.curved, *milliseconds,
                         "dsyrk" if evaluation.dsyrk > evaluation.memory else "memory", evaluation.seconds / limit,
                         evaluation.share_of_the_limit, limit / evaluation.dearest])
    return table(f"An evaluation over all rows on {threads} threads, beside reading X and dsyrk of the curved rows",
                 ("rows", "curved", "share", "evaluation, ms", "dearest, ms", "memory, ms", "dsyrk, ms", "binding",
                  "evaluation / limit", "limit / evaluation", "limit / dearest"), rows)


# ------------------------------------------------------------ memory


def class_2(plan):
    """Rows, standardised, and labels of class 2 against the rest."""
    if plan.memory == "drawn":
        return noisy_plane(200_000, 10)
    data = load(plan.memory)
    return prepare(data.X, intercept=False), np.where(data.y == plan.positive, 1, -1)


def before_the_fit(plan):
    X, y = class_2(plan)
    one_fit(1e-3, 2, X[:2000].copy(), np.where(np.arange(2000) % 2, 1, -1))      # every library loaded
    return X, y


def one_fit(l2, threads, X, y):
    fit(X, y, threads, l2=l2)


def memory(plan, threads):
    n, m = class_2(plan)[0].shape
    rows = []
    for l2 in plan.penalties:
        peak = peak_beyond(partial(before_the_fit, plan), partial(one_fit, l2, threads))
        rows.append([l2, f"{peak / 1e6:.1f}", f"{peak / (8 * n):.1f}", m])
    return table(f"Peak memory of a fit beyond X, a fresh process each: {plan.memory}, {n} x {m} float64, class 2",
                 ("l2", "MB", "vectors of N doubles", "X itself"), rows)


# ------------------------------------------------------------ size


def size(plan, threads, m=54, l2=1e-4):
    X, y = noisy_plane(plan.sizes[-1], m)
    rows, seconds = [], []
    for n in plan.sizes:
        times = 3 if n > 100_000 else 9
        model = fit(X[:n], y[:n], threads, l2=l2)
        several, _ = best_of(partial(fit, X[:n], y[:n], threads, l2=l2), times)
        row = [n, f"{model.n_passes_:.2f}", f"{1e3 * several:.1f}", "-", "-"]
        if n in plan.sizes[-2:]:
            single, _ = best_of(partial(fit, X[:n], y[:n], 1, l2=l2), times)
            row[3:] = [f"{1e3 * single:.1f}", f"{single / several:.2f}"]
        rows.append(row)
        seconds.append(several)
    return table(f"Growth: {m} Gaussian columns, l2 = {l2:g}, to a certified {TOL:g}, best of 3 or 9 fits; they grow "
                 f"as N^{exponent(plan.sizes, seconds):.2f}",
                 ("N", "passes", f"{threads} threads, ms", "1 thread, ms", "gain"), rows)


# ------------------------------------------------------------ l1


def drawn_words(n=400, m=3000, n_classes=6, seed=3):
    """CSR rows of 20 words, five of them from the fifty of the class: a small stand-in for text."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    words = np.hstack([50 * y[:, None] + rng.integers(50, size=(n, 5)), rng.integers(m, size=(n, 15))])
    X = sp.csr_matrix((np.ones(words.size, np.float32), (np.repeat(np.arange(n), 20), words.ravel())), (n, m))
    return X / np.float32(np.sqrt(20)), y


def rows_for_l1(name):
    """Pixels from 0 to 1 in float32, words as stored."""
    if name == "drawn":
        return drawn_words()
    data = load(name)
    X = data.X if sp.issparse(data.X) else np.asarray(data.X, np.float32) / np.float32(data.X.max())
    return X, data.y


def l1(plan, threads, penalty=1e-4):
    sets = {name: rows_for_l1(name) for name in plan.l1}
    rows = []
    for name, (X, y) in sets.items():
        model, seconds = timed(fit, X, y, threads, l2=penalty, l1=penalty)
        certified = f"{np.count_nonzero(model.duality_gap_ <= TOL)} of {len(model.duality_gap_)}"
        rows.append([name, "SmSVMClassifier", "hinge, l1 and l2", f"{seconds:.2f}", certified, zeros(model)])
        if sp.issparse(X):
            svc = LinearSVC(penalty="l1", loss="squared_hinge", dual=False, C=1 / (penalty * len(y)), random_state=0)
            _, seconds = timed(svc.fit, X, y)
            ended = "its tolerance" if svc.n_iter_ < svc.max_iter else f"stopped after {svc.max_iter} passes"
            rows.append([name, "LinearSVC", "squared hinge, l1", f"{seconds:.2f}", ended, zeros(svc)])
    return table(f"One-vs-rest, l1 = l2 = {penalty:g}, SmSVM to a certified {TOL:g}; LinearSVC has l1 only with the "
                 "squared hinge", ("set", "solver", "objective", "seconds", "classes certified", "zeros, %"), rows)


def zeros(model):
    """Coefficients that are exactly 0, in percent."""
    return f"{100 * np.mean(model.coef_ == 0):.2f}"


# ------------------------------------------------------------ sparse rows without l1


def hinge_objectives(X, y, W, l2):
    """(n_problems,) l2/2 |w|^2 + mean hinge, one-vs-rest; W (n_problems, m)."""
    classes = np.unique(y)
    positives = classes[1:] if len(classes) == 2 else classes
    sign = np.where(y[:, None] == positives, 1.0, -1.0)
    return l2 / 2 * np.einsum("cj,cj->c", W, W) + np.maximum(0, 1 - sign * (X @ W.T)).mean(axis=0)


def sparse(plan, threads):
    rows = []
    for kind in plan.sparse:
        data = load(kind) if isinstance(kind, str) else None
        X, y = (data.X.astype(float), data.y) if data else make_text(*kind)
        for C in (0.1, 1.0, 10.0) if data else (0.1, 1.0, 10.0, 100.0):
            rows.append([kind if data else " x ".join(map(str, kind)), C, *on_sparse(X, y, C, bool(data))])
    return table(f"CSR rows without l1 or intercept, one thread: to a certified {TOL:g} by Newton's method on all "
                 "columns, and as it comes; LinearSVC (hinge) at tol=0.01, and its largest distance from our objective",
                 ("rows x columns, entries", "C", "all columns, ms", "auto, ms", "reads a class", "LinearSVC, ms",
                  "distance"), rows)


def on_sparse(X, y, C, many):
    l2, plain = 1 / (C * len(y)), {"fit_intercept": False}
    slow = "-"
    if not many and X.shape[1] < 4_000:
        slow = f"{1e3 * timed(fit, X, y, 1, l2=l2, linear_solver='cholesky', **plain)[1]:.0f}"
    ours, seconds = timed(fit, X, y, 1, l2=l2, **plain)
    svc, theirs = timed(LinearSVC(loss="hinge", C=C, tol=0.01, random_state=0, **plain).fit, X, y)
    distance = (hinge_objectives(X, y, svc.coef_, l2) / ours.objective_ - 1).max()
    reads = ours.n_passes_per_class_.mean()
    return slow, f"{1e3 * seconds:.0f}", f"{reads:.1f}", f"{1e3 * theirs:.0f}", f"{distance:.0e}"


# ------------------------------------------------------------ dense rows by their dual


def clouds(n, m, n_classes, noise, seed=23):
    """Gaussian clouds around as many centres; float32."""
    rng = np.random.default_rng(seed)
    centres, y = rng.standard_normal((n_classes, m)), rng.integers(0, n_classes, n)
    return (centres[y] + noise * rng.standard_normal((n, m))).astype(np.float32), y


def dense(plan, threads):
    rows = []
    for name, *kind in plan.dense:
        if isinstance(name, str):
            data, c = load(name), kind[1]
            order = np.random.default_rng(23).permutation(len(data.y))[:kind[0]]
            X, labels = np.ascontiguousarray(prepare(data.X, intercept=False)[order], np.float32), data.y[order]
        else:
            (X, labels), c = clouds(name, *kind), 0
        y = np.where(labels == np.unique(labels)[c], 1.0, -1.0)
        title = f"{name if isinstance(name, str) else 'clouds'}, {X.shape[0]} x {X.shape[1]}"
        rows += [[title, l2, *on_dense(X, y, l2, plan.longest)] for l2 in (1e-2, 1e-4, 1e-6)]
    return table(f"Dense float32 rows, a class against the rest, one thread, no intercept, {plan.longest:g} s at most: "
                 f"seconds to a certified {TOL:g} (or the gap) by Newton's method, by the dual of the same rows as "
                 "CSR and as they are, and as it comes; LinearSVC (hinge), tol=0.01, 100 epochs, and its distance",
                 ("rows", "l2", "Newton", "dual, CSR", "dual, dense", "auto", "LinearSVC", "distance"), rows)


def on_dense(X, y, l2, longest):
    words, best, plain = [], np.inf, {"l2": l2, "fit_intercept": False}
    by_newton = {"linear_solver": "woodbury" if X.shape[1] > 1.2 * len(X) else "cholesky"}
    for rows, given in ((X, by_newton), (sp.csr_matrix(X), {"linear_solver": "dual"}), (X, {"linear_solver": "dual"}),
                        (X, {})):
        runs = [timed(fit, rows, y, 1, max_time=longest, max_passes=1e6, **plain, **given)]
        if runs[0][1] < 0.5:
            runs += [timed(fit, rows, y, 1, max_time=longest, max_passes=1e6, **plain, **given) for _ in range(2)]
        model, seconds = min(runs, key=lambda run: run[1])
        best, gap = min(best, model.objective_[0]), model.duality_gap_[0]
        words.append(f"{seconds:.3f}" if gap <= TOL else f"({gap:.0e})")
    svc = LinearSVC(loss="hinge", C=1 / (l2 * len(y)), tol=0.01, max_iter=EPOCHS, random_state=0, fit_intercept=False)
    theirs = timed(svc.fit, X, y)[1]
    distance = (hinge_objectives(X, (y > 0).astype(int), svc.coef_, l2) / best - 1).max()
    return *words, f"{theirs:.3f}", f"{distance:.0e}"


# ------------------------------------------------------------ margin pursuit


class Arrived(Exception):
    """The gradient is small enough."""


class PursuitInNumPy:
    """Q of doc/methods/margin_pursuit.md at level and scale 1, and its gradient; v holds w and then b."""

    def __init__(self, X, y, l2):
        self.X, self.y, self.l2 = X, y, l2
        self.norms = []

    def __call__(self, v):
        w, n = v[:-1], len(self.y)
        u = 1 - self.y * (self.X @ w + v[-1])
        c = np.clip(u, -np.sqrt(2), np.sqrt(2))                  # rho is straight beyond (3), psi its slope (4)
        square = c * c                                           # c**3 and c**4 would be calls of pow, ten times slower
        straight = np.abs(u - c).sum() * (2 * np.sqrt(2) / 3)
        value = (square.sum() / 2 - square @ square / 24 + straight) / n + self.l2 / 2 * w @ w
        force = self.y * c * (1 - square / 6) / -n
        gradient = np.append(force @ self.X + self.l2 * w, force.sum())
        self.norms.append(np.linalg.norm(gradient))
        if self.norms[-1] <= ARRIVED * self.norms[0]:
            raise Arrived
        return value, gradient

    def minimise(self):
        """(seconds, True if it got there)"""
        start = perf_counter()
        try:
            minimize(self, np.zeros(self.X.shape[1] + 1), jac=True, method="L-BFGS-B",
                     options={"ftol": 0.0, "gtol": 0.0, "maxiter": EVALUATIONS, "maxfun": EVALUATIONS})
        except Arrived:
            return perf_counter() - start, True
        return perf_counter() - start, False                     # its line search gave up, or EVALUATIONS were made


def newton(X, y, l2, threads):
    return MarginPursuitClassifier(solver="newton", l2=l2, scale=1.0, tol=ARRIVED, trace=False,
                                   n_jobs=threads).fit(X, y)


def pursuit(plan, threads):
    data = load(plan.pursuit)
    y, rows = np.where(data.y == plan.positive, 1.0, -1.0), []
    between = data.X - data.X.min(axis=0).astype(float)
    between /= np.maximum(between.max(axis=0), np.finfo(float).tiny)
    for words, X in (("standardised", prepare(data.X, intercept=False)), ("[0, 1]", between)):
        for l2 in (1e-6, 1e-3):
            newton(X, y, l2, threads)                            # pages and threads are there the second time
            model, ours = timed(newton, X, y, l2, threads)
            peer = PursuitInNumPy(X, y, l2)
            theirs, arrived = peer.minimise()
            rows.append([words, l2, f"{model.n_passes_:.1f}", f"{ours:.3g}", f"{model.gradient_norm_[0]:.1e}",
                         len(peer.norms), f"{theirs:.3g}", f"{min(peer.norms) / peer.norms[0]:.1e}",
                         f"{'' if arrived else 'above '}{theirs / ours:.3g}"])
    return table(f"Margin pursuit to {ARRIVED:g} of the first gradient norm: {plan.pursuit}, {len(y)} x {X.shape[1]}, "
                 "class 2, level and scale 1; SciPy's L-BFGS-B on the same objective in NumPy",
                 ("columns", "l2", "Newton, reads", "seconds", "reached", "L-BFGS-B, evaluations", "seconds", "reached",
                  "ratio of seconds"), rows)


PARTS = {part.__name__: part for part in (passes, limits, memory, size, l1, sparse, dense, pursuit)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="FOLDER", help="by default the folder that CMARGIN_DATA names")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.data is not None:
        os.environ["CMARGIN_DATA"] = options.data                # for cmargin.datasets, here and in fresh processes
    warnings.simplefilter("ignore", ConvergenceWarning)          # how far a fit got is in the tables
    print(heading(options.threads), flush=True)
    for name in options.part:
        try:
            print(PARTS[name](QUICK if options.quick else FULL, options.threads), flush=True)
        except (DataNotFound, NotImplementedError) as missing:
            print(f"{name}: {missing}\n", flush=True)


if __name__ == "__main__":
    main()
