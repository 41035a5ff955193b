"""Weights and counts of a model when classes join it."""

import numpy as np


def weights_with_more(coef, intercept, places, n_classes, as_softmax, score):
    """Weights and intercepts of ``n_classes`` classes or labels.

    Parameters
    ----------
    coef, intercept : (n_problems, n_features) and (n_problems,) arrays
        Of the classes there were; one problem of two classes has the scores of the second.
    places : (n_before,) array
        Of these classes among all.
    as_softmax : bool
        Whether the difference of two classes' scores is to stay as it is, not the score of each.
    score : float
        Intercept of the classes that join, whose weights are 0.

    Returns
    -------
    coef : (n_classes, n_features) array
    intercept : (n_classes,) array
    """
    if len(coef) < len(places):
        share = 0.5 if as_softmax else 1.0
        coef, intercept = share * np.concatenate([-coef, coef]), share * np.concatenate([-intercept, intercept])
    W, bias = np.zeros((n_classes, coef.shape[1]), coef.dtype), np.full(n_classes, float(score))
    W[places], bias[places] = coef, intercept
    return W, bias


def counts_with_more(counts, places, n_classes):
    """The (3, n_problems) weights of all rows, of positives and of visits, with those of classes that join."""
    if counts.shape[1] < len(places):            # of two classes the first is the second, with its signs turned round
        (total,), (positive,), (visited,) = counts
        negative, share = total - positive, positive / visited if 0 < positive < visited else 0.5
        counts = np.array([[total, total], [negative, positive], [negative / (1 - share), visited]])
    every = np.zeros((3, n_classes))
    every[0], every[:, places] = counts[0].max(), counts
    return every
