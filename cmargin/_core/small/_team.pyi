# Written by `python -m build_tools.stubs`.

from typing import Any

class Team:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def run(self, n: int, n_threads: int) -> Any: ...
