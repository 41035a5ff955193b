"""Slow, obvious NumPy twins of the multinomial passes: softmax, risk, gradient, and the literal batch step."""

import numpy as np


def softmax(scores):
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def row_losses(scores, y):
    """ln sum_c exp(h_c) - h_y of every row."""
    top = scores.max(axis=1)
    return top + np.log(np.exp(scores - top[:, None]).sum(axis=1)) - scores[np.arange(len(y)), y]


def gradient(X, y, W, b, weight):
    """Sums of the weighted gradient over the rows: (n_classes, n_features) and (n_classes,)."""
    G = weight[:, None] * (softmax(X @ W.T + b) - np.eye(len(W))[y])
    return G.T @ X, G.sum(axis=0)


def damping(Z, eta, H_star, mean_length, bias_rate):
    """What is left of the gradients of rows Z, less the centre: far ones are not moved past what is to mend."""
    length = np.einsum("ij,jk,ik->i", Z, H_star, Z)
    return np.maximum(0.25, (1 + eta * (mean_length + bias_rate) / 4) / (1 + eta * (length + bias_rate) / 4))


def literal_batches(X, y, batches, eta, H_star, centre, mean_length, bias_rate, weight, W, b):
    """W -= eta G' (X_B - centre) H* and, for the scores of the centre, b -= eta bias_rate G' 1, batch after batch.

    ``b`` is the intercept of rows as they are, ``mean_length`` the mean of (x - centre)' H* (x - centre). Returns every
    (W, b), the start included, and the loss of every row met.
    """
    b = b + W @ centre
    iterates, losses = [(W, b - W @ centre)], []
    for rows in batches:
        Z = X[rows] - centre
        losses.append(weight[rows] * row_losses(Z @ W.T + b, y[rows]))
        in_W, in_b = gradient(Z, y[rows], W, b, weight[rows] * damping(Z, eta, H_star, mean_length, bias_rate))
        W, b = W - eta * in_W @ H_star, b - eta * bias_rate * in_b
        iterates.append((W, b - W @ centre))
    return iterates, losses


def mean_of_samples(iterates, stride):
    """Mean of every ``stride``-th iterate, sample s weighing s."""
    samples = iterates[stride::stride]
    share = np.arange(1, len(samples) + 1) / (len(samples) * (len(samples) + 1) / 2)
    return sum(s * W for s, (W, _) in zip(share, samples, strict=True)), share @ [b for _, b in samples]
