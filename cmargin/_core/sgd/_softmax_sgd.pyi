# Written by `python -m build_tools.stubs`.

from typing import Any

LARGEST_LENGTH: float
LEAST_WORTH: float
def row_lengths(
    X: Any, Z: Any, order: Any, centre_dot: Any, low_sign: Any, tail_inverse: Any, centre_square: Any, n_threads: Any,
) -> Any: ...
def run_batches(
    X: Any, Z: Any, order: Any, centre_dot: Any, truth: Any, weight: Any, length: Any, mean_length: Any, batches: Any,
    looks: Any, batch: Any, n_train: Any, offset: Any, step: Any, bias_rate: Any, low_sign: Any, tail_inverse: Any,
    centre_square: Any, class_block: Any, column_block: Any, stride: Any, n_done: Any, U: Any, U_mean: Any, V: Any,
    V_lag: Any, shift: Any, bias: Any, parts: Any, loss_out: Any, wrong_out: Any, n_threads: Any, scores_out: Any = ...,
) -> Any: ...
