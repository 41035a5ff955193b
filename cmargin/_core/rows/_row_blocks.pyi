# Written by `python -m build_tools.stubs`.

ON_DIAGONAL: float
