# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._dual_rows import DualBlocks

def newton_step(
    blocks: DualBlocks, a: np.ndarray, w: np.ndarray, active: np.ndarray, target: float, iterations: int = ...,
    most: Any = ...,
) -> Any: ...
