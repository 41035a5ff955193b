"""Line search with the approximate Wolfe conditions (Hager and Zhang 2005, section 4; 2006, sections 3 and 5).

phi(a) is the objective along the search direction. Beside the Wolfe conditions a step is taken where

    (2 delta - 1) phi'(0) >= phi'(a) >= sigma phi'(0)   and   phi(a) <= phi(0) + eps_k                  (2005, eq. 4.1)

which near the minimum can be decided by slopes, where values are equal to within rounding. The interval [a, b] kept
satisfies phi(a) <= phi(0) + eps_k, phi'(a) < 0, phi'(b) >= 0 (2005, eq. 4.4).
"""

import math
from dataclasses import dataclass

# Names and values of the paper (2006, section 5)
DELTA, SIGMA = 0.1, 0.9          # Wolfe: decrease, slope
EPSILON = 1e-6                   # eps_k = EPSILON |phi(0)|: what a value may rise
THETA = 0.5                      # where an interval is cut
GAMMA = 0.66                     # an interval must shrink to this share, else it is halved
RHO = 5.0                        # growth while no upper end is known
PSI_0, PSI_1, PSI_2 = 0.01, 0.1, 2.0     # first steps: of all, of the quadratic trial, of the last step
MOST_TRIALS = 100


class OutOfTrials(Exception):
    """No step was found: the direction is exhausted to within rounding."""


@dataclass(frozen=True)
class Trial:
    """One point of the line."""

    step: float
    value: float
    slope: float


class LineSearch:
    """One line, ``phi(step)`` being value and slope there; ``value``, ``slope``: phi(0) and phi'(0) < 0."""

    def __init__(self, phi, value, slope, delta=DELTA, sigma=SIGMA):
        self.phi, self.start = phi, Trial(0.0, value, slope)
        self.delta, self.sigma = delta, sigma
        self.ceiling = value + EPSILON * abs(value)
        self.best, self.trials = None, 0

    def search(self, first):
        """The `Trial` accepted, beginning with the step ``first``."""
        try:
            a, b = self.bracket(self.at(first))
            for _ in range(MOST_TRIALS):                 # an interval of NaN, or of one point, tries nothing and stays
                new_a, new_b = self.secant_twice(a, b)
                if new_b.step - new_a.step > GAMMA * (b.step - a.step):      # L2
                    new_a, new_b = self.update(new_a, new_b, self.at((new_a.step + new_b.step) / 2))
                a, b = new_a, new_b
        except Found:
            return self.best
        raise OutOfTrials

    def at(self, step):
        """phi there; raises `Found` where it satisfies the conditions, so that the search ends at once."""
        self.trials += 1
        if self.trials > MOST_TRIALS:
            raise OutOfTrials
        trial = Trial(step, *self.phi(step))
        if self.accepts(trial):
            self.best = trial
            raise Found
        return trial

    def accepts(self, trial):
        first = self.start
        if not (trial.step > 0 and trial.slope >= self.sigma * first.slope):
            return False
        wolfe = trial.value - first.value <= self.delta * trial.step * first.slope
        return wolfe or (trial.slope <= (2 * self.delta - 1) * first.slope and trial.value <= self.ceiling)

    def bracket(self, c):
        """B0 to B3: an interval that holds a minimum, from the first step outwards."""
        a = self.start
        while True:
            if c.slope >= 0:
                return a, c
            if not c.value <= self.ceiling:                      # a NaN too
                return self.cut(self.start, c)
            a, c = c, self.at(RHO * c.step)

    def update(self, a, b, c):
        """U0 to U3: a shorter interval from a point between its ends."""
        if not a.step < c.step < b.step:
            return a, b
        if c.slope >= 0:
            return a, c
        return (c, b) if c.value <= self.ceiling else self.cut(a, c)

    def cut(self, a, b):
        """U3: between a, low and falling, and b, too high, to an end that rises."""
        while True:
            d = self.at((1 - THETA) * a.step + THETA * b.step)
            if d.slope >= 0:
                return a, d
            if d.value <= self.ceiling:
                a = d
            else:
                b = d

    def secant_twice(self, a, b):
        """S1 to S4."""
        step = secant(a, b)
        c = self.inside(a, b, step)
        A, B = self.update(a, b, c) if c is not None else (a, b)
        if c is None:
            return A, B
        again = secant(b, B) if c is B else secant(a, A) if c is A else None
        c = None if again is None else self.inside(A, B, again)
        return self.update(A, B, c) if c is not None else (A, B)

    def inside(self, a, b, step):
        """The point at ``step``, None where it is no point of the open interval (U0: nothing is gained there)."""
        return self.at(step) if math.isfinite(step) and a.step < step < b.step else None


class Found(Exception):
    """The step tried is accepted."""


def secant(a, b):
    """Root of the slope's chord."""
    fall = b.slope - a.slope
    return (a.step * b.slope - b.step * a.slope) / fall if fall != 0 else math.nan


def first_step(largest_weight, value, gradient_largest, gradient_square):
    """I0: the step of the first iteration, along -g."""
    if largest_weight > 0:
        return PSI_0 * largest_weight / gradient_largest
    return PSI_0 * abs(value) / gradient_square if value != 0 else 1.0


def next_step(phi, value, slope, last):
    """I1, I2: the minimiser of the parabola through phi(0), phi'(0), phi(psi_1 last), else twice the last step."""
    trial = PSI_1 * last
    there = phi(trial)[0]
    bend = (there - value - slope * trial) / trial**2
    if there <= value and bend > 0 and math.isfinite(bend):
        return -slope / (2 * bend)
    return PSI_2 * last
