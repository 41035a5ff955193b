# Written by `python -m build_tools.stubs`.

from typing import Any

def widths(steps: Any, errors: Any, gaps: Any, width: float = ..., decay: float = ..., tol: float = ...) -> Any: ...
