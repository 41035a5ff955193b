# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.rows._rows import Rows

class ProjectedPass:
    def __init__(
        self, X: Rows, squares: np.ndarray, cut: np.ndarray, other: np.ndarray, positives: np.ndarray,
        starts: np.ndarray,
    ) -> None: ...
    def rule(
        self, loss: int, level: float, scale: np.ndarray, l2: float, first: np.ndarray, delay: float, harmonic: bool,
        radius: float, intercept: bool,
    ) -> Any: ...
    def take(
        self, n_steps: Any, streams: Any, V: Any, state: Any, t: Any, positive: Any, work: Any, n_threads: Any,
    ) -> Any: ...
