# Written by `python -m build_tools.stubs`.

from typing import Any

def who_did(n: int, n_threads: int) -> Any: ...
