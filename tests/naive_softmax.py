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
