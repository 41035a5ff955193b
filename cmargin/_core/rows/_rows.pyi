# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

VALUES_AT_ONCE: int
MOST_COLUMNS: int

class Rows:
    n_entries: Any
    entry_bytes: Any
    dtype: Any
    shape: Any
    sparse: Any
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def gathered(self, rows: np.ndarray, n_threads: int) -> Any: ...
    def in_few_bytes(self) -> Any: ...

def is_mapped(array: Any) -> Any: ...
