"""Eight fits in as many threads: the bits of one alone, and no more time than their number asks for."""

import os
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.preprocessing import scale

from .estimators import ESTIMATORS, SEARCHES, WAYS, WITHOUT_LABELS, make
from .findings import Findings

FITS = 8
ROWS = 400
SLOW = 10.0                    # times (sum of single fits) / cores that are a fault even where others use the cores
LIMITS = {"times the single fits": 1.3}
# every estimator by its defaults, then by its other ways
NAMES = ESTIMATORS + WITHOUT_LABELS
CASES = [(name, way) for first in (True, False) for name in NAMES
         for way in (WAYS.get(name, [{}])[:1] if first else WAYS.get(name, [])[1:])]


def describe(seed):
    name, way = CASES[seed]
    return [name, *(f"{key}={value}" for key, value in way.items())]


def data(seed):
    """Digits as float64; for the other ways in turn as float32, dense, and as CSR."""
    X, y = load_digits(return_X_y=True)
    X, y = scale(X[:ROWS]), y[:ROWS]
    if seed < len(NAMES):
        return X, y
    return (X.astype(np.float32) if seed % 2 else sp.csr_matrix(load_digits().data[:ROWS])), y


def fitted(name, way, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # a step of the theory looks at rows of every class
        passes = 3 if way.get("step_size") == "theory" else 10
        settings = {"cv": 2} if name in SEARCHES else {"max_passes": passes}
        return make(name, **settings, **way).fit(X, y)


def check_seed(seed):
    """One estimator, first alone in the main thread, then in many."""
    name, way = CASES[seed]
    found = Findings(seed, describe(seed))
    X, y = data(seed)
    fitted(name, way, X, y)                              # whatever a first fit loads
    begin = time.perf_counter()
    alone = fitted(name, way, X, y)
    single = time.perf_counter() - begin
    begin = time.perf_counter()
    with ThreadPoolExecutor(FITS) as pool:
        others = list(pool.map(lambda _: fitted(name, way, X, y), range(FITS)))
    seconds = time.perf_counter() - begin
    for attribute in ("coef_", "intercept_"):
        theirs = [getattr(other, attribute) for other in others]
        wrong = sum(not np.array_equal(getattr(alone, attribute), value) for value in theirs)
        if wrong:
            far = max(np.abs(getattr(alone, attribute) - value).max() for value in theirs)
            found.add("bits", f"{attribute} of {wrong} in {FITS} fits differs from the fit alone, by {far:.1e} at most")
    ratio = seconds / max(FITS * single / min(FITS, os.cpu_count() or 1), 0.05)
    found.note("times the single fits", ratio)
    if ratio > SLOW:
        found.add("slow", f"{FITS} fits at once take {seconds:.2f} s, one alone {single:.3f} s")
    return found
