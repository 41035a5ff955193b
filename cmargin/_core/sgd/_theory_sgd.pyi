# Written by `python -m build_tools.stubs`.

from typing import Any

def run_theory_steps(
    by: Any, visits: Any, first: Any, last: Any, curvature: Any, Z: Any, subset_offsets: Any, subset: Any, dense: Any,
    work: Any, n_threads: Any,
) -> Any: ...
