# Written by `python -m build_tools.stubs`.

from typing import Any

def walk(
    of: Any, batches: Any, n_train: Any, step: Any, bias_rate: Any, n_round: Any, homes: Any, intercepts: Any,
    parts: Any, n_threads: Any,
) -> Any: ...
