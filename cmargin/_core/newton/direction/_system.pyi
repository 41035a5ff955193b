# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

def cholesky_solve(upper: np.ndarray, rhs: Any) -> Any: ...
def l1_model_minimum(
    upper: np.ndarray, g: np.ndarray, w: np.ndarray, l1: np.ndarray, rounds: int = ..., tol: float = ...,
    least: float = ...,
) -> Any: ...
def descend(H: np.ndarray, gradient: np.ndarray, x: np.ndarray, l1: np.ndarray, sweeps: int, tol: float) -> Any: ...
