# Written by `python -m build_tools.stubs`.

from typing import Any

def predict_rows(
    rows: Any, first: Any, n: Any, weights: Any, by_feature: Any, bias: Any, what: Any, n_threads: Any, numbers: Any,
    classes: Any, lost: Any, stored: Any = ...,
) -> Any: ...
