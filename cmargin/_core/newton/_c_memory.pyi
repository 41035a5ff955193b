# Written by `python -m build_tools.stubs`.

from typing import Any

def limits_of_c_programs() -> Any: ...
