# Written by `python -m build_tools.stubs`.

from typing import Any

def work_size(n_features: int, k: int, width: int) -> Any: ...
def run_refreshed_steps(
    by: Any, visits: Any, first: Any, last: Any, step: Any, P: Any, factor: Any, tail_root: Any, W: Any, work: Any,
    n_threads: Any,
) -> Any: ...
