# Written by `python -m build_tools.stubs`.

from typing import Any

from cmargin._core.newton._memory import Newton

STATUS: dict[str, Any]

class PursuitSteps(Newton):
    status: Any
    passes: Any
    scale: Any
    def __init__(
        self, source: Any, problem: Any, settings: Any, result: Any, w: Any, limits: dict[str, Any], by_cg: bool, *,
        levels: Any, fall: float = ..., units: Any = ..., started: Any = ..., spent_seconds: Any = ...,
    ) -> None: ...
    def store(self, result: Any) -> Any: ...
    def rescale(self, scale: float) -> Any: ...
    def kept(self) -> Any: ...
    def take_back(self, kept: dict[str, Any]) -> Any: ...
