# Written by `python -m build_tools.stubs`.

from typing import Any

def run_theory_steps(
    X: Any, Z: Any, row_weight: Any, class_lo: Any, offsets: Any, visits: Any, first: Any, last: Any,
    subset_offsets: Any, subset: Any, loss: Any, curvature: Any, bias_rate: Any, low_sign: Any, tail_inverse: Any,
    U: Any, V: Any, bias: Any, n_steps: Any, sums: Any, dense: Any, work: Any, n_threads: Any,
) -> Any: ...
