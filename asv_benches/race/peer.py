"""What the races know of a package: how it is run, what it needs, and which penalties it takes."""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import numpy as np

from cmargin._core.util._fp_control import StandardArithmetic

RIDGE, LASSO, ELASTIC_NET = "l2", "l1", "l1 and l2"


class Run(NamedTuple):
    """What a solver hands back: the coefficients, and what there is to say of the run."""
    w: np.ndarray
    how: str
    passes: float = np.nan     # over all rows
    gap: float = np.nan        # certified, relative to the objective


class Peer(NamedTuple):
    """``ways`` are (run, growth of the effort from run to run): the quickest of them counts at every target."""
    ways: tuple
    module: str | None = None  # what must be there to import; None: it always is
    penalties: tuple = (RIDGE,)                # that it takes
    last_is_one_thread: bool = False           # the last way is the first on one thread
    lacks: Callable[[], str] = lambda: ""      # what the module that is installed lacks, in words

    def ways_on(self, threads):
        """The ways that differ on so many threads."""
        return self.ways[:-1] if self.last_is_one_thread and threads == 1 else self.ways

    def absence(self):
        """Why it cannot be run here, or an empty string."""
        return self.lacks() if installed(self.module) else "not installed"


def installed(module):
    """True if the package can be imported."""
    if module is None:
        return True
    try:
        with StandardArithmetic():
            import_module(module)
    except Exception:                          # a package that fails to load is as good as absent
        return False
    return True
