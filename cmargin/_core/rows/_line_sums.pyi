# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

def line(
    loss: int, a: float, weight: np.ndarray, z: np.ndarray, change: np.ndarray, step: float, n_threads: int,
) -> Any: ...
def move(
    loss: int, a: float, weight: np.ndarray, z: np.ndarray, change: np.ndarray, step: float, slope_out: np.ndarray,
    n_threads: int,
) -> Any: ...
def between(
    of: Any, dual: bool, signed_weight: np.ndarray, first: np.ndarray, second: np.ndarray, part: float, n_threads: int,
) -> Any: ...
