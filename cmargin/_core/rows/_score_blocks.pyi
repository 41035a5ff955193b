# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

class ProblemRows:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def sums(
        self, W: np.ndarray, bias: np.ndarray, loss: int, level: float, scale: np.ndarray, bounds: np.ndarray,
        every: int, value: np.ndarray, slope: np.ndarray, gradient: np.ndarray,
    ) -> Any: ...
    def margins(
        self, W: np.ndarray, bias: np.ndarray, first: int, bounds: np.ndarray, n_threads: int, out: np.ndarray,
    ) -> Any: ...
