"""Linear constraints of the weights, A w + b >= 0, as a value; and whether any weights meet them."""

from dataclasses import dataclass, replace

import numpy as np

from cmargin._core.penalties._penalties import LinearConstraints

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
            found.nearest(np.zeros(A.shape[1]))
        except Infeasible as within:
            proof[used] = within.multipliers / length[used]
            raise Infeasible(proof / -(proof @ b)) from None
        return found if used.any() else None

    def in_columns(self, n_columns):
        """A, with zeros for the columns that are not penalised, and b."""
        return np.hstack([self.A, np.zeros((len(self.A), n_columns - self.A.shape[1]))]), self.b

    def in_units(self, unit):
        """The same of weights over ``unit``."""
        return replace(self, b=self.b / unit)

    def of_columns(self, columns, n_features):
        """Those of some of so many columns of the rows, if the others' weights are 0; a penalised intercept stays."""
        return replace(self, A=np.hstack([self.A[:, columns], self.A[:, n_features:]]))

    def nearest(self, w):
        """The weights next to w (n_penalised,) that meet them; `Infeasible` where none do."""
        beyond = self.A @ w + self.b
        if (beyond >= 0).all():
            return w
        mu, contradict = LinearConstraints(self.A, beyond).nearest(NOTHING)
        if contradict:
            raise Infeasible(mu / -(mu @ beyond))
        return w + mu @ self.A
