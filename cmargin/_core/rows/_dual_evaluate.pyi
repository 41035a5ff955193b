# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._dual_rows import DualBlocks

def smooth_minimum(blocks: DualBlocks, start: np.ndarray, direction: np.ndarray, square: float, t: float) -> Any: ...
