# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

class ColumnModel:
    direction: Any
    n_reads: Any
    def __init__(
        self, values: Any, starts: Any, places: Any, weight: Any, n_classes: int, intercept: bool, grouped: bool,
    ) -> None: ...
    def begin(
        self, probs: np.ndarray, G: np.ndarray, W: np.ndarray, l1: np.ndarray, l2: np.ndarray, enough: float, most: int,
    ) -> Any: ...
    def go(self, lasting: float, most: int) -> Any: ...
