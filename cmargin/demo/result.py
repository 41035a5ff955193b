"""What the parts of the demo hand each other."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np

ENOUGH_SECONDS = 0.5   # of fits of one classifier, the shortest of which counts


@dataclass
class Split:
    """One data set, split and standardised."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@dataclass
class Result:
    """One classifier on one data set: a row of the table and what its curves are drawn from."""

    data_set: str
    classifier: str
    top_1: float
    top_5: float | None
    passes: float
    gap: float | None                   # relative distance from the minimum: of cmargin certified, of others measured
    seconds: float
    distance: tuple | None = None       # seconds, and how far from the minimum: two arrays
    accuracy: tuple | None = None       # seconds, and accuracy on the test rows: two arrays
    margin_error: tuple | None = None   # thresholds, and the margin error of the test rows


def shortest(fit, fits):
    """Seconds of the quickest of up to ``fits`` calls of ``fit``."""
    done = []
    while not done or (len(done) < fits and sum(done) < ENOUGH_SECONDS):
        begin = perf_counter()
        fit()
        done.append(perf_counter() - begin)
    return min(done)
