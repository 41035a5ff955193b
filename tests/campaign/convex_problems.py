"""Problems for `convex`: rows, targets and settings, drawn from a seed."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from .certificates import ENOUGH
from .oracle import LONG
from .problems import log_uniform, make_weights, pick


@dataclass
class Drawn:
    kind: str
    settings: dict
    X: object
    y: np.ndarray | None
    weights: np.ndarray | None
    offset: np.ndarray | None = None
    tags: list = field(default_factory=list)

    @property
    def dense(self):
        return (self.X.toarray() if sp.issparse(self.X) else np.asarray(self.X)).astype(LONG)


def draw(seed):
    rng = np.random.default_rng([seed, 590])
    kind = pick(rng, SmSVMRegressor=6, SmSVMClassifier=3, SmSVMOneClass=1.5, crammer_singer=1.5)
    n, p = int(log_uniform(rng, 1 if kind != "crammer_singer" else 3, 61)), int(log_uniform(rng, 1, 25))
    X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-1.5, 1.5, p if rng.random() < 0.4 else 1)
    tags = [kind]
    if rng.random() < 0.3:
        X[rng.random((n, p)) < 0.7] = 0
        tags.append("zeros")
    if rng.random() < 0.25:
        X += 10.0 ** rng.uniform(-1, 2)
        tags.append("offset rows")
    if rng.random() < 0.2:
        X = X[rng.integers(n, size=n)]
        tags.append("duplicates")
    y = targets(rng, kind, X, tags)
    X = X.astype(np.float32 if rng.random() < 0.3 else float)
    layout = pick(rng, C=3, F=1, csr=2)
    X = sp.csr_matrix(X) if layout == "csr" else np.asarray(X, order=layout)
    tags += [layout, X.dtype.name]
    drawn = Drawn(kind, {}, X, y, make_weights(rng, n, tags), tags=tags)
    drawn.settings = settings_of(rng, drawn, p)
    if kind == "SmSVMClassifier" and rng.random() < 0.4:
        n_problems = 1 if len(np.unique(y)) == 2 else len(np.unique(y))
        drawn.offset = rng.standard_normal((n, n_problems)) * 10.0 ** rng.uniform(-2, 1)
        tags.append("offset")
    s = drawn.settings
    if {"plain", "bounds"} & set(tags) and s["l1"] == 0 and s["l2"] > 0 and "linear_solver" not in s \
            and s["loss"] != "logistic" and rng.random() < 0.6:
        q = int(rng.integers(1, 6))
        A = rng.standard_normal((q, p)) * (rng.random((q, p)) < rng.choice([0.3, 1.0]))
        A[np.arange(q), rng.integers(p, size=q)] += 1                         # no row of zeros
        A, met = np.vstack([A, -A[:1]]), np.zeros(p)                          # at weights within the bounds
        for name, nearest in (("lower", np.maximum), ("upper", np.minimum)):
            met = met if s.get(name) is None else nearest(met, s[name])
        s["constraints"] = A, 10.0 ** rng.uniform(-4, 1, q + 1) - A @ met
        tags.append("constraints")
    return drawn


def targets(rng, kind, X, tags):
    n = len(X)
    if kind == "SmSVMOneClass":
        return None
    scores = X @ rng.standard_normal((X.shape[1], 3))
    scores = scores / max(np.abs(scores).max(), 1e-9) * rng.integers(0, 3) + rng.standard_t(2, (n, 3))
    if kind == "SmSVMRegressor":
        y = scores * 10.0 ** rng.uniform(-3, 3) + rng.choice([0.0, 0.0, 30.0])
        y = np.round(y) if rng.random() < 0.2 else np.full_like(y, 2.5) if rng.random() < 0.03 else y
        tags.append("several" if rng.random() < 0.2 else "one")
        return y if tags[-1] == "several" else y[:, 0]
    y = (scores[:, 0] > 0).astype(int) if kind == "SmSVMClassifier" and rng.random() < 0.8 else scores.argmax(axis=1)
    y[:2] = (0, 1) if n > 1 else 0
    if kind == "crammer_singer":
        y[2] = 2
    return y


def settings_of(rng, drawn, p):
    tags, kind = drawn.tags, drawn.kind
    out = {"tol": float(rng.choice([1e-2, 1e-4, 1e-6])), "max_passes": ENOUGH}
    if kind == "SmSVMOneClass":
        return out | {"nu": min(1.0, float(rng.choice([rng.uniform(0.01, 1), 0.1, 0.5, 1 / max(1, drawn.X.shape[0])])))}
    out["l2"] = 0.0 if rng.random() < 0.15 else log_uniform(rng, 1e-7, 10)
    if kind == "crammer_singer":
        tags.append("intercept" if rng.random() < 0.6 else "none")
        return out | {"l2": out["l2"] or 1e-3, "max_passes": 2000, "multi_class": kind, "loss": "hinge",
                      "fit_intercept": tags[-1] == "intercept", "penalize_intercept": bool(rng.random() < 0.3)}
    out["l1"] = log_uniform(rng, 1e-5, 1) if rng.random() < 0.45 or out["l2"] == 0 else 0.0
    intercept = pick(rng, free=4, penalised=1, none=1)
    out |= {"fit_intercept": intercept != "none", "penalize_intercept": intercept == "penalised"}
    extra = pick(rng, plain=3, bounds=2, columns=1.5, groups=1.5)
    if extra in ("bounds", "columns") and rng.random() < 0.8:
        low = -np.round(rng.exponential(size=p), 2) * rng.integers(0, 2)
        out["lower"] = float(low.min()) if rng.random() < 0.5 else np.where(rng.random(p) < 0.2, -np.inf, low)
        low = np.maximum(np.broadcast_to(out["lower"], p), -1.0)
        out["upper"] = None if rng.random() < 0.5 else low + rng.exponential(size=p)
    if extra == "columns" and intercept != "penalised":
        out["l1"], out["l2"] = out["l1"] * rng.integers(0, 3, p), out["l2"] * rng.uniform(0.1, 2, p) + 1e-9
    if extra == "groups":
        out["groups"], out["l1"] = rng.integers(0, max(1, p // 2), p), out["l1"] or 1e-2
    tags += [extra, intercept]
    if kind == "SmSVMRegressor":
        out["loss"] = pick(rng, epsilon_insensitive=2, quantile=2, squared_epsilon_insensitive=1, huber=1.5)
        out["epsilon"] = 0.0 if rng.random() < 0.2 else log_uniform(rng, 1e-4, 10)
        out["quantile"] = float(rng.uniform(0.01, 0.99))
        if out["loss"] == "quantile" and drawn.y.ndim == 1 and rng.random() < 0.4:
            out["quantile"] = [0.1, 0.5, 0.9]
    else:
        out["loss"] = pick(rng, hinge=2, squared_hinge=1.5, logistic=1, huberised_hinge=1.5, modified_huber=1)
    out["delta"] = log_uniform(rng, 1e-2, 10)
    if extra == "plain" and out["l1"] == 0 and rng.random() < 0.4:
        out["linear_solver"] = str(rng.choice(["cg", "cholesky", "woodbury"]))
    tags.append(out["loss"])
    return out


def describe(seed):
    return draw(seed).tags
