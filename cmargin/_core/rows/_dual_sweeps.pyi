# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._dual_rows import DualBlocks

SWEEPS: int
WISHES: dict[str, Any]

class DualSweeps:
    active: Any
    n_active: Any
    gap: Any
    rows_read: Any
    bounds: Any
    sum: Any
    blocks: Any
    def __init__(
        self, blocks: DualBlocks, a: np.ndarray, w: np.ndarray, stream: np.ndarray, patience: float,
        column: np.ndarray | None = ...,
    ) -> None: ...
    def run(self, at_most: int, tol: float, slice_rows: float, allowed: float) -> Any: ...
    def choose(self, u: np.ndarray) -> Any: ...
    def balanced(self) -> Any: ...
    def kept(self) -> Any: ...
    def take_back(self, kept: dict[str, Any]) -> Any: ...
