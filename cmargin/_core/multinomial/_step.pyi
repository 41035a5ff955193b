# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._softmax_rows import SoftmaxRows

class MultinomialStep:
    asks: Any
    searched: Any
    step: Any
    risk: Any
    products: Any
    direction: Any
    gradient: Any
    room: Any
    def __init__(self, rows: SoftmaxRows, l2: float, most: int, per_call: int) -> None: ...
    def go(self, lasting: float) -> Any: ...
    def told(self, sums: np.ndarray, gradient: np.ndarray) -> Any: ...
    def begin(
        self, inverse: Any, mean: Any, V: Any, G: Any, value: Any, enough: Any, scores: Any, probs: Any, change: Any,
        along: Any = ...,
    ) -> Any: ...

def penalised(V: np.ndarray, gradient: np.ndarray, l2: float, n_features: int, mean: np.ndarray) -> Any: ...
