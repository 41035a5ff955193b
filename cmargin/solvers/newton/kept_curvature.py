"""Curvature of one point, in use for some steps more: a look without curvature costs a fraction of one with it."""

import numpy as np

from cmargin._core.newton._newton_system import InverseWithinSpan

FLAT = 1e-12                 # a step whose change of gradient is less than this part of both lengths tells nothing


class KeptCurvature:
    """Inverse of a Hessian, corrected by the steps taken since: BFGS, its matrix at the start being that inverse.

    The two loops over the pairs are those of limited-memory BFGS (Nocedal and Wright, algorithm 7.4).

    Parameters
    ----------
    upper : (p, p) array
        Upper triangle of the Hessian, row-major.
    """

    def __init__(self, upper):
        self.inverse, self.pairs = InverseWithinSpan(np.ascontiguousarray(upper)), []

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
