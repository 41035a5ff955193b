# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._rows import Rows

LARGEST_LENGTH: float
LEAST_DAMPING: float

class Batches:
    def __init__(
        self, X: Rows, order: np.ndarray, truth: np.ndarray, weight: np.ndarray, centre_dot: np.ndarray,
        centre_square: float, low_sign: float, tail_inverse: float, loss_out: np.ndarray, wrong_out: np.ndarray,
    ) -> None: ...
    def whitened(
        self, Z: Any, parts: Any, class_block: Any, column_block: Any, mean_length: Any, n_threads: Any,
    ) -> Any: ...
    def weights(
        self, U: Any, U_mean: Any, V: Any, V_lag: Any, shift: Any, bias: Any, stride: Any, n_done: Any,
    ) -> Any: ...
    def run(
        self, batches: Any, scored: Any, n_train: Any, offset: Any, step: Any, bias_rate: Any, n_threads: Any,
        scores_out: Any,
    ) -> Any: ...

def rows_pay(n_classes: int, width: int, tail: bool, single: bool) -> Any: ...
