"""What became of one binary problem, whichever solver worked on it."""

from dataclasses import dataclass, field

import numpy as np

from cmargin._core.newton._bound import gap


@dataclass
class Result:
    """Always usable, whenever the solver was left.

    ``passes`` are SmSVM's reads of the data; margin pursuit counts its steps there, and reads in ``reads``.
    """

    w: np.ndarray | None = None
    objective: float = np.inf              # P at w, not smoothed
    dual: float = 0.0                      # best lower bound
    width: float = 1.0                     # smoothing at which the solver was left
    passes: float = 0
    n_iter: int = 0
    status: str = "running"                # see `STATUS` in `cmargin._core.newton._memory` and `._pursuit`
    history: list = field(default_factory=list)
    # S and v (n_penalised,) of the dual variables behind ``dual``, and what rounding may have taken from |v|; v None:
    # there is no dual value but the 0 of a = 0
    total: float = 0.0
    v: np.ndarray | None = None
    noise: np.ndarray | float = 0.0
    gradient_norm: float = np.inf          # relative to w = 0; of margin pursuit, as what follows
    scale: float = np.nan
    reads: float = 0.0
    seconds: tuple = (0.0, 0.0)            # in steps, and in the trace

    @property
    def gap(self):
        """(P - D) / P, see `cmargin._core.newton._bound.gap`."""
        return gap(self.objective, self.dual)
