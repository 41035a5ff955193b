# Written by `python -m build_tools.stubs`.

from typing import Any

def block_rows() -> Any: ...
def whiten_rows(
    X: Any, rows: Any, P: Any, factor: Any, centre: Any, centre_low: Any, tail_root: Any, row_lo: Any, row_hi: Any,
    out: Any, dense: Any, low: Any, n_threads: Any,
) -> Any: ...
