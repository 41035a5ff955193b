# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

class Inverse:
    n_features: Any
    n_classes: Any
    n_columns: Any
    intercept: Any
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class ClassBlocks(Inverse):
    def __init__(
        self, X: np.ndarray, probs: np.ndarray, weight: np.ndarray, l2: float, intercept: bool, n_threads: int,
        little: float,
    ) -> None: ...
    def make(self, first: int, last: int) -> Any: ...

class Kronecker(Inverse):
    def __init__(
        self, mean: np.ndarray, values: np.ndarray, vectors: np.ndarray, n_classes: int, l2: float, intercept: bool,
        n_threads: int,
    ) -> None: ...
    def update(self, A: np.ndarray) -> Any: ...

def rows_above(probs: Any, weight: Any, little: Any) -> Any: ...
