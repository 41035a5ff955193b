# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

def bound(total: float, v: np.ndarray, l2: float, l1: float, noise: Any = ...) -> Any: ...
def bound_in_columns(total: float, v: np.ndarray, own: np.ndarray, noise: Any = ...) -> Any: ...
