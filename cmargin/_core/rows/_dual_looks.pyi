# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

def best_shift(code: np.ndarray, u: np.ndarray) -> Any: ...
def best_scale(upper: np.ndarray, z: np.ndarray, square: float) -> Any: ...
