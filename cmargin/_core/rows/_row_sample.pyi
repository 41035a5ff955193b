# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._rows import Rows

CHANCE: tuple[Any, ...]
def chosen(
    X: Rows, signed_weight: np.ndarray, positives: float, negatives: float, seed: int, first: int = ...,
    weight: np.ndarray | None = ..., n_threads: int = ...,
) -> Any: ...
def numbers(seed: int, n: int) -> Any: ...
def sides_of(signed_weight: np.ndarray) -> Any: ...
