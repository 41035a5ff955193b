# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._rows import Rows

class ClassPass:
    def __init__(self, X: Rows, row_weight: np.ndarray, loss: int, sums: np.ndarray) -> None: ...
    def whitened(
        self, U: Any, U_mean: Any, V: Any, V_lag: Any, bias: Any, n_steps: Any, bias_rate: Any, tail_inverse: Any,
        low_sign: Any,
    ) -> Any: ...

class Visits:
    def __init__(self, class_lo: int, offsets: np.ndarray, visits: np.ndarray) -> None: ...
