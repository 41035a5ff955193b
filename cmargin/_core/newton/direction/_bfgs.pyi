# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

class BFGSHessian:
    def __init__(self, upper: np.ndarray) -> None: ...
    def add(self, step: np.ndarray, change: np.ndarray) -> Any: ...
    def solve(self, rhs: np.ndarray) -> Any: ...
