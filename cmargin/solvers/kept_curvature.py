"""Curvature of one point, in use for some steps more: a look without curvature costs a fraction of one with it."""

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dpotrs

DEPENDENT = 1e-10            # squared ratio of pivots below which columns may depend on each other
NULL = 1e-12                 # eigenvalues below this share of the largest count as 0
FLAT = 1e-12                 # a step whose change of gradient is less than this part of both lengths tells nothing


def inverse_within_span(upper):
    """x -> H^-1 x, H by its upper triangle (row-major); the result has no part where H has no curvature but along x.

    Where columns depend on each other a factor, or one with a ridge, would let rounding pick one solution among many.
    There the eigenvectors are inverted one by one, and what H cannot reach is a plain gradient step.
    """
    factor, info = dpotrf(upper.T, lower=1, clean=0, overwrite_a=0)
    pivots = np.diag(factor)
    if info == 0 and pivots.min() ** 2 > DEPENDENT * pivots.max() ** 2:
        return lambda x: dpotrs(factor, x, lower=1)[0]
    values, vectors = eigh(upper.T, lower=True)
    top = values[-1]
    if not top > 0:
        return np.copy
    inverse = 1 / np.where(values > NULL * top, values, top)
    return lambda x: vectors @ (inverse * (vectors.T @ x))


class KeptCurvature:
    """Inverse of a Hessian, corrected by the steps taken since: BFGS, its matrix at the start being that inverse.

    The two loops over the pairs are those of limited-memory BFGS (Nocedal and Wright, algorithm 7.4).

    Parameters
    ----------
    upper : (p, p) array
        Upper triangle of the Hessian, row-major.
    """

    def __init__(self, upper):
        self.inverse, self.pairs = inverse_within_span(upper), []

    def add(self, step, change):
        """A step and the change of the gradient along it."""
        bend = step @ change
        if bend > FLAT * np.linalg.norm(step) * np.linalg.norm(change):
            self.pairs.append((step, change, bend))

    def solve(self, rhs):
        x, parts = rhs.copy(), []
        for step, change, bend in reversed(self.pairs):
            parts.append(step @ x / bend)
            x -= parts[-1] * change
        x = self.inverse(x)
        for (step, change, bend), part in zip(self.pairs, reversed(parts), strict=True):
            x += (part - change @ x / bend) * step
        return x
