"""A seed makes a training problem for SmSVM: rows of every kind and layout, labels, weights and settings."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

ROWS, COLUMNS = (2, 400), (1, 600)
ENTRIES = 120_000              # at most: more rows and columns tell nothing new and cost the time of many
OVERFLOWS = 1e150              # largest number that a valid problem may hold


@dataclass
class Problem:
    """What one call of `fit` is given, and what the campaign changes around it."""

    seed: int
    X: object                              # as given: dense in some layout, or CSR
    y: np.ndarray
    sample_weight: np.ndarray | None
    settings: dict                         # parameters of SmSVMClassifier
    before: dict | None = None             # parameters of the fit that this one starts from
    force: dict = field(default_factory=dict)      # see `force`
    tags: list = field(default_factory=list)

    @property
    def dense(self):
        return self.X.toarray() if sp.issparse(self.X) else np.asarray(self.X)

    @property
    def may_overflow(self):
        values = self.X.data if sp.issparse(self.X) else self.X
        return bool(np.abs(values).max(initial=0) > OVERFLOWS)


def log_uniform(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def pick(rng, **shares):
    """One of the names, by their shares."""
    share = np.array(list(shares.values()), float)
    return list(shares)[rng.choice(len(share), p=share / share.sum())]


def make_problem(seed):
    """The problem of a seed; the same numbers wherever it runs."""
    rng = np.random.default_rng([seed, 20250])
    n = int(log_uniform(rng, ROWS[0], ROWS[1] + 1))
    p = int(min(log_uniform(rng, COLUMNS[0], COLUMNS[1] + 1), ENTRIES // n))
    tags = []
    X = make_rows(rng, n, p, tags)
    y = make_labels(rng, X, tags)
    X, y = repeat_rows(rng, X, y, tags)
    X = change_columns(rng, X, tags)
    X = scale_columns(rng, X, tags)
    X = lay_out(rng, X, tags)
    weights = make_weights(rng, n, tags)
    settings = make_settings(rng, sp.issparse(X), y, tags)
    problem = Problem(seed, X, y, weights, settings, tags=tags)
    if rng.random() < 0.15:
        problem.before = {**settings, "l2": settings["l2"] * log_uniform(rng, 0.01, 100) + 1e-6}
        settings["warm_start"] = True
        tags.append("warm")
    if rng.random() < 0.25 and n >= 20:
        problem.force = {"smallest": 10, "rows_per_column": 0.01}
        settings.setdefault("random_state", int(rng.integers(100)))
        tags.append("growing")
    if rng.random() < 0.3:
        problem.force["small"] = 1
        tags.append("threads")
    return problem


# ------------------------------------------------------------ rows

def make_rows(rng, n, p, tags):
    kind = pick(rng, normal=5, binary=1, pixels=1, counts=1, heavy=1, sparse=1.5)
    tags.append(kind)
    if kind == "binary":
        return (rng.random((n, p)) < rng.uniform(0.05, 0.9)).astype(float)
    if kind == "pixels":
        return np.where(rng.random((n, p)) < rng.uniform(0.1, 0.8), 0.0, rng.integers(0, 256, (n, p)))
    if kind == "counts":
        return rng.poisson(rng.uniform(0.02, 2), (n, p)).astype(float)
    if kind == "heavy":
        return rng.standard_t(1.5, (n, p))
    X = rng.standard_normal((n, p))
    if kind == "sparse":
        X[rng.random((n, p)) < rng.uniform(0.5, 0.99)] = 0.0
    elif rng.random() < 0.2:
        X = X @ rng.standard_normal((p, p)) / np.sqrt(p)               # correlated
    return X


def repeat_rows(rng, X, y, tags):
    """Some rows again, with their labels or, worse, with others."""
    n = len(X)
    if n < 4 or rng.random() > 0.25:
        return X, y
    source = rng.integers(n, size=max(1, int(n * rng.uniform(0.1, 0.9))))
    target = rng.integers(n, size=len(source))
    X = X.copy()
    X[target] = X[source]
    if rng.random() < 0.5:
        tags.append("contradictions")
        return X, y
    tags.append("duplicates")
    again = y.copy()
    again[target] = again[source]
    return X, again if enough_classes(again) else y


def change_columns(rng, X, tags):
    p = X.shape[1]
    if rng.random() < 0.12:
        X = X.copy()
        X[:, rng.integers(p, size=max(1, p // 10))] = rng.choice([0.0, 1.0, -3.7, 255.0])
        tags.append("constant columns")
    if rng.random() < 0.12 and p > 1:
        X = X[:, rng.integers(p, size=p)]
        tags.append("duplicate columns")
    if rng.random() < 0.35:
        offset = log_uniform(rng, 1, 1000)
        X = X + (offset if rng.random() < 0.5 else rng.uniform(-offset, offset, p))
        tags.append("offset")
    return X


def scale_columns(rng, X, tags):
    """Columns, or all of X, by powers of two: mostly 2^±20 at most, seldom beyond the squares' range."""
    p = X.shape[1]
    kind = pick(rng, plain=50, mild=12, mixed=25, huge=2.5, huge_mixed=1.5, tiny=1, overflow=0.7, subnormal=0.5)
    single = rng.random() < 0.45
    limit = 200 if not single else 100
    exponent = {"plain": 0.0, "mild": rng.uniform(-20, 20), "mixed": rng.uniform(-20, 20, p),
                "huge": rng.uniform(-limit, limit), "huge_mixed": rng.uniform(-limit, limit, p),
                "tiny": -limit, "overflow": 530.0 if not single else 110.0,
                "subnormal": -1050.0 if not single else -130.0}[kind]
    if kind != "plain":
        X = X * 2.0**np.round(exponent)
        tags.append(kind)
    dtype = np.float32 if single else np.float64
    tags.append(np.dtype(dtype).name)
    with np.errstate(over="ignore"):
        X = X.astype(dtype)
    return np.nan_to_num(X, posinf=1.0, neginf=-1.0)                  # heavy tails times the largest scale


