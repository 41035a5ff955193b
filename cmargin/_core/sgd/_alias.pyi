# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

def alias_table(cut: np.ndarray, other: np.ndarray, stack: np.ndarray) -> Any: ...
