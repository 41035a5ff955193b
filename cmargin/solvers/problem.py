"""What a solver is given besides the rows: the function to be minimised, and what the user chose."""

from dataclasses import dataclass, field, replace

import numpy as np

from cmargin._runtime.clock import RunClock
from cmargin.data.columns import Columns
from cmargin.data.loss import HINGE, Loss
from cmargin.solvers.first_order.penalty import Penalty
from cmargin.solvers.one_class import OneClass
from cmargin.solvers.penalty import ElasticNet


@dataclass
class Problem:
    """(1/N) sum s F(y <w, x>) and the penalty; column ``free`` is not penalised."""

    penalty: ElasticNet
    free: int | None = None
    loss: Loss = HINGE                     # or a smooth loss that has a dual
    one_class: OneClass | None = None      # of the hinge, all rows positive, column ``free`` of ones


@dataclass
class Settings:
    """What the user chose; see `cmargin.smsvm.SmSVMClassifier`."""

    tol: float = 1e-4
    max_passes: float = 100.0
    smoothing: float = 1.0
    smoothing_decay: float = 0.5
    linear_solver: str = "auto"
    clock: RunClock = field(default_factory=lambda: RunClock(None))    # of all drivers of a fit
    stop: object = None                    # () -> bool, asked after every evaluation
    width_end: float = 0.0                 # leave once the smoothing is below: for subsets
    tell: object = None                    # (Result) -> None, called after every evaluation
    between: object = None                 # () -> status to leave with or None, asked between two slices
    line_search: str = "exact"
    subset_growth: str | None = "auto"
    newton_tol: float = 0.1                # of the published steps

    @property
    def deadline(self):
        return np.inf if self.clock.deadline is None else self.clock.deadline

    @property
    def pauses(self):
        return self.stop is not None or self.tell is not None

    def for_working_set(self, tol, most):
        """``most``: passes that they may take."""
        return replace(self, tol=tol, max_passes=most, width_end=np.finfo(float).tiny, stop=None, tell=None)

    def for_subset(self, width_end, whole):
        """``whole``: passes that must be left for a first evaluation over all rows."""
        return replace(self, width_end=width_end, max_passes=self.max_passes - whole)


@dataclass(frozen=True)
class PursuitSettings:
    """What the user chose; names and meaning as in `MarginPursuitClassifier`."""

    loss: str
    level: float
    scale: float
    one_shot: bool
    l2: float
    step_size: float | None
    tol: float
    max_passes: int
    fit_intercept: bool
    deadline: float | None
    l1: float = 0.0
    chooses_l2: bool = False         # `settled` is to say what l2 is
    columns: Columns | None = None   # its answers too: units of the columns where they are far apart,
    lost: tuple = ()                 # and columns without digits

    @property
    def penalty(self):
        return Penalty(self.l2, self.l1)
