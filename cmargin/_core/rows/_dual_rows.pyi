# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._rows import Rows

class DualBlocks:
    reads: Any
    def __init__(
        self, X: Rows, signed_weight: np.ndarray, upper: np.ndarray, ridge: np.ndarray, square: np.ndarray, bias: float,
        free: bool, density: float, x_dot_mean: np.ndarray, mean: np.ndarray | None = ...,
        target: np.ndarray | None = ...,
    ) -> None: ...
    def hold_sum(self, total: float, beyond: float, least: float) -> Any: ...
    def products(self, listed: np.ndarray, v: np.ndarray) -> Any: ...
    def add(self, listed: np.ndarray, c: np.ndarray, v: np.ndarray) -> Any: ...

def squares(X: Rows, ones: np.ndarray, out: np.ndarray) -> Any: ...
def column_squares(X: Rows, c: np.ndarray, out: np.ndarray) -> Any: ...
