# Written by `python -m build_tools.stubs`.

from typing import Any

def block_size() -> Any: ...
def run_refreshed_steps(
    X: Any, row_weight: Any, class_lo: Any, offsets: Any, visits: Any, first: Any, last: Any, loss: Any, step: Any,
    bias_rate: Any, low_sign: Any, P: Any, factor: Any, tail_root: Any, tail_inverse: Any, W: Any, U: Any, U_mean: Any,
    V: Any, V_lag: Any, bias: Any, n_steps: Any, sums: Any, dense: Any, low: Any, out: Any, base: Any, picked: Any,
    n_threads: Any,
) -> Any: ...
