# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._rows import Rows

class Centre:
    def __init__(self, n: int, mean: Any = ..., along: Any = ...) -> None: ...

def squares(X: Rows, ones: np.ndarray, out: np.ndarray) -> Any: ...
def products(
    X: Rows, centre: Centre, code: np.ndarray, rows: np.ndarray, bias: float, v: np.ndarray, out: np.ndarray,
) -> Any: ...
def add(
    X: Rows, centre: Centre, code: np.ndarray, rows: np.ndarray, c: np.ndarray, bias: float, v: np.ndarray,
) -> Any: ...
def cg_pass(
    X: Rows, centre: Centre, code: np.ndarray, rows: np.ndarray, upper: np.ndarray, a: np.ndarray, square: np.ndarray,
    bias: float, step: float, direction: np.ndarray, residual: np.ndarray, scaled: np.ndarray, total: np.ndarray,
) -> Any: ...
def cg_steps(
    X: Rows, centre: Centre, code: np.ndarray, rows: np.ndarray, upper: np.ndarray, a: np.ndarray, square: np.ndarray,
    bias: float, w: np.ndarray, p: np.ndarray, direction: np.ndarray, residual: np.ndarray, scaled: np.ndarray,
    total: np.ndarray, hit: np.ndarray, target: float, rz: float, at_most: int,
) -> Any: ...
