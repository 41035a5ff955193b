# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

def follow(
    phi: np.ndarray, x: np.ndarray, lowest: np.ndarray, highest: np.ndarray, weight: np.ndarray, pinned: np.ndarray,
    n_slots: int, steepest: float, columns: np.ndarray, places: np.ndarray, begin: np.ndarray, ends: np.ndarray,
    a: np.ndarray, moved: np.ndarray, reached: np.ndarray,
) -> Any: ...
