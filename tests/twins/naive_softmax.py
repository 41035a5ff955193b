"""The softmax risk of all classes, its derivatives and its dual, written down as slowly and obviously as possible."""

import numpy as np


def dense(X):
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def with_ones(X, intercept):
    X = dense(X)
    return np.column_stack([X, np.ones(len(X))]) if intercept else X


def softmax(h):
    e = np.exp(h - h.max())
    return e / e.sum()


def risk(X, labels, weight, V, intercept):
    """Value, mean entropy of the probabilities and gradient (n_columns, n_classes)."""
    X, n = with_ones(X, intercept), len(labels)
    value, entropy, gradient = 0.0, 0.0, np.zeros(V.shape)
    for x, y, s in zip(X, labels, weight, strict=True):
        p = softmax(V.T @ x)
        value -= s / n * np.log(p[y])
        entropy -= s / n * sum(q * np.log(q) for q in p if q > 0)
        gradient += s / n * np.outer(x, p - np.eye(len(p))[y])
    return value, entropy, gradient


def probabilities(X, V, intercept):
    return np.array([softmax(V.T @ x) for x in with_ones(X, intercept)])


def class_curvature(probs, weight):
    """Mean of diag(p) - p p' by weight."""
    return sum(s * (np.diag(p) - np.outer(p, p)) for s, p in zip(weight, dense(probs), strict=True)) / weight.sum()


def curvature(X, weight, V, D, intercept):
    """Hessian of the risk at V times D."""
    X, n = with_ones(X, intercept), len(weight)
    out = np.zeros(V.shape)
    for x, s in zip(X, weight, strict=True):
        p, t = softmax(V.T @ x), D.T @ x
        out += s / n * np.outer(x, (np.diag(p) - np.outer(p, p)) @ t)
    return out


def objective(X, labels, weight, W, bias, l2):
    """P(W, b) with W (n_classes, n_features)."""
    V = np.vstack([W.T, bias])
    return risk(X, labels, weight, V, True)[0] + l2 / 2 * np.sum(W**2)


def dual(X, labels, weight, probabilities, l2):
    """D at probabilities (n_rows, n_classes); a bound below only where they balance the classes, or b = 0."""
    X, n = dense(X), len(labels)
    entropy, V = 0.0, np.zeros((probabilities.shape[1], X.shape[1]))
    for x, y, s, p in zip(X, labels, weight, probabilities, strict=True):
        entropy -= s / n * sum(q * np.log(q) for q in p if q > 0)
        V += s / n * np.outer(np.eye(len(p))[y] - p, x)
    return entropy - np.sum(V**2) / (2 * l2)


def newton_step(X, labels, weight, V, G, value, l2, inverse, intercept, mean, enough, most):
    """Conjugate gradients, line search, step: direction, step, number of products."""
    m, k = dense(X).shape[1], V.shape[1]
    D, residual = np.zeros(G.shape), -G
    Z = inverse(residual)
    P, norm = Z, np.sum(residual * Z)
    first = norm
    count = 0
    while count < most:
        count += 1
        Q = curvature(X, weight, V, P, intercept)
        Q = Q - Q.mean(axis=1, keepdims=True)
        Q[:m] += l2 * P[:m]
        t = norm / np.sum(P * Q)
        D, residual = D + t * P, residual - t * Q
        Z = inverse(residual)
        before, norm = norm, np.sum(residual * Z)
        features = residual[:m] - (np.outer(mean, residual[m]) if intercept else 0)
        gap = np.sum(features**2) / (2 * l2)
        if gap <= enough or (norm <= 0.1 * first and gap > 4 * enough):
            break
        P = Z + norm / before * P
    first = np.sum(G * D)
    low, high, width, t = (0.0, value, first), (np.inf, 0.0, 0.0), np.inf, 1.0
    for trial in range(40):
        ahead = V + t * D
        at_t, _, gradient = risk(X, labels, weight, ahead, intercept)
        at_t += l2 / 2 * np.sum(ahead[:m] ** 2)
        slope = np.sum(gradient * D) + l2 * np.sum(ahead[:m] * D[:m])
        if abs(slope) <= 0.1 * abs(first) and (slope <= 0 or slope * (t - low[0]) <= value - at_t + 4.5e-16 * value):
            break
        bend = np.sum(D * curvature(X, weight, ahead, D, intercept)) + l2 * np.sum(D[:m] ** 2)
        low, high = (low, (t, at_t, slope)) if slope > 0 else ((t, at_t, slope), high)
        if trial == 39:
            t = low[0]
            break
        newton = t - slope / bend if bend > 0 else np.inf
        halves = high[0] - low[0] <= 0.6 * width
        if not np.isfinite(high[0]):
            t = newton if low[0] < newton < np.inf else 2 * max(low[0], 1.0)
        elif low[0] < newton < high[0] and halves:
            t = newton
        else:
            meet = low[0] + (high[1] - low[1] - high[2] * (high[0] - low[0])) / (low[2] - high[2])
            t = meet if halves and low[0] < meet < high[0] else (low[0] + high[0]) / 2
        width = high[0] - low[0]
    assert D.shape == (m + intercept, k)
    return D, t, count


def penalised(V, gradient, l2, n_features, mean):
    """(penalty, gradient of risk + penalty without its mean over the classes, |that of the features|^2 / (2 l2)); the
    intercepts' slope times ``mean``, of the rows, off the features, if it is known."""
    G = gradient.copy()
    G[:n_features] += l2 * V[:n_features]
    G -= G.mean(axis=1, keepdims=True)
    features = G[:n_features] - (0 if mean is None else np.outer(mean, G[-1]))
    return l2 / 2 * np.sum(V[:n_features] ** 2), G, np.sum(features**2) / (2 * l2)
