"""Warnings of a fit, at the line of the user's code that called for it."""

import sys
import warnings


def warn_at_caller(text, category=UserWarning):
    """A warning at the line that called this package, however deep the call is."""
    level, frame = 1, sys._getframe()                    # 1 is this function
    while frame is not None and frame.f_globals["__name__"].startswith("cmargin."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
