# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._rows import Rows

class JointSweeps:
    n_read: Any
    a: Any
    W: Any
    gap: Any
    n_sweeps: Any
    last_active: Any
    def __init__(
        self, X: Rows, labels: np.ndarray, upper: np.ndarray, square: np.ndarray, n_classes: int, bias: float,
        free: bool, stream: np.ndarray, mean: np.ndarray, x_dot_mean: np.ndarray,
    ) -> None: ...
    def sweep(self, lasting: float, at_once: int) -> Any: ...
    def add(self, lo: int, hi: int, W: np.ndarray) -> Any: ...
    def hinges(self, lo: int, hi: int) -> Any: ...
    def balance(self, lo: int, hi: int, W: np.ndarray, r: np.ndarray) -> Any: ...
