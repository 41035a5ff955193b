# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._dual_rows import Centre
from cmargin._core.rows._rows import Rows

WISHES: dict[str, Any]

class DualSweeps:
    active: Any
    n_active: Any
    moved: Any
    rows_read: Any
    low: float
    high: float
    part: float
    gap: Any
    enough: Any
    patience: Any
    def __init__(
        self, X: Rows, centre: Centre, code: np.ndarray, upper: np.ndarray, square: np.ndarray, a: np.ndarray,
        w: np.ndarray, bias: float, free: bool, density: float, stream: np.ndarray, patience: float,
    ) -> None: ...
    def run(self, at_most: int, tol: float, slice_rows: float, allowed: float, hopeless: float) -> Any: ...
    def choose(self, u: np.ndarray) -> Any: ...
    def after_step(self, gap: float) -> Any: ...
    def balanced(self) -> Any: ...
    def arrays(self) -> Any: ...
    def kept(self) -> Any: ...
    def take_back(self, kept: dict[str, Any]) -> Any: ...
