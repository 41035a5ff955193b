# Written by `python -m build_tools.stubs`.

from typing import Any

from cmargin._core.rows._rows import Rows

def block_rows() -> Any: ...
def work_size(X: Rows, k: int, tail_root: float) -> Any: ...
def whiten_rows(
    X: Any, rows: Any, P: Any, factor: Any, centre: Any, centre_low: Any, tail_root: Any, row_lo: Any, row_hi: Any,
    out: Any, work: Any, n_threads: Any,
) -> Any: ...
