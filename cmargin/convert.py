"""The name of `cmargin.cli.convert` before version 0.1; it goes with the next release."""

import warnings

from cmargin.cli import convert as moved


def __getattr__(name):
    if name != "convert":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("cmargin.convert.convert is cmargin.cli.convert.convert now", FutureWarning, stacklevel=2)
    return moved.convert
