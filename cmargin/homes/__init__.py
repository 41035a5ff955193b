"""The name of `cmargin.data` before version 0.1; it goes with the next release."""

import warnings

from cmargin import data


def __getattr__(name):
    if name not in data.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"cmargin.homes.{name} is cmargin.data.{name} now", FutureWarning, stacklevel=2)
    return getattr(data, name)
