# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._rows import Rows

class ColumnPath:
    lengths_are_finite: Any
    reads: Any
    def __init__(self, columns: Rows, signed_weight: np.ndarray, loss: Any, intercept: Any) -> None: ...
    def fit(self, l2: float, l1: float, tol: float, known: float, most: float, late: Any = ...) -> Any: ...
    def weights(self) -> Any: ...
    def slopes(self) -> Any: ...
