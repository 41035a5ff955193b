# Written by `python -m build_tools.stubs`.

from typing import Any

class SoftmaxRows:
    few: Any
    rows: Any
    n_blocks: Any
    n_columns: Any
    here: Any
    labelled: Any
    bounds: Any
    gradients: Any
    sums: Any
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def check_kept(self, kept: Any, needed: Any) -> Any: ...
    def run(self, what: Any, V: Any, scores: Any, probs: Any, first: Any, last: Any) -> Any: ...
    def line(self, step: Any, scores: Any, change: Any) -> Any: ...

def class_curvature(probs: Any, weight: Any, stride: Any) -> Any: ...