def lay_out(rng, X, tags):
    """The same numbers in another data source."""
    layout = pick(rng, C=4, F=2, strided=1, readonly=1, csr=3, csr64=1, unsorted=0.5, csc=0.3)
    tags.append(layout)
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "strided":
        wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan, X.dtype)
        wide[::2, ::3] = X
        return wide[::2, ::3]
    if layout == "readonly":
        X.flags.writeable = False
    if layout in ("C", "readonly"):
        return X
    if layout == "csc":
        return sp.csc_matrix(X)
    X = sp.csr_matrix(X)
    if layout == "csr64":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    if layout == "unsorted":
        for lo, hi in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            order = rng.permutation(hi - lo)
            X.indices[lo:hi], X.data[lo:hi] = X.indices[lo:hi][order], X.data[lo:hi][order]
        X.has_sorted_indices = False
    return X


# ------------------------------------------------------------ labels and weights

def enough_classes(y):
    return len(np.unique(y)) > 1 if y.ndim == 1 else True


def make_labels(rng, X, tags):
    kind = pick(rng, two=15, several=3, multilabel=1.5)
    n_scores = {"two": 1, "several": int(rng.integers(3, 6)), "multilabel": int(rng.integers(2, 4))}[kind]
    noise = pick(rng, none=1, some=2, only=2)
    with np.errstate(all="ignore"):
        scores = (X - X.mean(axis=0)) @ rng.standard_normal((X.shape[1], n_scores))
        scores = scores / np.maximum(scores.std(axis=0), 1e-12)
    spread = {"none": 0.0, "some": rng.uniform(0.1, 1), "only": 1.0}[noise]
    scores = (0.0 if noise == "only" else 1.0) * scores + spread * rng.standard_normal(scores.shape)
    scores += rng.uniform(-1.5, 1.5) if rng.random() < 0.3 else 0.0                  # a rare class
    if kind == "multilabel":
        tags.append(kind)
        return (scores > 0).astype(int)
    y = (scores[:, 0] > 0).astype(int) if kind == "two" else scores.argmax(axis=1)
    if len(np.unique(y)) < 2:
        y[0] = 1 - min(y[0], 1)
    if len(np.unique(y)) > 2:
        tags.append("classes")
    names = [np.arange(5), np.array([-1, 1, 3, 5, 7]), np.array(["a", "b", "c", "d", "e"]), np.arange(5.0)]
    return names[rng.integers(len(names))][y]


def make_weights(rng, n, tags):
    kind = pick(rng, none=6, uniform=1, zeros=1.5, ratio=1)
    if kind == "none":
        return None
    tags.append(f"weights {kind}")
    if kind == "uniform":
        return rng.uniform(0.1, 2, n)
    if kind == "ratio":
        return 10**rng.uniform(-8, 8, n)
    weights = rng.integers(0, 3, n).astype(float)
    weights[rng.integers(n)] = 1.0
    return weights


# ------------------------------------------------------------ settings

def make_settings(rng, sparse, y, tags):
    """Penalties, tolerance and solver; each solver gets what it needs."""
    out = {"l2": 0.0 if rng.random() < 0.12 else log_uniform(rng, 1e-14, 1e2) if rng.random() < 0.6
           else log_uniform(rng, 1e-6, 1e-1),
           "l1": 0.0 if rng.random() < 0.6 else log_uniform(rng, 1e-8, 1),
           "tol": 1e-4 if rng.random() < 0.4 else log_uniform(rng, 1e-8, 1e-2),
           "fit_intercept": bool(rng.random() < 0.8), "penalize_intercept": bool(rng.random() < 0.25)}
    solver = pick(rng, auto=9, cholesky=3, woodbury=2.5, cg=2.5, dual=2)
    if solver == "dual":
        if not sparse:
            solver = "auto"
        elif out["l2"] == 0:
            out["l2"] = log_uniform(rng, 1e-8, 1)
    if solver in ("dual", "woodbury", "cg"):
        out["l1"] = 0.0
    out["linear_solver"] = solver
    tags += [solver] + ["l1"] * (out["l1"] > 0) + ["l2=0"] * (out["l2"] == 0)
    if solver in ("auto", "cholesky") and rng.random() < 0.05:
        out["line_search"] = "quadratic"
        tags.append("quadratic")
    passes = pick(rng, default=2, enough=6, few=2)         # a thousand reads can take minutes
    if passes != "default":
        out["max_passes"] = 200 if passes == "enough" else log_uniform(rng, 1, 40)
        tags += ["few passes"] * (passes == "few")
    if rng.random() < 0.3:
        out["random_state"] = int(rng.integers(100))
    if y.ndim == 1 and rng.random() < 0.15:
        labels = np.unique(y)
        out["class_weight"] = "balanced" if rng.random() < 0.5 else {
            label.item(): float(rng.choice([0.1, 1.0, 30.0])) for label in labels}
        tags.append("class weights")
    return out
