"""A slow, obvious twin of the multinomial optimum with l1 or norms of columns: proximal steps with momentum."""

import numpy as np

from tests.twins.naive_multinomial import gradient, row_losses


def penalty(W, l2, l1, grouped):
    """(l2/2) |W|^2 + l1 sum |w|, or l1 times the sum of the columns' norms, of W (n_classes, n_features)."""
    sizes = np.sqrt((W**2).sum(axis=0)) if grouped else np.abs(W)
    return l2 / 2 * (W**2).sum() + l1 * sizes.sum()


def objective(X, y, weight, W, b, l2, l1, grouped):
    return weight @ row_losses(X @ W.T + b, y) / weight.sum() + penalty(W, l2, l1, grouped)


def nearest(W, step, l2, l1, grouped):
    """argmin over V of |V - W|^2 / (2 step) + the penalty of V."""
    sizes = np.sqrt((W**2).sum(axis=0)) if grouped else np.abs(W)
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = np.where(sizes > step * l1, 1 - step * l1 / sizes, 0.0)
    return W * kept / (1 + step * l2)


def optimum(X, y, weight, n_classes, l2, l1, grouped, intercept, n_steps=3000):
    """W and b; momentum begins anew wherever the objective rises (O'Donoghue and Candes 2015)."""
    rows = np.hstack([X, np.full((len(X), 1), float(intercept))])
    total, k = weight.sum(), X.shape[1]
    step = 2 * total / np.linalg.norm(rows * np.sqrt(weight)[:, None], 2) ** 2      # softmax: curvature 1/2 at most
    W = before = np.zeros((n_classes, k + 1))
    t, last = 1.0, np.inf
    for _ in range(n_steps):
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        ahead = W + (t - 1) / t_next * (W - before)
        G = gradient(rows, y, ahead, np.zeros(n_classes), weight)[0] / total
        moved = ahead - step * G
        moved[:, :k] = nearest(moved[:, :k], step, l2, l1, grouped)
        before, W, t = W, moved, t_next
        value = objective(X, y, weight, W[:, :k], W[:, k] * intercept, l2, l1, grouped)
        if value > last:
            before, t = W, 1.0
        last = value
    return W[:, :k], W[:, k] * intercept
