# Written by `python -m build_tools.stubs`.

from typing import Any

import numpy as np

def with_sorted_places(values: Any, places: np.ndarray, rounds: int = ...) -> Any: ...
