# Written by `python -m build_tools.stubs`.

from typing import Any

def projected_steps(
    X: Any, squares: Any, cut: Any, other: Any, positives: Any, starts: Any, n_steps: Any, loss: Any, level: Any,
    scale: Any, l2: Any, first: Any, delay: Any, harmonic: Any, radius: Any, intercept: Any, streams: Any, V: Any,
    state: Any, t: Any, positive: Any, work: Any, n_threads: Any,
) -> Any: ...
