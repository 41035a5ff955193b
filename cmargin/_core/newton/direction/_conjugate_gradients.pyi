# Written by `python -m build_tools.stubs`.

from typing import Any

def conjugate_gradients_of(
    product: Any, rhs: Any, diagonal: Any, enough: float, most: int, factor: Any = ...,
) -> Any: ...
