# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

def exact_step(
    phi: Any, w: np.ndarray, d: np.ndarray, weight: np.ndarray, s_max: float, tol: float = ..., max_trials: int = ...,
) -> Any: ...
