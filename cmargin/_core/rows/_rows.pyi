# Written by `python -m build_tools.stubs`.

from typing import Any

class Rows:
    dtype: Any
    shape: Any
    sparse: Any
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
