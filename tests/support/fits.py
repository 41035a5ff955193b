"""Fits of SLND that several files of tests make."""

import numpy as np

from cmargin import SLNDClassifier


def fit(X, y, sample_weight=None, **parameters):
    parameters = {"random_state": 5, "n_jobs": 2, "loss": "logistic", **parameters}       # the papers' form
    return SLNDClassifier(**parameters).fit(X, y, sample_weight)


def fit_multinomial(X, y, sample_weight=None, **parameters):
    return fit(X, y, sample_weight, **{"loss": "multinomial", **parameters})


def same(a, b):
    return np.array_equal(a.coef_, b.coef_) and np.array_equal(a.intercept_, b.intercept_)
