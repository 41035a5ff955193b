# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

def mean_gradient(
    sums: np.ndarray, slope: np.ndarray, n: float, V: np.ndarray, l2: float, l1: float, width: float, intercept: bool,
    out: np.ndarray,
) -> Any: ...
def norms(G: np.ndarray, out: np.ndarray) -> Any: ...
def descent(V: np.ndarray, G: np.ndarray, step: float, still: np.ndarray) -> Any: ...
def adam(
    V: np.ndarray, G: np.ndarray, first: np.ndarray, second: np.ndarray, beta_1: float, beta_2: float, epsilon: float,
    t: float, step: float, still: np.ndarray,
) -> Any: ...
def adadelta(
    V: np.ndarray, G: np.ndarray, squares: np.ndarray, moves: np.ndarray, rho: float, epsilon: float, step: float,
    still: np.ndarray,
) -> Any: ...
def nesterov(
    V: np.ndarray, G: np.ndarray, w: np.ndarray, t: np.ndarray, momentum: float, step: float, still: np.ndarray,
) -> Any: ...
