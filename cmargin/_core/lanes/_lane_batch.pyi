# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.newton._asking import Worker
from cmargin._core.rows._rows import Rows

LANE_COUNT: int

class Proven:
    __dict__: Any
    __weakref__: Any
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def of(self, some: Any) -> Any: ...

class SingleRows:
    def __init__(self, n: int, m: int, by_rows: Any, by_columns: Any) -> None: ...
    def times(self, W: np.ndarray, out: np.ndarray) -> Any: ...
    def back(self, R: np.ndarray, out: np.ndarray) -> Any: ...

class LaneBatch(Worker):
    ended: Any
    def __init__(
        self, rows: SingleRows, X: Rows, s: np.ndarray, s_single: np.ndarray, positive_starts: np.ndarray,
        positives: np.ndarray, inverse: np.ndarray, scale: np.ndarray, l2: float, l2_bias: Any, tol: float, most: int,
        out: Any, start: np.ndarray | None = ..., prove: bool = ...,
    ) -> None: ...

def squared_hinges(T: np.ndarray, Y: np.ndarray, s: np.ndarray, b: np.ndarray, sums_out: np.ndarray) -> Any: ...
