# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._rows import Rows

FACTS: dict[str, Any]

class GramProblem:
    objective: Any
    dual: Any
    scale: Any
    b: Any
    proven: Any
    waits: Any
    rounds: Any
    s: Any
    z: Any
    v: Any
    def __init__(self, signed_weight: np.ndarray, hint: np.ndarray, n_features: int = ...) -> None: ...
    def take(self, z: np.ndarray) -> Any: ...

class GramRows:
    def __init__(self, K: np.ndarray, balanced: bool, offset: float) -> None: ...

def rows_without_products(X: Rows, mean: np.ndarray, largest: float, balanced: bool, constant: bool) -> Any: ...
def solve_problems(
    rows: GramRows, problems: Any, loss: Any, l2: float, tol: float, most_rounds: int, n_threads: int,
) -> Any: ...
