# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._rows import Rows

def model_minimum(
    columns: Rows, weight: np.ndarray, g: np.ndarray, w: np.ndarray, l2: np.ndarray, l1: np.ndarray, intercept: Any,
    enough: float, most: float = ...,
) -> Any: ...
