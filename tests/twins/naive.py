"""Slow, obvious NumPy twins of what the compiled core computes. Read these first, then the kernels."""

import numpy as np

LOSS_VALUES = {
    "logistic": lambda z: np.logaddexp(0.0, -z),
    "calibrated_hinge": lambda z: np.maximum(0.0, -z) - np.log(2.0 + np.abs(z)),
    "squared": lambda z: (1.0 - z) ** 2 / 4.0,
    "hinge": lambda z: np.maximum(0.0, 1.0 - z),
    "squared_hinge": lambda z: np.maximum(0.0, 1.0 - z) ** 2,
    "huberised_hinge": lambda z, delta=1.0: huberised(1.0 - z, delta),
    "modified_huber": lambda z: np.where(z >= -1.0, np.maximum(0.0, 1.0 - z) ** 2, -4.0 * z),
    "squared_epsilon_insensitive": lambda z, e=1.0: np.maximum(0.0, np.abs(1.0 - z) - e) ** 2,
    "huber": lambda z, delta=1.0: huberised(np.abs(1.0 - z), delta) * delta,
    "smoothed_hinge": lambda z, width=1.0: ((1 - z) + np.sqrt(width**2 + (1 - z) ** 2)) / 2.0,
    "margin_pursuit": lambda z, level=1.0, scale=1.0: scale**2 * catoni_rho((level - z) / scale),
    "epsilon_insensitive": lambda z, e=1.0: np.maximum(np.abs(1 - z) - e, 0),
    "quantile": lambda z, q=1.0: np.where(z < 1, q * (1 - z), (1 - q) * (z - 1)),
}


def huberised(u, delta):
    return np.where(u <= 0, 0.0, np.where(u <= delta, u**2 / (2.0 * delta), u - delta / 2.0))


def catoni_rho(u):
    return np.where(np.abs(u) <= np.sqrt(2), u**2 / 2 - u**4 / 24, np.abs(u) * 2 * np.sqrt(2) / 3 - 0.5)


LOSS_SLOPES = {
    "logistic": lambda z: -1.0 / (1.0 + np.exp(z)),
    "calibrated_hinge": lambda z: (1.0 + np.maximum(0.0, z)) / (2.0 + np.abs(z)) - 1.0,
    "squared": lambda z: (z - 1.0) / 2.0,
}
CURVATURE_AT_ZERO = {"logistic": 0.25, "calibrated_hinge": 0.25, "squared": 0.5}


def posterior(loss, score):
    return np.clip(1.0 + LOSS_SLOPES[loss](score), 0.0, 1.0)


def literal_steps(X, visits, loss, eta, apply_inverse, beta=0.0, weight=None, w=None, b=0.0):
    """SLND eq. (11) as the paper writes it: w <- w + eta s_i y_i p_i x*_i with x*_i = H* x_i, sample after sample.

    ``visits`` holds rows, -1-row for a negative. Returns every (w, b), the start included.
    """
    w = np.zeros(X.shape[1]) if w is None else w.astype(float)
    iterates = [(w, b)]
    for visit in visits:
        i, y = (visit, 1.0) if visit >= 0 else (-1 - visit, -1.0)
        p = -LOSS_SLOPES[loss](y * (w @ X[i] + b))
        change = eta * (1.0 if weight is None else weight[i]) * y * p
        w, b = w + change * apply_inverse(X[i]), b + change * beta
        iterates.append((w, b))
    return iterates


def mean_of_samples(iterates, stride=8):
    """Mean of every ``stride``-th iterate, sample s weighing s; the last iterate where there is no sample yet."""
    samples = iterates[stride::stride]
    if not samples:
        return iterates[-1]
    share = np.arange(1, len(samples) + 1) / (len(samples) * (len(samples) + 1) / 2)
    return sum(s * w for s, (w, _) in zip(share, samples, strict=True)), share @ [b for _, b in samples]


def theory_steps(X, visits, subset, loss, apply_inverse, beta=0.0):
    """The same with the step of SLND eq. (23), epsilon = 1/2, its sums over ``subset`` (visits too) and the visit."""
    w, b = np.zeros(X.shape[1]), 0.0
    for visit in visits:
        members = np.append(subset, visit)
        rows, signs = np.where(members >= 0, members, -1 - members), np.where(members >= 0, 1.0, -1.0)
        i, y = (visit, 1.0) if visit >= 0 else (-1 - visit, -1.0)
        p_t = -LOSS_SLOPES[loss](y * (w @ X[i] + b))
        p = -LOSS_SLOPES[loss](signs * (X[rows] @ w + b))
        pi = p_t * (X[rows] @ apply_inverse(X[i]) + beta)
        e, square = np.sum(p * signs * y * pi), np.sum(pi**2)
        eta = e / (CURVATURE_AT_ZERO[loss] * square)
        w, b = w + eta * y * p_t * apply_inverse(X[i]), b + eta * y * p_t * beta
    return w, b


def low_rank_inverse(H, k, tail):
    """Lemma 1: the k largest eigenpairs inverted; with the tail scaled, the rest over the next eigenvalue."""
    d, P = np.linalg.eigh(H)
    d, P = d[::-1], P[:, ::-1]
    inverse = P[:, :k] / d[:k] @ P[:, :k].T
    return inverse if tail == "drop" else inverse + (np.eye(len(H)) - P[:, :k] @ P[:, :k].T) / d[k]


def bfgs_inverse(inverse, step, change):
    """Inverse Hessian after a step and the change of the gradient along it (Nocedal and Wright, eq. 6.17)."""
    r = 1 / (step @ change)
    left = np.eye(len(step)) - r * np.outer(step, change)
    return left @ inverse @ left.T + r * np.outer(step, step)


def structure_is_sound(X):
    """Whether the arrays of a CSR or CSC matrix describe one, entry by entry."""
    n_lines, n_places = X.shape if X.format == "csr" else X.shape[::-1]
    starts = [int(start) for start in X.indptr]
    if len(starts) != n_lines + 1 or starts[0] != 0 or len(X.indices) != len(X.data):
        return False
    for line in range(n_lines):
        if starts[line + 1] < starts[line] or starts[line + 1] > len(X.data):
            return False
    return all(0 <= int(place) < n_places for place in X.indices)
