# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.multinomial._inverse import Inverse
from cmargin._core.multinomial._step import MultinomialStep

SLICE_OVER: int
ONWARD: int
ASTRAY: int
NEAR: int
STANDS: int

class MultinomialNewton:
    standing: Any
    step: Any
    tol: float
    V: Any
    low_V: Any
    low: Any
    n_noted: Any
    n_taken: Any
    products: Any
    noted: Any
    def __init__(self, step: MultinomialStep, tol: float, stride: int, late: int) -> None: ...
    def judged(self, V: np.ndarray, value: float, gap: float) -> Any: ...
    def may_be(self, value: float) -> Any: ...
    def begin(
        self, inverse: Inverse, mean: Any, V: np.ndarray, G: Any, value: float, scores: Any, probs: Any, change: Any,
        may_spend: int, n_before: int = ...,
    ) -> Any: ...
    def go(self, lasting: float, most: int) -> Any: ...
    def told(self, sums: Any, gradient: Any) -> Any: ...
