# Written by `python -m build_tools.stubs`.

from typing import Any

def scaled_losses(scores: Any, truth: Any, weight: Any, share: Any, factor: Any, loss_out: Any) -> Any: ...
