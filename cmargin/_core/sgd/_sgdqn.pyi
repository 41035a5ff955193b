# Written by `python -m build_tools.stubs`.

from typing import Any

state_size: int
def run_qn_steps(
    by: Any, visits: Any, first: Any, last: Any, l2: Any, skip: Any, W: Any, gain: Any, state: Any, work: Any,
    n_threads: Any,
) -> Any: ...
