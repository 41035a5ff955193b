# Written by `python -m build_tools.stubs`.

from typing import Any

def top_eigenpairs(A: Any, k: Any) -> Any: ...
