"""Linear constraints of the weights, A w + b >= 0, as a value; and whether any weights meet them."""

from dataclasses import dataclass, replace

import numpy as np

from cmargin._core.penalties._penalties import LinearConstraints

TRIALS = 5                   # projections, each of what the last has missed by rounding; one is enough as a rule
ROUNDED = 1e-14              # of the sizes that a sum is made of: what its rounding may be, as in _constraints.pyx
NOTHING = 1e-9               # of the sizes that a sum is made of: what is left of a constraint that is met


class Infeasible(ValueError):
    """No weights meet all constraints: ``multipliers`` y >= 0 with y'A = 0 and y'b = -1 prove it."""

    def __init__(self, multipliers):
        self.multipliers = multipliers
        super().__init__("the constraints contradict each other")


@dataclass(frozen=True, eq=False)
class Constraints:
    """A w + b >= 0 of penalised weights w (n_penalised,); A (q, n_penalised) of rows of length 1, b (q,)."""

    A: np.ndarray
    b: np.ndarray

    @classmethod
    def of(cls, A, b):
        """Any such; None where every one is always met; `Infeasible` where no weights meet them."""
        largest = np.abs(A).max(axis=1, initial=0.0)
        used, length = largest > 0, np.ones(len(A))
        length[used] = largest[used] * np.linalg.norm(A[used] / largest[used, None], axis=1)
        proof = np.where(used | (b >= 0), 0.0, 1.0)                   # rows of zeros that are never met
        if proof.any():
            raise Infeasible(proof / -(proof @ b))
        found = cls(A[used] / length[used, None], b[used] / length[used])
        try:
            w = found.nearest(np.zeros(A.shape[1]))
        except Infeasible as within:
            proof[used] = within.multipliers / length[used]
            raise Infeasible(proof / -(proof @ b)) from None
        short = -(found.A @ w + found.b)         # what contradicts by rounding is as much larger as no weights meet it
        beyond = np.where(short > ROUNDED * (np.abs(found.b) + np.linalg.norm(w)), short, 0.0)
        return replace(found, b=found.b + beyond) if used.any() else None

    def missed(self, w, size):
        """By how much weights w (n_penalised,) miss the worst of them, over the sizes of its sum; ``size``: of weights
        of which these may be the rounding."""
        sizes = np.abs(self.b) + np.linalg.norm(w) + ROUNDED / NOTHING * size
        return float(np.max(-(self.A @ w + self.b) / np.maximum(sizes, np.finfo(float).tiny), initial=0.0))

    def in_columns(self, n_columns):
        """A, with zeros for the columns that are not penalised, and b."""
        return np.hstack([self.A, np.zeros((len(self.A), n_columns - self.A.shape[1]))]), self.b

    def in_units(self, unit):
        """The same of weights over ``unit``."""
        return replace(self, b=self.b / unit)

    def of_columns(self, columns, n_features):
        """Those of some of so many columns of the rows, if the others' weights are 0; a penalised intercept stays."""
        return replace(self, A=np.hstack([self.A[:, columns], self.A[:, n_features:]]))

    def of_reduced(self, rows, n_penalised):
        """The same in an orthogonal basis, in which those of ``A`` are these; a penalised intercept is behind it."""
        return replace(self, A=np.hstack([rows, np.zeros((len(rows), n_penalised - rows.shape[1]))]))

    def nearest(self, w):
        """The weights next to w (n_penalised,) that meet them; `Infeasible` where none do."""
        for trial in range(TRIALS):              # once as a rule; rows that nearly depend on each other take more
            beyond = self.A @ w + self.b
            if (beyond >= -(trial > 0) * ROUNDED * (np.abs(self.b) + np.linalg.norm(w))).all():
                break
            # equations are two rows, which by the rounding of w may both be missed
            mu, contradict = LinearConstraints(self.A, beyond + ROUNDED * np.linalg.norm(w)).nearest(NOTHING)
            if contradict and trial == 0:
                raise Infeasible(mu / -(mu @ beyond))
            if contradict:
                break
            w = w + mu @ self.A
        return w
