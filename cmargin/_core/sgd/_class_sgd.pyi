# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

mean_stride: int
def draw_lists(
    positives: np.ndarray, starts: np.ndarray, n_negatives: np.ndarray, streams: np.ndarray, taken: np.ndarray,
    class_lo: int, offsets: np.ndarray, visits: np.ndarray, n_threads: int,
) -> Any: ...
def run_steps(by: Any, visits: Any, first: Any, last: Any, step: Any, Z: Any, work: Any, n_threads: Any) -> Any: ...
def visit_losses(
    X: Any, W: Any, bias: Any, offsets: Any, visits: Any, row_weight: Any, loss: Any, row_work: Any, loss_out: Any,
) -> Any: ...
