# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

ROUNDING: float
def gap(objective: float, dual: float) -> Any: ...
def feasible(gradient: np.ndarray, dual_pos: float, dual_neg: float, free: Any, gain: Any = ...) -> Any: ...
