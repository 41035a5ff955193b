"""Which rows of which problems need narrower bounds, until what is predicted of every row without it is known."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Found:
    """Left-out scores and their bounds, (n, n_problems); rows whose prediction is proven; what each stage settled."""

    decisions: np.ndarray
    low: np.ndarray
    high: np.ndarray
    proven: np.ndarray
    n_solved: int
    stages: dict


def searched_among(problems, signs, each):
    """`Found` of problems that share their rows, ``each`` predicted for itself or, else, the one of largest score.

    ``problems``: of `HingeLeftOut` or `SmoothLeftOut`, or None where all rows have one sign; ``signs``: (n,) a problem.
    """
    scores = [Scores(problem, sign) for problem, sign in zip(problems, signs, strict=True)]
    each = each or len(scores) == 1
    steps = [[] if problem is None else list(problem.stages()) for problem in problems]
    stages, n_solved = {}, 0
    wanted = undecided(scores, each)
    n_open = len(signs[0])
    for at in range(max(map(len, steps), default=0)):
        before = wanted
        for c, own in enumerate(steps):
            rows = np.flatnonzero(before[:, c])
            if at < len(own) and len(rows):
                name, narrow = own[at]
                narrow(rows)
                n_solved += len(rows) * (name == "solved")
        wanted = undecided(scores, each)
        name = next(own[at][0] for own in steps if at < len(own))
        still = int(wanted.any(axis=1).sum())
        stages[name] = stages.get(name, 0) + n_open - still
        n_open = still
    low, high = (np.stack(both, axis=1) for both in zip(*(one.bounds() for one in scores), strict=True))
    middle = np.stack([one.middle() for one in scores], axis=1)
    return Found(np.clip(middle, low, high), low, high, ~wanted.any(axis=1), n_solved, stages)


class Scores:
    """Scores y z of rows that are left out of one problem, by bounds of their margins z."""

    def __init__(self, problem, sign):
        self.problem, self.sign = problem, sign
        self.fixed = {}
        if problem is None:
            self.score = np.full(len(sign), np.inf * sign[0])
            return
        counted = problem.problem.weight > 0
        for one in (-1.0, 1.0):                  # without the only row of a sign all others have the other one
            rows = np.flatnonzero(counted & (sign == one))
            if len(rows) == 1:
                self.fixed[rows[0]] = -one * np.inf

    def bounds(self):
        """(n,) from below and from above."""
        if self.problem is None:
            return self.score, self.score
        low = np.where(self.sign > 0, self.problem.low, -self.problem.high)
        high = np.where(self.sign > 0, self.problem.high, -self.problem.low)
        for row, score in self.fixed.items():
            low[row] = high[row] = score
        return low, high

    def middle(self):
        if self.problem is None:
            return self.score
        middle = self.sign * self.problem.approximate
        for row, score in self.fixed.items():
            middle[row] = score
        return middle


def undecided(scores, each):
    """(n, n_problems) whether narrower bounds of a score may be needed to know the prediction."""
    low, high = (np.stack(both, axis=1) for both in zip(*(one.bounds() for one in scores), strict=True))
    if each:
        return (low <= 0) & (high >= 0)
    may_be = high >= low.max(axis=1, keepdims=True)              # no other score is known to be larger
    return may_be & (may_be.sum(axis=1, keepdims=True) > 1) & (low < high)
