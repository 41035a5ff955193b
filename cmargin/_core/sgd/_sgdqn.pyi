# Written by `python -m build_tools.stubs`.

from typing import Any

state_size: int
def run_qn_steps(
    X: Any, row_weight: Any, class_lo: Any, offsets: Any, visits: Any, first: Any, last: Any, loss: Any, l2: Any,
    skip: Any, W: Any, gain: Any, state: Any, sums: Any, work: Any, n_threads: Any,
) -> Any: ...
