# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.penalties._penalties import LinearConstraints

def minimum_within(upper: np.ndarray, g: np.ndarray, w: np.ndarray, constraints: LinearConstraints) -> Any: ...
