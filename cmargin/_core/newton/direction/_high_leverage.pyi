# Written by `python -m build_tools.stubs`.

from typing import Any

LARGE: float
MOST: float
def heavy_limit(n: Any, at: Any) -> Any: ...
def heaviest(norms: Any) -> Any: ...
