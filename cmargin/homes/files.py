"""The name of `cmargin.data.files` before version 0.1; it goes with the next release."""

import warnings

from cmargin.data import files


def __getattr__(name):
    if name != "open_files":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("cmargin.homes.files.open_files is cmargin.data.files.open_files now", FutureWarning, stacklevel=2)
    return files.open_files
