# Written by `python -m build_tools.stubs`.

from typing import Any

from cmargin._core.rows._row_pass import RowBlocks

def kept_of_rows(blocks: RowBlocks, measures: bool = ...) -> Any: ...
def take_back_rows(blocks: RowBlocks, kept: dict[str, Any], copy: bool = ...) -> Any: ...
