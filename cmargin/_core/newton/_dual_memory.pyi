# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

from cmargin._core.newton._driver import Worker
from cmargin._core.rows._dual_rows import DualBlocks

STATUS: tuple[str, ...]

class DualDriver(Worker):
    asks: Any
    pauses: Any
    reads: Any
    status: Any
    size: Any
    newton_steps: Any
    home: Any
    sweeps: Any
    a: Any
    w: Any
    def __init__(
        self, rows: DualBlocks, problem: Any, settings: Any, n_result: int, stream: np.ndarray, limit: float,
        gives_up: bool, trial: float, first_look: float, patience: float, largest: float,
    ) -> None: ...
    def begin(self, w: Any = ...) -> Any: ...
    def go_on(self) -> Any: ...
    def end_with(self, status: Any) -> Any: ...
    def leave(self, status: Any) -> Any: ...
    def store(self, result: Any) -> Any: ...
    def history(self) -> Any: ...
    def hand_over(self) -> Any: ...
    def kept(self) -> Any: ...
    def take_back(self, kept: dict[str, Any]) -> Any: ...
