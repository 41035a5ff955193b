"""The joint hinge of Crammer and Singer (2001) by the textbook: objective, dual value, sweeps of the dual in NumPy."""

import numpy as np


def margins_short(scores, labels):
    """max_c (1[c != y] + h_c - h_y) of every row."""
    rows = np.arange(len(labels))
    lacking = scores + 1.0
    lacking[rows, labels] -= 1.0
    return lacking.max(axis=1) - scores[rows, labels]


def objective(W, b, X, labels, weight, l2, penalised=False):
    """(l2/2) |W|^2 + mean of the joint hinges; W (k, m), b (k,), weights of mean 1; ``penalised``: b is, too."""
    square = np.sum(W**2) + (np.sum(b**2) if penalised else 0.0)
    return l2 / 2 * square + np.mean(weight * margins_short(np.asarray(X @ W.T) + b, labels))


def nearest_of_simplex(t, mass):
    """The point nearest to t with entries >= 0 that add up to ``mass``, by sorting."""
    down = np.sort(t)[::-1]
    over = (np.cumsum(down) - mass) / np.arange(1, len(t) + 1)
    return np.maximum(t - over[down > over][-1], 0.0)


def dual_value(a, X, labels, C, l2):
    """l2 (sum_i (C_i - a_iy) - |W|^2 / 2), W = sum_i x_i (C_i e_y - a_i)'."""
    rows = np.arange(len(labels))
    owed = -a
    owed[rows, labels] += C
    W = X.T @ owed
    return l2 * (np.sum(C - a[rows, labels]) - np.sum(W**2) / 2)


def sweeps(X, labels, C, n_classes, n_sweeps):
    """Dual variables (n, k) after sweeps row by row, in order: each to the best point of its simplex."""
    a = np.zeros((len(labels), n_classes))
    a[np.arange(len(labels)), labels] = C
    W = np.zeros((X.shape[1], n_classes))
    for _ in range(n_sweeps):
        for i, x in enumerate(X):
            z = x @ W + 1.0
            z[labels[i]] -= 1.0
            new = nearest_of_simplex(a[i] + z / (x @ x), C[i])
            W -= np.outer(x, new - a[i])
            a[i] = new
    return a
